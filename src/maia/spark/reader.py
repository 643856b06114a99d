"""The reading half of the data source: planned with the rights of now, opened where the keys are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from maia.domain import (
    Domain,
    LogPart,
    ProvenClient,
    Stretch,
    audit_of,
    begin_read,
    keep_parked,
    parts_of,
    reader_of,
    scan,
    share_out,
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
from maia.home import Home, now
from maia.kernel import DeliverPlan
from maia.log import AuditRow, Places, process_name
from maia.spark.java import driver_process
from maia.spark.log_stream import LogFollower, Offset
from maia.spark.one_line import in_one_line
from maia.spark.options import SourceOptions
from maia.spark.pushdown import Pushed, keep, take_filters
from maia.spark.session import check_task

_SOON = timedelta(seconds=10)
"""Spark begins a micro-batch right after it was offered."""


@dataclass
class LogPartition(InputPartition):
    """Files of the log for one task, and the plan by which they are read. The plan holds clauses, no keys.

    Attributes:
        parts: The files.
        plan: The plan.
        operation: The intent, by its number in the audit.
        number: Which part of it this is.
    """

    parts: tuple[LogPart, ...]
    plan: DeliverPlan
    operation: int
    number: int

    def __init__(self, parts: tuple[LogPart, ...], plan: DeliverPlan, operation: int, number: int) -> None:
        """Carry them to a worker."""
        super().__init__(parts[0].file.path)
        self.parts = parts
        self.plan = plan
        self.operation = operation
        self.number = number


def _plan(
    domain: Domain, asked: SourceOptions, client: ProvenClient, stretch: Stretch, *, at: datetime, tell: bool
) -> DeliverPlan:
    """Plan by what was followed just now."""
    return domain.deliver_plan(
        asked.type, client=client, where=asked.where, version=asked.version, commits=stretch.commits, at=at,
        followed=True, tell=tell,
    )  # fmt: skip


def _partitions(
    domain: Domain, client: ProvenClient, columns: tuple[str, ...], stretch: Stretch, plan: DeliverPlan
) -> list[InputPartition]:
    groups = share_out(parts_of(stretch.commits, plan), cores=os.cpu_count() or 1)
    # SECURITY: the intent is durable before a worker learns what to read.
    operation = begin_read(
        domain.home, plan, stretch.commits, client, attributes=columns, parts=len(groups),
        at=domain.clock(), process=process_name(driver_process()),
    )  # fmt: skip
    return [LogPartition(group, plan, operation, number) for number, group in enumerate(groups)]


def _read(
    asked: SourceOptions, columns: tuple[str, ...], partition: InputPartition, *, lenient: bool
) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, LogPartition):
        return
    with in_one_line():
        home = Home.open(asked.home)
        check_task(trusted=home.trusts_disks)
        yield from scan(
            home, partition.plan, partition.parts, client=asked.as_, columns=columns,
            with_event_id=asked.with_event_id, clock=now, operation=partition.operation, part=partition.number,
            lenient=lenient,
        )  # fmt: skip


class MaiaReader(DataSourceReader):
    """Reads the log as one client may see it now."""

    def __init__(self, asked: SourceOptions, columns: tuple[str, ...]) -> None:
        """Remember what was asked for, and the columns that Spark was promised."""
        self.asked = asked
        self.columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        """Plan on the driver; a refused client or filter fails here, before anything is read."""
        with in_one_line(), Domain.open(self.asked.home) as domain:
            at = domain.follow()
            name = domain.find_type(self.asked.type, self.asked.version)
            # Whoever reads a segment compares its digest; a reader without an offset loses nothing by passing one by.
            found = type_stretch(domain, name, after={}, at=at, deep=False)
            reader = reader_of(self.asked.as_, self.asked.type, batch=True)
            keep_parked(domain.home, reader, found.alarms, at=at)
            client = self.asked.prove(domain)
            plan = _plan(domain, self.asked, client, found, at=at, tell=True)
            return _partitions(domain, client, self.columns, found, plan)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read files on a worker."""
        return _read(self.asked, self.columns, partition, lenient=True)


