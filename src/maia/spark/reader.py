"""The reading half of the data source: planned with the rights of now, opened where the keys are."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from maia.domain import (
    Domain,
    LogPart,
    ProvenClient,
    Stretch,
    TypePart,
    begin_read,
    keep_parked,
    note_refused,
    order_to_read,
    parts_of,
    plan_parts,
    reader_of,
    scan,
    share_out,
    take_results,
    take_up,
    type_stretch,
)
from maia.errors import (
    DeniedError,
    MaiaError,
    MalformedError,
    NotFoundError,
    UnavailableError,
    UncheckedError,
    VerificationError,
)
from maia.home import now
from maia.kernel import DeliverPlan
from maia.log import Places, process_name
from maia.spark.java import driver_process
from maia.spark.log_stream import LogFollower, Offset
from maia.spark.one_line import in_one_line
from maia.spark.options import SourceOptions
from maia.spark.session import check_task, is_local_task

_SOON = timedelta(seconds=10)
"""Spark begins a micro-batch right after it was offered."""


@dataclass
class LogPartition(InputPartition):
    """Files of the log for one task, and the plan by which they are read. The plan holds clauses, no keys.

    A domain that has workers seals it to them, with the keys, in an order.

    Attributes:
        parts: The files.
        plan: The plan; none where there is an order.
        order: The order, see `maia.domain.orders`.
        operation: The intent, by its number in the audit.
        number: Which part of it this is.
    """

    parts: tuple[LogPart, ...]
    plan: DeliverPlan | None
    order: bytes | None
    operation: int
    number: int

    def __init__(
        self,
        parts: tuple[LogPart, ...],
        plan: DeliverPlan | None,
        operation: int,
        number: int,
        order: bytes | None = None,
    ) -> None:
        """Carry them to a worker."""
        super().__init__(parts[0].file.path)
        self.parts = parts
        self.plan = plan
        self.order = order
        self.operation = operation
        self.number = number


def _plan(
    domain: Domain, asked: SourceOptions, client: ProvenClient, stretch: Stretch, *, at: datetime, tell: bool
) -> tuple[TypePart, ...]:
    """Plan by what was followed just now, type by type."""
    parts = plan_parts(
        domain, asked.events, client=client, where=asked.where, commits=stretch.commits, at=at, tell=tell,
        frames=asked.frames(domain),
    )  # fmt: skip
    if asked.window is None:
        return parts
    return tuple(
        replace(part, plan=None if part.plan is None else replace(part.plan, window=asked.window)) for part in parts
    )


def _partitions(
    domain: Domain, client: ProvenClient, columns: tuple[str, ...], parts: Sequence[TypePart]
) -> list[InputPartition]:
    found: list[InputPartition] = []
    take_results(domain.home)
    for part in parts:
        if part.plan is None:
            if part.commits:
                note_refused(domain, part, client.name)
            continue
        groups = share_out(parts_of(part.commits, part.plan, domain.log), cores=os.cpu_count() or 1)
        # SECURITY: the intent is durable before a worker learns what to read.
        operation = begin_read(
            domain.home, part.plan, part.commits, client, attributes=columns, parts=len(groups),
            at=domain.clock(), process=process_name(driver_process()),
        )  # fmt: skip
        order = order_to_read(domain, part.plan, client.name, operation=operation, at=domain.clock())
        plan = part.plan if order is None else None
        found += [LogPartition(group, plan, operation, number, order) for number, group in enumerate(groups)]
    return found


def _read(
    asked: SourceOptions, columns: tuple[str, ...], partition: InputPartition, *, lenient: bool
) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, LogPartition):
        return
    with in_one_line():
        place, plan = take_up(asked.home, partition.order, partition.plan, local=is_local_task())
        check_task(trusted=place.trusts_disks)
        assert isinstance(plan, DeliverPlan)  # noqa: S101 - that is what was ordered
        yield from scan(
            place, plan, partition.parts, client=asked.as_, columns=columns,
            with_event_id=asked.with_event_id, clock=now, operation=partition.operation, part=partition.number,
            lenient=lenient,
        )  # fmt: skip


class MaiaReader(DataSourceReader):
    """Reads the log as one client may see it now.

    It takes no filters that Spark would push: Spark 4.2 keeps what was pushed for one use of a frame and reads by it in
    every other, so that a frame joined with a part of itself loses rows. The option ``where`` is told to the kernel.
    """

    def __init__(self, asked: SourceOptions, columns: tuple[str, ...]) -> None:
        """Remember what was asked for, and the columns that Spark was promised."""
        self.asked = asked
        self.columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        """Plan on the driver; a refused client or filter fails here, before anything is read."""
        with in_one_line(), Domain.open(self.asked.home) as domain:
            at = domain.follow()
            names = self.asked.events.names(domain)
            # Whoever reads a segment compares its digest; a reader without an offset loses nothing by passing one by.
            found = type_stretch(domain, *names, after={}, at=at, deep=False, window=self.asked.window)
            reader = reader_of(self.asked.as_, self.asked.events.text, batch=True)
            keep_parked(domain.home, reader, found.alarms, at=at)
            client = self.asked.prove(domain)
            return _partitions(
                domain, client, self.columns, _plan(domain, self.asked, client, found, at=at, tell=True)
            )  # fmt: skip

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read files on a worker."""
        return _read(self.asked, self.columns, partition, lenient=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offered:
    """What was offered to Spark last, and the plans by which that was judged."""

    start: Places
    end: Places
    known: object
    parts: tuple[TypePart, ...]


class MaiaStreamReader(LogFollower):
    """Follows the log; rights, subscriptions and statements are looked at anew for each micro-batch.

    A micro-batch is planned once: where it is offered, or where it is begun, when there is no such plan or the home has
    heard something since. Whoever has to confirm a right is asked once for it, and never while there is nothing to see.
    """

    def __init__(self, asked: SourceOptions, columns: tuple[str, ...]) -> None:
        """Remember what was asked for, and the columns that Spark was promised."""
        reader = reader_of(asked.as_, asked.events.text, batch=False)
        super().__init__(asked.home, reader=reader, first=asked.starting_offsets, most=asked.max_commits)
        self.asked = asked
        self.columns = columns
        self._offered: _Offered | None = None

    def __getstate__(self) -> dict[str, object]:
        """Travel to workers without what was planned on the driver."""
        return {**super().__getstate__(), "_offered": None}

    def stretch(
        self, after: Places, *, at: datetime, most: int | None = None, upto: Places | None = None, deep: bool = True
    ) -> Stretch:
        """Find what can be gone through of the type, or of the topics that there are by now."""
        names = self.asked.events.names(self.domain)
        return type_stretch(self.domain, *names, after=after, at=at, most=most, upto=upto, deep=deep)

    def ends(self, *, at: datetime) -> Offset:
        """Tell where the lanes of the type or of the topics, and of what extends them, end now."""
        names, known = self.asked.events.names(self.domain), self.domain.known(at=at)
        return self.domain.log.ends(one for name in names for one in known.read_as(name.type_id, self.domain.home))

    def judge(self, start: Places, found: Stretch, *, at: datetime) -> None:
        """Plan what is going to be offered; a denial that is proven is told when the micro-batch begins.

        Raises:
            MaiaError: The client's right cannot be judged, see `doubt`.
        """
        self._offered = None
        try:
            parts = _plan(self.domain, self.asked, self._client(), found, at=at, tell=False)
        except (VerificationError, DeniedError) as error:
            if self.doubt(error, at=at):
                raise
        else:
            self._offered = _Offered(start=start, end=found.upto, known=self.domain.known(at=at), parts=parts)

    def doubt(self, error: MaiaError, *, at: datetime) -> str:
        """Tell why the client's right cannot be judged: something is missing or damaged here, or a statement late."""
        if isinstance(error, UncheckedError | NotFoundError | MalformedError):
            return error.code
        denied = isinstance(error, VerificationError | DeniedError)
        return error.code if denied and self.domain.known(at=at).failed else ""

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Plan one micro-batch with the rights of now; a client that lost its right sees nothing of it."""
        with in_one_line():
            at = self.domain.follow()
            offered, self._offered = self._offered, None
            if offered is not None and self._stands(offered, start, end, at=at):
                return _partitions(self.domain, self._client(), self.columns, offered.parts)
            found = self.stretch(start, at=at, upto=end, deep=False)
            if dict(found.upto) != end:
                codes = ", ".join(sorted({code for _, code in found.parked})) or "LANE_GAP"
                raise UnavailableError(f"a part of the log is in doubt again: {codes}", code="LANE_PARKED")
            try:
                client = self._client()
                parts = _plan(self.domain, self.asked, client, found, at=at, tell=False)
            except MaiaError as error:
                if code := self.doubt(error, at=at):
                    raise UnavailableError(
                        f"the client's right is in doubt again: {code}", code="LANE_PARKED"
                    ) from error
                if not isinstance(error, VerificationError | DeniedError):
                    raise
                name = self.asked.events.names(self.domain)[0]
                refused = TypePart(name=name, commits=found.commits, plan=None, code=error.code)
                note_refused(self.domain, refused, self.asked.as_)
                return []
            return _partitions(self.domain, client, self.columns, parts)

    def _client(self) -> ProvenClient:
        try:
            return self.asked.prove(self.domain)
        except VerificationError as error:  # the key was here when the stream began
            raise UncheckedError(error.message, code=error.code) from error

    def _stands(self, offered: _Offered, start: Offset, end: Offset, *, at: datetime) -> bool:
        """Tell whether a plan is the one for a micro-batch, and would be made the same way now."""
        # SECURITY: whatever certificate, list, type or key the home took up since makes another snapshot.
        terms = [part.plan.term for part in offered.parts if part.plan is not None]
        return (
            (offered.start, offered.end) == (start, end)
            and offered.known is self.domain.known(at=at)
            and all(timedelta(0) <= at - term.made < _SOON and at < term.until for term in terms)
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read files on a worker."""
        return _read(self.asked, self.columns, partition, lenient=False)
