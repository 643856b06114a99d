"""The log as a stream of commit numbers: what a delivery job's query follows. Needs pyspark.

An offset is a commit's number and digest, so a checkpoint knows its log again and refuses another one under the same
path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StructField, StructType

from maia.errors import UsageError
from maia.log import LogDirectory

Offset = dict[str, int | str]
MAX_COMMITS = 64
_SCHEMA = pa.schema([pa.field("commit", pa.int64(), nullable=False)])


def offset_of(log: LogDirectory, number: int) -> Offset:
    """Make the offset of a commit; of -1, the one before all."""
    return {"commit": number, "digest": log.digest(number)}


def check_offset(log: LogDirectory, offset: Offset) -> int:
    """Return the commit number of an offset, after finding that commit unchanged.

    Raises:
        UsageError: The log ends earlier (``LOG_BEHIND``), or has another commit there (``LOG_FOREIGN``).
        NotFoundError: What comes after it has expired: ``LOG_EXPIRED``.
    """
    number = int(offset["commit"])
    log.check_expired(number)
    if number > log.latest():
        raise UsageError(f"the checkpoint knows commit {number} of the log, which ends earlier", code="LOG_BEHIND")
    if log.digest(number) != offset["digest"]:
        raise UsageError(f"commit {number} of the log is not the one the checkpoint knows", code="LOG_FOREIGN")
    return number


class LogFollower(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offers the commits of a log in order, a bounded number at a time."""

    def __init__(self, log: LogDirectory, *, first: str = "earliest", most: int = MAX_COMMITS) -> None:
        """Follow a log from its first commit that has not expired, after its latest, or after a given one."""
        self.log = log
        self._first = first
        self._most = most
        self._end: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Start where it was asked."""
        if self._first == "latest":
            return offset_of(self.log, self.log.latest())
        if self._first == "earliest":
            return offset_of(self.log, self.log.expired())
        self.log.check_expired(int(self._first))
        return offset_of(self.log, int(self._first))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Bound a micro-batch."""
        return ReadMaxFiles(self._most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember where to end."""
        self._end = self.log.latest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Offer the next commits, at most so many."""
        latest = self.log.latest() if self._end is None else self._end
        after = check_offset(self.log, start)
        if not isinstance(limit, ReadAllAvailable):
            latest = min(latest, after + self._most)
        return offset_of(self.log, max(after, latest))

    def commit(self, end: Offset) -> None:
        """Nothing to release: the log keeps its commits until they expire."""


@dataclass
class CommitRange(InputPartition):
    """A stretch of the log."""

    after: int
    upto: int

    def __init__(self, after: int, upto: int) -> None:
        """Go from the commit after the one to the other."""
        super().__init__((after, upto))
        self.after = after
        self.upto = upto


class CommitReader(LogFollower):
    """Gives the numbers of the commits themselves."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Give the whole stretch to one task: numbers are small."""
        return [CommitRange(check_offset(self.log, start), check_offset(self.log, end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the numbers."""
        if isinstance(partition, CommitRange):
            numbers = pa.array(range(partition.after + 1, partition.upto + 1), type=pa.int64())
            yield pa.RecordBatch.from_arrays([numbers], schema=_SCHEMA)


class LogSource(DataSource):
    """The commits of a log as a stream."""

    @classmethod
    def name(cls) -> str:
        """Answer to this format, once registered."""
        return "maia_log"

    def schema(self) -> StructType:
        """One column: the commit's number."""
        return StructType([StructField("commit", LongType(), nullable=False)])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's signature
        """Follow the log."""
        return CommitReader(LogDirectory(self.options["path"]), first=self.options["first"])