class PushingReader(MaiaReader):
    """Reads the same, and drops the rows that a query's filters do not want before they go to the JVM."""

    pushed: tuple[Pushed, ...] = ()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take the filters that mean the same here; the others stay with Spark."""
        self.pushed, left = take_filters(filters, self.columns)
        return left

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read files on a worker, and keep what the filters want."""
        return (keep(batch, self.pushed) for batch in super().read(partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offered:
    """What was offered to Spark last, and the plan by which that was judged."""

    start: Places
    end: Places
    known: object
    stretch: Stretch
    plan: DeliverPlan


class MaiaStreamReader(LogFollower):
    """Follows the log; rights, subscriptions and statements are looked at anew for each micro-batch.

    A micro-batch is planned once: where it is offered, or where it is begun, when there is no such plan or the home has
    heard something since. Whoever has to confirm a right is asked once for it, and never while there is nothing to see.
    """

    def __init__(self, asked: SourceOptions, columns: tuple[str, ...]) -> None:
        """Remember what was asked for, and the columns that Spark was promised."""
        reader = reader_of(asked.as_, asked.type, batch=False)
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
        """Find what can be gone through of the one type."""
        name = self.domain.find_type(self.asked.type, self.asked.version)
        return type_stretch(self.domain, name, after=after, at=at, most=most, upto=upto, deep=deep)

    def ends(self, *, at: datetime) -> Offset:
        """Tell where the lanes of the type, and of those that extend it, end now."""
        name = self.domain.find_type(self.asked.type, self.asked.version)
        types = (name.type_id, *self.domain.known(at=at).sessions.children(name.type_id))
        return self.domain.log.ends(
            identity.hex() for type_id in types for identity in self.domain.home.wire_ids(type_id)
        )

    def judge(self, start: Places, found: Stretch, *, at: datetime) -> None:
        """Plan what is going to be offered; a denial that is proven is told when the micro-batch begins.

        Raises:
            MaiaError: The client's right cannot be judged, see `doubt`.
        """
        self._offered = None
        try:
            plan = _plan(self.domain, self.asked, self._client(), found, at=at, tell=False)
        except (VerificationError, DeniedError) as error:
            if self.doubt(error, at=at):
                raise
        else:
            self._offered = _Offered(
                start=start, end=found.upto, known=self.domain.known(at=at), stretch=found, plan=plan
            )

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
                return _partitions(self.domain, self._client(), self.columns, offered.stretch, offered.plan)
            found = self.stretch(start, at=at, upto=end, deep=False)
            if dict(found.upto) != end:
                codes = ", ".join(sorted({code for _, code in found.parked})) or "LANE_GAP"
                raise UnavailableError(f"a part of the log is in doubt again: {codes}", code="LANE_PARKED")
            try:
                client = self._client()
                plan = _plan(self.domain, self.asked, client, found, at=at, tell=False)
            except MaiaError as error:
                if code := self.doubt(error, at=at):
                    raise UnavailableError(
                        f"the client's right is in doubt again: {code}", code="LANE_PARKED"
                    ) from error
                if not isinstance(error, VerificationError | DeniedError):
                    raise
                _refuse(self.domain, self.asked, found, error.code)
                return []
            return _partitions(self.domain, client, self.columns, found, plan)

    def _client(self) -> ProvenClient:
        try:
            return self.asked.prove(self.domain)
        except VerificationError as error:  # the key was here when the stream began
            raise UncheckedError(error.message, code=error.code) from error

    def _stands(self, offered: _Offered, start: Offset, end: Offset, *, at: datetime) -> bool:
        """Tell whether a plan is the one for a micro-batch, and would be made the same way now."""
        # SECURITY: whatever certificate, list, type or key the home took up since makes another snapshot.
        return (
            (offered.start, offered.end) == (start, end)
            and offered.known is self.domain.known(at=at)
            and timedelta(0) <= at - offered.plan.term.made < _SOON
            and at < offered.plan.term.until
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read files on a worker."""
        return _read(self.asked, self.columns, partition, lenient=False)


def _refuse(domain: Domain, asked: SourceOptions, stretch: Stretch, code: str) -> None:
    """Put into the audit that a stream was refused a stretch of the log."""
    home = domain.home
    name = domain.find_type(asked.type, asked.version)
    row = AuditRow(
        at=domain.clock(), kind="refuse", principal=home.key(asked.as_).fingerprint, type_id=name.type_id.hex(),
        source=f"{len(stretch.commits)} commits", subject=asked.as_, code=code,
        events=sum(commit.events for commit in stretch.commits),
    )  # fmt: skip
    audit_of(home).note([row])
