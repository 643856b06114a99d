"""The delivery job: follows the log and fills the outbox of all subscriptions of a domain, each event once.

One micro-batch covers a stretch of the log. The driver plans it with the rights of now, workers open, screen and seal
into files, and one record makes files and progress count together. Rules kept here:

- a micro-batch that is repeated is recognised by its number and the stretch it covers, and adds nothing; one that does
  not continue where the outbox ends is refused;
- an event is delivered to a subscription once, whatever the log repeats: repetitions (`repeats`) are dead letters, and
  no forged parcel keeps a true one out;
- damage to the log stops the job; a parcel that is refused does not, and becomes a dead letter with its code;
- nothing leaves a worker after opening but sealed files and counts.

The same steps run inside Spark, as a streaming query with a checkpoint (`maia.spark.start_job`), and without Spark
(`run_here`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from maia.errors import EncodingError, UsageError
from maia.events import ClosedAttributes
from maia.kernel import VOLUME_HIGH, DeliverPlan, DeliveryPlan, MakeKeys, VolumeWatch, omit_closed
from maia.log import (
    AuditRow,
    Commit,
    DeadLetter,
    LogDirectory,
    LogFile,
    Outbox,
    OutboxCommit,
    OutboxFile,
    OutboxWriter,
    Repeats,
    chain_hash,
    deliver_once,
    write_audit,
)

MakePlans = Callable[[Sequence[Commit], datetime], Iterable[DeliverPlan]]
"""Compiles, on the driver, the subscriptions of each type with the rights they have at an instant."""
MakeSecret = Callable[[], bytes]
"""Builds, where it is called, the secret that seals the outbox; it carries no key."""


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file of the log to deliver, with the parcels that were in the log before."""

    commit: int
    origin: str
    type_id: str
    file: LogFile
    again: frozenset[int]


@dataclass(frozen=True, slots=True)
class Group:
    """The files that one task works on, in order."""

    number: int
    files: tuple[FileTask, ...]


