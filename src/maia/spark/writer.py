"""The writing half of the data source: enforced and sealed on the workers, made to count by one commit."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from maia.domain import (
    Domain,
    Operation,
    Written,
    audit_of,
    commit_publication,
    publication_operation,
    write_partition,
)
from maia.errors import UsageError
from maia.home import Home, now
from maia.kernel import PublishPlan
from maia.log import process_name
from maia.spark.fitting import tell_refused
from maia.spark.java import driver_process
from maia.spark.one_line import in_one_line
from maia.spark.options import SourceOptions
from maia.spark.session import check_task


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A publication that was planned, and is in the audit as an intent of this number."""

    plan: PublishPlan
    operation: int


@dataclass
class WrittenMessage(WriterCommitMessage):
    """Carries what one task wrote back to the driver, and what was planned."""

    written: Written
    planned: PlannedWrite


def plan_publication(asked: SourceOptions) -> PlannedWrite:
    """Prove the client's key, advertise for it, and put the intent into the audit, on the driver, before a task runs.

    Raises:
        MaiaError: The key is not proven, the type is unknown, or the client or the broker has no right.
    """
    with Domain.open(asked.home) as domain:
        plan = domain.publish_plan(
            asked.events.published(domain), client=asked.prove(domain),
            publication=asked.publication or secrets.token_hex(16), max_events=asked.max_events,
            advertise=asked.advertise,
        )  # fmt: skip
        made = publication_operation(
            domain.home, plan, client=asked.as_, at=domain.clock(), process=process_name(driver_process())
        )
        return PlannedWrite(plan, made.number)


def _write(plan: PublishPlan, asked: SourceOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    context = TaskContext.get()
    home = Home.open(asked.home)
    check_task(trusted=home.trusts_disks)
    partition = 0 if context is None else context.partitionId()
    return write_partition(home, plan, partition, batches, at=now())


def _commit(
    planned: PlannedWrite,
    asked: SourceOptions,
    messages: Sequence[WriterCommitMessage | None],
    *,
    query: str = "",
    batch: int = -1,
) -> None:
    written = [message.written for message in messages if isinstance(message, WrittenMessage)]
    with in_one_line(), Domain.open(asked.home) as domain:
        done = commit_publication(
            domain.home, domain.lanes, planned.plan, written, client=asked.as_, operation=planned.operation,
            at=domain.clock(), query=query, batch=batch,
        )  # fmt: skip
        tell_refused(done, stream=batch >= 0)


def _abort(asked: SourceOptions, operations: Collection[int]) -> None:
    """Put into the audit that these publications ended before they counted, unless it says why already."""
    with in_one_line():
        audit = audit_of(Home.open(asked.home))
        for number, intent in audit.waiting().items():
            if number in operations:
                Operation(audit, number, intent).end("ABORTED")


def _last_planned(asked: SourceOptions) -> set[int]:
    """Find the micro-batch of a stream that was planned last and has no result."""
    waiting = audit_of(Home.open(asked.home)).waiting().items()
    own = (asked.as_, str(asked.publication))
    return {max((number for number, row in waiting if (row.subject, row.source) == own), default=-1)}


class MaiaWriter(DataSourceArrowWriter):
    """Publishes a batch: enforced and sealed on the workers, made to count by one commit."""

    def __init__(self, asked: SourceOptions) -> None:
        """Plan now; a client without its key or a right fails before anything is written."""
        self.asked = asked
        self.planned = plan_publication(asked)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Enforce and seal one partition on a worker."""
        with in_one_line():
            return WrittenMessage(_write(self.planned.plan, self.asked, iterator), self.planned)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make all files of the publication count, at once."""
        _commit(self.planned, self.asked, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - Spark's signature
        """Leave what was written as ciphertext that no commit names."""
        _abort(self.asked, {self.planned.operation})


class MaiaStreamWriter(DataSourceStreamArrowWriter):
    """Publishes a stream; a micro-batch that Spark repeats is recognised by its number and counts once.

    Spark makes one on the driver for each micro-batch, and another to commit it: the first is made with a plan, which
    its tasks share, the second gets it from what they send back. A right that ended ends the stream before a row of the
    next micro-batch is taken; nothing is lost, since Spark offers those rows again. A checkpoint that was lost,
    replaced or taken from another time is recognised by the log, which refuses to go on: see `OwnLanes.commit`.
    """

    def __init__(self, asked: SourceOptions, planned: PlannedWrite | None) -> None:
        """Write by a plan; without one, commit what was written."""
        if asked.publication is None:
            raise UsageError(
                "a stream that publishes needs the option `publication`: a name that stays the same after a restart",
                code="MISSING_OPTION",
            )
        self.asked = asked
        self.planned = planned

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Enforce and seal one partition on a worker."""
        context = TaskContext.get()
        batch = None if context is None else context.getLocalProperty("streaming.sql.batchId")
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        if self.planned is None or batch is None or query is None:
            raise UsageError("a stream is published by a streaming query", code="NO_STREAMING_QUERY")
        # INVARIANT: names of events hold the micro-batch, so no two micro-batches share one.
        made = self.planned.plan
        plan = replace(made, publication=f"{made.publication}/{batch}")
        with in_one_line():
            return WrittenMessage(replace(_write(plan, self.asked, iterator), query=query), self.planned)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make the micro-batch count, once."""
        written = [message for message in messages if isinstance(message, WrittenMessage)]
        queries = {message.written.query for message in written}
        if len(queries) != 1:
            raise UsageError("a stream is published by one streaming query", code="NO_STREAMING_QUERY")
        _commit(written[0].planned, self.asked, messages, query=queries.pop(), batch=batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Leave what was written as ciphertext that no commit names."""
        planned = {message.planned.operation for message in messages if isinstance(message, WrittenMessage)}
        _abort(self.asked, planned or _last_planned(self.asked))  # no task may have come as far as to say its plan
