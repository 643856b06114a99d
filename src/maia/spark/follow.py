"""Following a stream from a program: its rows are given micro-batch by micro-batch, until somebody says stop.

A file that is followed into holds every micro-batch once, however often the program is killed: where the last whole one
ended is kept beside Spark's own place, and what came after it is cut off before the micro-batch is written again.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import IO

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from maia.errors import EncodingError
from maia.spark.cells import plain_rows
from maia.spark.connect import refuse_connect
from maia.spark.errors import spark_errors

Rows = Iterator[dict[str, object]]
Take = Callable[[Rows, int], bool]
"""Takes the rows of a micro-batch, which has this number; false when it wants no more."""
_LOOK = 0.5
_EVERY = "1 second"
_PLACE = "maia-place.json"


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a stream is: the micro-batch that was done last, and the rows a second it went through."""

    batch: int
    rows: int
    rate: float


Look = Callable[[Lag], None]


def follow_rows(
    frame: DataFrame, take: Take, *, stop: Event, look: Look, checkpoint: Path | None = None, every: str = _EVERY
) -> None:
    """Follow a stream until ``stop`` is set, or ``take`` wants no more.

    Args:
        frame: A streaming frame.
        take: Gets every micro-batch.
        stop: Set from outside to end.
        look: Told how far it is, twice a second.
        checkpoint: Where the place is kept; without one it begins anew each time, and nothing is left behind.
        every: How often to look for more.

    Raises:
        MaiaError: The log is damaged or expired, or Spark failed.
    """
    refuse_connect(frame, "following with a function of this process", "write the stream with `frame.writeStream`")
    done = Event()

    def each(rows: DataFrame, batch: int) -> None:
        if not done.is_set() and not take(plain_rows(rows), batch):
            done.set()

    with ExitStack() as stack, spark_errors():
        place = checkpoint
        if place is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="maia-follow-")))
        writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", str(place))
        watch_query(writer.trigger(processingTime=every).start(), stop=stop, look=look, done=done)


def follow_to_parquet(
    frame: DataFrame, folder: Path, *, stop: Event, look: Look, checkpoint: Path, every: str = _EVERY
) -> None:
    """Follow a stream into a folder of Parquet files, each micro-batch once.

    Raises:
        MaiaError: The log is damaged or expired, or Spark failed.
    """
    with spark_errors():
        writer = frame.writeStream.format("parquet").option("path", str(folder))
        writer = writer.option("checkpointLocation", str(checkpoint))
        watch_query(writer.trigger(processingTime=every).start(), stop=stop, look=look)


def watch_query(query: StreamingQuery, *, stop: Event, look: Look, done: Event | None = None) -> None:
    """Wait for a query to end; ``stop`` ends it from outside, ``done`` from inside.

    Raises:
        MaiaError: The query failed.
    """
    with spark_errors():
        try:
            while query.isActive and not (done is not None and done.is_set()) and not stop.wait(_LOOK):
                progress = query.lastProgress
                if progress is not None:
                    look(Lag(progress.batchId, progress.numInputRows, progress.processedRowsPerSecond or 0.0))
            failed = None if done is not None and done.is_set() else query.exception()
        finally:
            query.stop()
        if failed is not None:
            raise failed


class OnceFile:
    """A file that only its owner reads, to which every micro-batch is appended once."""

    def __init__(self, path: Path, place: Path) -> None:
        """Go on with a file.

        Args:
            path: The file; what it holds before the first micro-batch stays.
            place: The folder of the checkpoint that goes with it.

        Raises:
            EncodingError: The place that was kept cannot be read, or the file lost what was in it:
                ``CHECKPOINT_DAMAGED``.
        """
        self._place = place / _PLACE
        known = self._read() if self._place.exists() else None
        self._stream: IO[bytes] = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        size = self._stream.seek(0, os.SEEK_END)
        self._batch, self._end = known or (-1, size)
        if size < self._end:
            self._stream.close()
            raise EncodingError(
                f"`{path}` is shorter than it was: bring it back, or remove `{place}` to begin anew",
                code="CHECKPOINT_DAMAGED",
            )
        self._stream.truncate(self._end)

    def append(self, lines: Iterator[bytes], batch: int) -> int:
        """Write a micro-batch, unless it is there already; return how many lines that were."""
        if batch <= self._batch:
            return 0
        self._stream.truncate(self._end)
        self._stream.seek(self._end)
        count = 0
        for line in lines:
            self._stream.write(line)
            count += 1
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._batch, self._end = batch, self._stream.tell()
        part = self._place.with_suffix(".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="ascii") as file:
            json.dump({"batch": self._batch, "end": self._end}, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._place)
        return count

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _read(self) -> tuple[int, int]:
        try:
            value = json.loads(self._place.read_bytes())
            return int(value["batch"]), int(value["end"])
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise EncodingError("the place of the file cannot be read", code="CHECKPOINT_DAMAGED") from error
