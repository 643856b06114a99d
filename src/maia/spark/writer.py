"""The writing half of the data source: enforced and sealed on the workers, made to count by one commit."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from maia.domain import Domain, Written, commit_publication, write_partition
from maia.errors import DeniedError, NotFoundError, UsageError, VerificationError
from maia.home import Home, now
from maia.kernel import PublishPlan
from maia.log import RefusedRows
from maia.spark.one_line import in_one_line
from maia.spark.options import SourceOptions
from maia.spark.session import check_task


@dataclass
class WrittenMessage(WriterCommitMessage):
    """Carries what one task wrote back to the driver."""

    written: Written


def _plan(asked: SourceOptions, publication: str) -> PublishPlan:
    with Domain.open(asked.home) as domain:
        return domain.publish_plan(
            asked.type, client=asked.as_, version=asked.version, publication=publication, max_events=asked.max_events
        )


def _write(plan: PublishPlan, asked: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    context = TaskContext.get()
    home = Home.open(asked.home)
    check_task(trusted=home.trusts_disks)
    partition = 0 if context is None else context.partitionId()
    return write_partition(home, plan, partition, batches, at=now())


def _commit(
    plan: PublishPlan,
    asked: SourceOptions,
    messages: Sequence[WriterCommitMessage | None],
    *,
    query: str = "",
    batch: int = -1,
) -> None:
    written = [message.written for message in messages if isinstance(message, WrittenMessage)]
    with in_one_line(), Domain.open(asked.home) as domain:
        commit_publication(
            domain.home, domain.log, plan, written, client=asked.as_, at=domain.clock(), query=query, batch=batch
        )


class MaiaWriter(DataSourceArrowWriter):
    """Publishes a batch: enforced and sealed on the workers, made to count by one commit."""

    def __init__(self, asked: SourceOptions) -> None:
        """Advertise now; a client without the right fails before anything is written."""
        self.asked = asked
        self.plan = _plan(asked, asked.publication or secrets.token_hex(16))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Enforce and seal one partition on a worker."""
        with in_one_line():
            return WrittenMessage(_write(self.plan, self.asked, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make all files of the publication count, at once."""
        _commit(self.plan, self.asked, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Leave what was written as ciphertext that no commit names."""


class MaiaStreamWriter(DataSourceStreamArrowWriter):
    """Publishes a stream; a micro-batch that Spark repeats is recognised by its number and counts once.

    The plan is made anew for each micro-batch, where it is used: a right that ended refuses the rows that come after.
    A checkpoint that was lost, replaced or taken from another time is recognised by the log, which refuses to go on:
    see `OwnLanes.commit`.
    """

    def __init__(self, asked: SourceOptions) -> None:
        """Advertise now; a client without the right fails before the stream starts."""
        if asked.publication is None:
            raise UsageError(
                "a stream that publishes needs the option `publication`: a name that stays the same after a restart",
                code="MISSING_OPTION",
            )
        self.asked = asked
        self.plan = _plan(asked, asked.publication)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Enforce and seal one partition on a worker, with the rights of now."""
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        if context is None or batch is None or query is None:
            raise UsageError("a stream is published by a streaming query", code="NO_STREAMING_QUERY")
        try:
            # INVARIANT: names of events hold the micro-batch, so no two micro-batches share one.
            plan = _plan(self.asked, f"{self.asked.publication}/{batch}")
        except (VerificationError, DeniedError, NotFoundError) as error:
            count = sum(rows.num_rows for rows in iterator)
            letters = (RefusedRows.of(context.partitionId(), error.code, range(count)),) if count else ()
            return WrittenMessage(Written(None, letters, query=query))
        with in_one_line():
            return WrittenMessage(replace(_write(plan, self.asked, iterator), query=query))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make the micro-batch count, once."""
        queries = {message.written.query for message in messages if isinstance(message, WrittenMessage)}
        if len(queries) != 1:
            raise UsageError("a stream is published by one streaming query", code="NO_STREAMING_QUERY")
        _commit(self.plan, self.asked, messages, query=queries.pop(), batch=batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Leave what was written as ciphertext that no commit names."""
