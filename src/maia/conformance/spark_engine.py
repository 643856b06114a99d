"""Runs the tasks of a scenario in Spark's Python workers; one Spark context serves all scenarios of a run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pyarrow as pa
from pyarrow import ipc

from maia.conformance.scenarios import Task, TaskResult, run_task
from maia.spark import session

_RESULT = "task long, refused string, subscription string, seen binary"
_starting = threading.Lock()


def warm_up() -> None:
    """Start Spark and one worker ahead of the first scenario that needs them; without Java, leave it to that one."""
    with _starting, contextlib.suppress(Exception):
        frame = session(spark_master="local[2,4]").range(2).repartition(2)
        frame.mapInArrow(lambda batches: batches, "id long").collect()


def run_in_spark(tasks: list[Task]) -> list[TaskResult]:
    """Run every task through `mapInArrow`, spread over two partitions. Plans ride in the closure; they hold no key."""
    if not tasks:
        return []
    with _starting:
        spark = session(spark_master="local[2,4]")

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield _write(number, run_task(tasks[number]))

    rows = spark.range(0, len(tasks), 1, 2).mapInArrow(run, _RESULT).collect()
    refused = {row.task: row.refused for row in rows if row.subscription is None}
    seen: dict[int, list[tuple[str, pa.RecordBatch]]] = {number: [] for number in range(len(tasks))}
    for row in rows:
        if row.subscription is not None:
            seen[row.task].append((row.subscription, ipc.open_stream(bytes(row.seen)).read_next_batch()))
    return [TaskResult(task.index, refused[number], tuple(seen[number])) for number, task in enumerate(tasks)]


def _write(number: int, result: TaskResult) -> pa.RecordBatch:
    """Write a result as rows: one for the task itself, one for each subscription that gets the event."""
    subscriptions = [None, *(name for name, _ in result.rows)]
    views = [None, *(_stream(batch) for _, batch in result.rows)]
    size = len(subscriptions)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([number] * size, type=pa.int64()),
            pa.array([result.refused] * size, type=pa.string()),
            pa.array(subscriptions, type=pa.string()),
            pa.array(views, type=pa.binary()),
        ],
        names=["task", "refused", "subscription", "seen"],
    )


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
