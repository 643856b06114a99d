"""Runs the tasks of a scenario in Spark's Python workers; one Spark context serves all scenarios of a run."""

from __future__ import annotations

import contextlib
import pickle
import threading
from collections.abc import Iterator

import pyarrow as pa

from maia.cli.conformance.scenarios import Task, TaskResult, run_task
from maia.pipeline import session

_SCHEMA = "result binary"
_starting = threading.Lock()


def warm_up() -> None:
    """Start Spark and one worker ahead of the first scenario that needs them; without Java, leave it to that one."""
    with _starting, contextlib.suppress(Exception):
        frame = session(spark_master="local[2]").range(2).repartition(2)
        frame.mapInArrow(lambda batches: batches, "id long").collect()


def run_in_spark(tasks: list[Task]) -> list[TaskResult]:
    """Run every task through `mapInArrow`, spread over two partitions."""
    if not tasks:
        return []
    with _starting:
        spark = session(spark_master="local[2]")
    # Plans and rows are this process's own values; nothing from outside is ever unpickled.
    rows = [(bytearray(pickle.dumps(task)),) for task in tasks]
    frame = spark.createDataFrame(rows, "task binary").repartition(2).mapInArrow(_run, _SCHEMA)
    results = [pickle.loads(bytes(row.result)) for row in frame.collect()]  # noqa: S301 - see above
    return sorted(results, key=lambda result: result.index)


def _run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        results = [run_task(pickle.loads(task.as_py())) for task in batch.column("task")]  # noqa: S301 - see above
        yield pa.RecordBatch.from_pydict({"result": [pickle.dumps(result) for result in results]})