@dataclass(slots=True)
class Report:
    """What one task did: names, counts and sealed files, no values."""

    files: list[OutboxFile] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    delivered: dict[str, int] = field(default_factory=dict)
    chains: dict[str, list[str]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Write the report for its way back to the driver."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read a report of one of our own workers."""
        value = json.loads(text)
        return cls(
            files=[OutboxFile(**item) for item in value["files"]],
            dead=[DeadLetter(**item) for item in value["dead"]],
            delivered=value["delivered"],
            chains=value["chains"],
        )


Run = Callable[["Work", Sequence[Group]], Iterable[Report]]


@dataclass(frozen=True, slots=True)
class Work:
    """All that a worker needs for one micro-batch, but the keys."""

    batch: int
    log: str
    outbox: str
    plans: dict[str, DeliverPlan]
    make_keys: MakeKeys
    make_secret: MakeSecret

    def deliver(self, group: Group) -> Report:
        """Open, screen and seal the files of a group.

        Raises:
            MaiaError: The log is damaged, or the system refused to write.
        """
        report = Report()
        keys = self.make_keys()
        writer = OutboxWriter(Path(self.outbox), self.batch, group.number, self.make_secret())
        log = LogDirectory(self.log)
        chains: dict[str, set[str]] = {}
        compiled: dict[str, DeliveryPlan] = {}
        for task in group.files:
            plan = self.plans[task.type_id]
            if task.type_id not in compiled:
                compiled[task.type_id] = plan.compiled()
            versions = {item.identity: item.event_type for item in plan.subscriptions}
            outcomes = deliver_once(
                plan, log, keys, origin=task.origin, file=task.file, again=task.again, compiled=compiled[task.type_id],
            )  # fmt: skip
            for index, outcome in enumerate(outcomes):
                opened = outcome.opened
                if opened is None or outcome.refused is not None:
                    code = str(outcome.refused)
                    report.dead.append(
                        DeadLetter(task.commit, task.file.path, index, task.origin, code, outcome.events)
                    )
                    continue
                for delivery in outcome.deliveries:
                    version = versions[delivery.subscription]
                    omits = version.options.closed is ClosedAttributes.OMIT
                    writer.add(
                        delivery.subscription, version, opened.name, opened.header.stamp, delivery.rows,
                        omit_closed(delivery) if omits else delivery.batch,
                    )  # fmt: skip
                    count = report.delivered.get(delivery.subscription, 0) + len(delivery.rows)
                    report.delivered[delivery.subscription] = count
                    found = chains.setdefault(delivery.subscription, set())
                    found.update(chain_hash(clause.chain) for clause in delivery.clauses)
        report.files = writer.close()
        report.chains = {name: sorted(found) for name, found in chains.items()}
        return report


@dataclass(slots=True, kw_only=True)
class DeliveryJob:
    """Delivers a log to the subscriptions of a domain.

    Attributes:
        log: What is followed.
        outbox: Where deliveries go.
        repeats: Recognises what the log repeats.
        make_plans: The subscriptions and their rights, asked anew for each micro-batch.
        make_keys: The domain's keys, built on the worker.
        make_secret: The outbox's secret, built on the worker.
        principal: Fingerprint of the broker, for the audit.
        audit: The audit's folder; ``None`` for none.
        volume: Points out, in the audit, subscriptions that receive more than expected; ``None`` expects nothing.
        clock: Reads the time.
    """

    log: LogDirectory
    outbox: Outbox
    repeats: Repeats
    make_plans: MakePlans
    make_keys: MakeKeys
    make_secret: MakeSecret
    principal: str
    audit: Path | None = None
    volume: VolumeWatch | None = None
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def step(self, batch: int, numbers: Sequence[int], run: Run, *, query: str = "") -> OutboxCommit:
        """Deliver one micro-batch.

        Args:
            batch: Its number.
            numbers: The log commits it covers, in order.
            run: Runs groups of files through `Work.deliver`, here or on workers.
            query: The streaming query, when there is one.

        Returns:
            Its commit, which is an earlier one when the micro-batch is a repetition.

        Raises:
            UsageError: It does not continue where the outbox ends.
            MaiaError: The log or the outbox is damaged, or the system refused.
        """
        head = self.outbox.head()
        upto = self.log.expired() if head is None else head.upto
        if head is not None and head.batch == batch:
            if (list(numbers) or [head.upto])[-1] != head.upto or head.query != query:
                raise UsageError(f"batch {batch} was delivered over another part of the log", code="CHECKPOINT_FOREIGN")
            return head
        expected = list(range(upto + 1, upto + 1 + len(numbers)))
        if batch != (0 if head is None else head.batch + 1) or list(numbers) != expected:
            raise UsageError(f"batch {batch} does not continue where the outbox ends", code="CHECKPOINT_FOREIGN")
        self.outbox.check_commits()
        check_log(self.outbox, self.log)
        commits = list(self.log.commits(after=upto, upto=upto + len(numbers)))
        for commit in commits:
            self.log.check_evidence(commit)
        at = self.clock()
        repeats = self.repeats
        horizon = repeats.horizon
        compiled = [replace(plan, horizon=horizon) for plan in self.make_plans(commits, at)]
        plans = {name: plan for plan in compiled for name in plan.type_ids()}
        work = Work(batch, str(self.log.path), str(self.outbox.path), plans, self.make_keys, self.make_secret)
        groups = _groups([commit for commit in commits if commit.type_id in plans], repeats)
        reports = list(run(work, groups)) if groups else []
        if len(reports) != len(groups):
            raise EncodingError("a task did not report", code="REPORT_MISSING")
        if self.audit is not None:
            rows = list(_audit(self.principal, batch, plans, reports, at))
            write_audit(self.audit, [*rows, *self._alarms(rows)])
        made = self._made(batch, query, upto, commits, reports)
        if not self.outbox.commit(made):
            raise UsageError("another job delivers into this outbox", code="JOB_RUNNING")
        return made

    def run_here(self, *, max_commits: int = 64) -> int:
        """Deliver what the log holds now, without Spark and without a checkpoint; return how many commits that were.

        The outbox alone says where to continue. An outbox that a streaming query fills is refused.
        """
        check_log(self.outbox, self.log)
        done = 0
        while True:
            head = self.outbox.head()
            after, batch = (self.log.expired(), 0) if head is None else (head.upto, head.batch + 1)
            if head is not None and head.query:
                raise UsageError("a streaming query fills this outbox", code="CHECKPOINT_FOREIGN")
            numbers = range(after + 1, min(self.log.latest(), after + max_commits) + 1)
            if not numbers:
                return done
            self.step(batch, numbers, run_groups)
            done += len(numbers)

    def _alarms(self, rows: Sequence[AuditRow]) -> Iterator[AuditRow]:
        """Tell which of the deliveries in the audit are more than a subscription is expected to take."""
        if self.volume is None:
            return
        deliveries = [row for row in rows if row.kind == "deliver"]
        self.volume.keep(frozenset(row.subject for row in deliveries))
        for row in deliveries:
            taken = self.volume.observe(row.subject, row.events, at=row.at)
            if taken is not None:
                yield replace(row, kind="alarm", code=VOLUME_HIGH, events=taken)

    def _made(self, batch: int, query: str, after: int, commits: list[Commit], reports: list[Report]) -> OutboxCommit:
        dead = self.outbox.write_dead(batch, [letter for item in reports for letter in item.dead])
        head = self.outbox.head()
        return OutboxCommit(
            batch,
            query,
            after,
            commits[-1].sequence if commits else after,
            commits[-1].digest if commits else ("" if head is None else head.log),
            tuple(file for item in reports for file in item.files),
            () if dead is None else (dead,),
        )


def check_log(outbox: Outbox, log: LogDirectory) -> None:
    """Refuse a log that does not hold what the outbox was made from.

    Raises:
        UsageError: It ends earlier (``LOG_BEHIND``), or holds something else there (``LOG_FOREIGN``).
        NotFoundError: What comes next has expired: ``LOG_EXPIRED``.
    """
    head = outbox.head()
    if head is None or head.upto < 0:
        return
    if log.latest() < head.upto:
        raise UsageError(
            f"the outbox was made from commit {head.upto} of the log, which ends at {log.latest()}", code="LOG_BEHIND"
        )
    if log.digest(head.upto) != head.log:
        raise UsageError(f"commit {head.upto} of the log is not the one the outbox knows", code="LOG_FOREIGN")
    log.check_expired(head.upto)


def run_groups(work: Work, groups: Sequence[Group]) -> Iterator[Report]:
    """Run groups in this process, one after the other."""
    return (work.deliver(group) for group in groups)


def _groups(commits: Sequence[Commit], repeats: Repeats) -> list[Group]:
    """Make one group per file."""
    again = repeats.of(commits)
    tasks = [
        FileTask(commit.sequence, commit.origin, commit.type_id, file, again[commit.sequence, file.path])
        for commit in commits
        for file in commit.files
    ]
    return [Group(number, (task,)) for number, task in enumerate(tasks)]


def _audit(
    principal: str, batch: int, plans: dict[str, DeliverPlan], reports: Sequence[Report], at: datetime
) -> Iterator[AuditRow]:
    types = {item.identity: plan.type_id.hex() for plan in plans.values() for item in plan.subscriptions}
    delivered: Counter[str] = Counter()
    chains: dict[str, set[str]] = {}
    dead: Counter[tuple[str, str]] = Counter()
    for report in reports:
        delivered.update(report.delivered)
        for name, found in report.chains.items():
            chains.setdefault(name, set()).update(found)
        for letter in report.dead:
            dead[letter.file.removeprefix("type=").split("/")[0], letter.code] += letter.events
    row = partial(AuditRow, at=at, principal=principal, source=f"outbox batch {batch}")
    for name, type_id in sorted(types.items()):
        yield row(
            kind="deliver", type_id=type_id, subject=name, code="OK", events=delivered[name],
            clauses=tuple(sorted(chains.get(name, ()))),
        )  # fmt: skip
    for (type_id, code), events in sorted(dead.items()):
        yield row(kind="refuse", type_id=type_id, subject="dead letters", code=code, events=events)
