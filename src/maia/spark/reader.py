"""The reading half of the data source: planned with the rights of now, opened where the keys are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from maia.domain import Domain, LogPart, parts_of, scan, share_out
from maia.errors import DeniedError, VerificationError
from maia.home import Home, now
from maia.kernel import DeliverPlan
from maia.log import AuditRow, LogDirectory, write_audit
from maia.spark.log_stream import LogFollower, Offset, check_offset
from maia.spark.one_line import in_one_line
from maia.spark.options import SourceOptions
from maia.spark.pushdown import Pushed, keep, take_filters
from maia.spark.session import check_task


@dataclass
class LogPartition(InputPartition):
    """Files of the log for one task, and the plan by which they are read. The plan holds clauses, no keys."""

    parts: tuple[LogPart, ...]
    plan: DeliverPlan

    def __init__(self, parts: tuple[LogPart, ...], plan: DeliverPlan) -> None:
        """Carry them to a worker."""
        super().__init__(parts[0].file.path)
        self.parts = parts
        self.plan = plan


def _partitions(domain: Domain, asked: SourceOptions, after: int, upto: int) -> list[InputPartition]:
    commits = list(domain.log.commits(after=after, upto=upto))
    plan = domain.deliver_plan(
        asked.type, client=asked.prove(domain), where=asked.where, version=asked.version, commits=commits
    )  # fmt: skip
    names = plan.type_ids()
    parts = parts_of([commit for commit in commits if commit.type_id in names], domain.repeats)
    plan = replace(plan, horizon=domain.repeats.horizon)
    return [LogPartition(group, plan) for group in share_out(parts, cores=os.cpu_count() or 1)]


def _read(asked: SourceOptions, columns: tuple[str, ...], partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, LogPartition):
        return
    with in_one_line():
        home = Home.open(asked.home)
        check_task(trusted=home.trusts_disks)
        yield from scan(
            home, partition.plan, partition.parts, client=asked.as_, columns=columns,
            with_event_id=asked.with_event_id, at=now(),
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
            return _partitions(domain, self.asked, domain.log.expired(), domain.log.latest())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read files on a worker."""
        return _read(self.asked, self.columns, partition)


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


class MaiaStreamReader(LogFollower):
    """Follows the log; rights, subscriptions and statements are looked at anew for each micro-batch."""

    def __init__(self, asked: SourceOptions, columns: tuple[str, ...]) -> None:
        """Remember what was asked for, and the columns that Spark was promised."""
        home = Home.open(asked.home)
        super().__init__(LogDirectory(home.log_path), first=asked.starting_offsets, most=asked.max_commits)
        self.asked = asked
        self.columns = columns
        self._domain: Domain | None = None

    def __getstate__(self) -> dict[str, object]:
        """Travel to workers without what was opened on the driver."""
        return {**self.__dict__, "_domain": None}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Plan one micro-batch with the rights of now; a client that lost its right sees nothing of it."""
        with in_one_line():
            after, upto = check_offset(self.log, start), check_offset(self.log, end)
            if self._domain is None:
                self._domain = Domain.open(self.asked.home)
            try:
                return _partitions(self._domain, self.asked, after, upto)
            except (VerificationError, DeniedError) as error:
                _refuse(self._domain, self.asked, after, upto, error.code)
                return []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read files on a worker."""
        return _read(self.asked, self.columns, partition)


def _refuse(domain: Domain, asked: SourceOptions, after: int, upto: int, code: str) -> None:
    """Put into the audit that a stream was refused a stretch of the log."""
    home = domain.home
    name = domain.find_type(asked.type, asked.version)
    commits = domain.log.commits(after=after, upto=upto)
    names = {identity.hex() for identity in home.wire_ids(name.type_id)}
    events = sum(commit.events for commit in commits if commit.type_id in names)
    row = AuditRow(
        at=domain.clock(), kind="refuse", principal=home.key(asked.as_).fingerprint, type_id=name.type_id.hex(),
        source=f"commits {after + 1} to {upto}", subject=asked.as_, code=code, events=events,
    )  # fmt: skip
    write_audit(home.audit_path, [row])
