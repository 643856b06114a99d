"""What the tests run on workers. Importable there, since the folder is on the workers' path."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from maia.home import Home

CANARY_TIME = datetime(2031, 3, 7, tzinfo=UTC)


def fail_once(marker: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Let the first attempt of each task be killed after it handed on its rows."""
    from pyspark import TaskContext

    yield from batches
    context = TaskContext.get()
    assert context is not None
    path = Path(f"{marker}-{context.partitionId()}")
    if not path.exists():
        path.write_text("killed once", "utf-8")
        os.kill(os.getpid(), signal.SIGKILL)


def stamps(home: str) -> Callable[[], int]:
    """Give the stamps of a home, where it is called."""
    return Home.open(home).next_stamp


def canaries(reversed_word: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn row numbers into events whose every attribute is found again wherever it lies."""
    word = reversed_word[::-1]  # so that the plan does not hold what is hunted for
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        yield pa.RecordBatch.from_pydict(
            {
                "numberplate": [f"{word}-plate-{number}" for number in numbers],
                "timestamp": pa.array(
                    [CANARY_TIME + timedelta(microseconds=number) for number in numbers], pa.timestamp("us", tz="UTC")
                ),
                "location": [f"{word}-place-{number}" for number in numbers],
            }
        )
