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
    open_own_order,
    order_to_publish,
    publication_operation,
    take_up,
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
from maia.spark.session import check_task, is_local_task


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A publication that was planned, and is in the audit as an intent of this number; its plan may be in an order."""

    plan: PublishPlan | None
    operation: int
    order: bytes | None = None

    def whole(self, home: Home) -> PublishPlan:
        """Give the plan, where it was made."""
        plan = self.plan if self.order is None else open_own_order(self.order, home).plan
        assert isinstance(plan, PublishPlan)  # noqa: S101 - that is what was ordered
        return plan


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
        order = order_to_publish(domain, plan, asked.as_, operation=made.number, at=domain.clock())
        return PlannedWrite(plan if order is None else None, made.number, order)


def _write(
    planned: PlannedWrite, asked: SourceOptions, batches: Iterator[pa.RecordBatch], *, batch: str | None = None
) -> Written:
    context = TaskContext.get()
    place, plan = take_up(asked.home, planned.order, planned.plan, local=is_local_task())
    check_task(trusted=place.trusts_disks)
    assert isinstance(plan, PublishPlan)  # noqa: S101 - that is what was ordered
    if batch is not None:
        # INVARIANT: names of events hold the micro-batch, so no two micro-batches share one.
        plan = replace(plan, publication=f"{plan.publication}/{batch}")
    partition = 0 if context is None else context.partitionId()
    return write_partition(place, plan, partition, batches, at=now(), naive_timestamps=asked.naive_timestamps)


def _commit(
    planned: PlannedWrite,
    asked: SourceOptions,
    messages: Sequence[WriterCommitMessage | None],
    *,
    query: str = "",
    batch: int = -1,
) -> None:
    written = [message.written for message in messages if isinstance(message, WrittenMessage)]
    ordered = planned.order is not None and any(item.by_task for item in written)
    with in_one_line(), Domain.open(asked.home) as domain:
        # Spark does not say here whether the session is a local one, so what no worker wrote is looked at.
        done = commit_publication(
            domain.home, domain.lanes, planned.whole(domain.home), written, client=asked.as_,
            operation=planned.operation, at=domain.clock(), query=query, batch=batch,
            ordered=ordered, doubted=planned.order is not None,
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
            return WrittenMessage(_write(self.planned, self.asked, iterator), self.planned)

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
        with in_one_line():
            written = _write(self.planned, self.asked, iterator, batch=batch)
            return WrittenMessage(replace(written, query=query), self.planned)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make the micro-batch count, once."""
        written = [message for message in messages if isinstance(message, WrittenMessage)]
        queries = {message.written.query for message in written}
        if len(queries) != 1:
            raise UsageError("a stream is published by one streaming query", code="NO_STREAMING_QUERY")
        planned = next((message.planned for message in written if message.written.file is not None), written[0].planned)
        _commit(planned, self.asked, messages, query=queries.pop(), batch=batchId)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Leave what was written as ciphertext that no commit names."""
        planned = {message.planned.operation for message in messages if isinstance(message, WrittenMessage)}
        _abort(self.asked, planned or _last_planned(self.asked))  # no task may have come as far as to say its plan
