"""The delivery job: follows the log and fills the outbox of all subscriptions of a domain, each event once.

One micro-batch covers a stretch of the log. The driver plans it with the rights of now, workers open, screen and seal
into files, and one record makes files and progress count together. Rules kept here:

- a micro-batch that is repeated is recognised by its number and the stretch it covers, and adds nothing; one that does
  not continue where the outbox ends is refused;
- an event is delivered to a subscription once: a lane has one writer and each of its commits is gone through once;
- what is proven to be wrong becomes a dead letter with its code, before anything of it is opened where its origin has
  no right; a doubt parks its lane (`stretches`), and the others go on;
- what is missing or damaged at this home stops the job: nobody loses events by it;
- nothing leaves a worker after opening but sealed files and counts;
- plans that are over before a micro-batch is through are made again, with the rights of then.

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

from maia.domain.log_parts import refusal
from maia.domain.stretches import Stretch
from maia.errors import EncodingError, PlanOverError, UnavailableError, UsageError
from maia.events import ClosedAttributes
from maia.kernel import VOLUME_HIGH, Clock, DeliverPlan, DeliveryPlan, MakeKeys, VolumeWatch, omit_closed
from maia.log import (
    BEGINNING,
    AuditRow,
    Commit,
    DeadLetter,
    LogDirectory,
    LogFile,
    Outbox,
    OutboxCommit,
    OutboxFile,
    OutboxWriter,
    Places,
    chain_hash,
    deliver_segment,
    read_place,
    write_audit,
)

NextStretch = Callable[[Places, Places | None, int | None, datetime], Stretch]
"""Finds the stretch after an offset: up to another one, or about so many commits."""
MakePlans = Callable[[Sequence[Commit], datetime], Iterable[DeliverPlan]]
"""Compiles, on the driver, the subscriptions of each type with the rights they have at an instant."""
_ATTEMPTS = 3
MakeSecret = Callable[[], bytes]
"""Builds, where it is called, the secret that seals the outbox; it carries no key."""


@dataclass(frozen=True, slots=True)
class FileTask:
    """One segment of the log to deliver."""

    commit: int
    lane: str
    file: LogFile

    @property
    def type_id(self) -> str:
        """The id of the type, in hex."""
        return self.lane.partition("/")[0]

    @property
    def origin(self) -> str:
        """Whose lane it is, in hex."""
        return self.lane.partition("/")[2]


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
    clock: Clock

    def deliver(self, group: Group) -> Report:
        """Open, screen and seal the files of a group.

        Raises:
            PlanOverError: The plans are over; they are made again.
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
            outcomes = deliver_segment(
                plan, log.parcels(task.lane, task.file), keys, file=task.file, origin=task.origin,
                clock=self.clock, compiled=compiled[task.type_id],
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
        next_stretch: Finds what can be gone through after an offset.
        home: The domain's home, for whoever follows its log elsewhere.
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
    next_stretch: NextStretch
    home: Path
    make_plans: MakePlans
    make_keys: MakeKeys
    make_secret: MakeSecret
    principal: str
    audit: Path | None = None
    volume: VolumeWatch | None = None
    clock: Clock = field(default=lambda: datetime.now(UTC))

    def begin(self) -> dict[str, str]:
        """Tell where the outbox begins: where the lanes began when a job first looked, whatever expired since."""
        return self.outbox.begin(self.next_stretch({}, None, 0, self.clock()).upto)

    def step(self, batch: int, upto: Places, run: Run, *, query: str = "") -> OutboxCommit:
        """Deliver one micro-batch.

        Args:
            batch: Its number.
            upto: Where it ends, by lane.
            run: Runs groups of files through `Work.deliver`, here or on workers.
            query: The streaming query, when there is one.

        Returns:
            Its commit, which is an earlier one when the micro-batch is a repetition.

        Raises:
            UsageError: It does not continue where the outbox ends.
            UnavailableError: Something of the stretch is in doubt by now: ``LANE_PARKED``; try again.
            MaiaError: The outbox or this home is damaged, or the system refused.
        """
        head = self.outbox.head()
        after = self.begin() if head is None else head.upto
        if head is not None and head.batch == batch:
            if head.upto != {**after, **upto} or head.query != query:
                raise UsageError(f"batch {batch} was delivered over another part of the log", code="CHECKPOINT_FOREIGN")
            return head
        if batch != (0 if head is None else head.batch + 1) or not continues(after, upto):
            raise UsageError(f"batch {batch} does not continue where the outbox ends", code="CHECKPOINT_FOREIGN")
        self.outbox.check_commits()
        at = self.clock()
        stretch = self.next_stretch(after, {**after, **upto}, None, at)
        if dict(stretch.upto) != {**after, **upto}:
            codes = ", ".join(sorted({code for _, code in stretch.parked})) or "LANE_GAP"
            raise UnavailableError(f"a part of the log is in doubt again: {codes}", code="LANE_PARKED")
        return self._deliver(batch, after, stretch, run, query, at)

    def run_here(self, *, max_commits: int = 64) -> int:
        """Deliver what the log holds now, without Spark and without a checkpoint; return how many commits that were.

        The outbox alone says where to continue. An outbox that a streaming query fills is refused.
        """
        done = 0
        while True:
            head = self.outbox.head()
            if head is not None and head.query:
                raise UsageError("a streaming query fills this outbox", code="CHECKPOINT_FOREIGN")
            after, batch = (self.begin(), 0) if head is None else (head.upto, head.batch + 1)
            at = self.clock()
            stretch = self.next_stretch(after, None, max_commits, at)
            if stretch.upto == after:
                return done
            self.outbox.check_commits()
            self._deliver(batch, after, stretch, run_groups, "", at)
            done += len(stretch.commits)

    def _deliver(self, batch: int, after: Places, stretch: Stretch, run: Run, query: str, at: datetime) -> OutboxCommit:
        for _ in range(_ATTEMPTS - 1):
            try:
                plans, reports = self._run(batch, stretch, run, at)
                break
            except PlanOverError:
                # A right ended while the micro-batch ran: what was written of it counts for nothing, and rights are
                # judged anew, so that no subscriber stops the others by a right that ends often.
                at = self.clock()
        else:
            plans, reports = self._run(batch, stretch, run, at)
        if self.audit is not None:
            rows = list(_audit(self.principal, batch, plans, reports, at))
            write_audit(self.audit, [*rows, *self._alarms(rows)])
        dead = self.outbox.write_dead(batch, [letter for item in reports for letter in item.dead])
        made = OutboxCommit(
            batch,
            query,
            dict(after),
            dict(stretch.upto),
            len(stretch.commits),
            tuple(file for item in reports for file in item.files),
            () if dead is None else (dead,),
        )
        if not self.outbox.commit(made):
            raise UsageError("another job delivers into this outbox", code="JOB_RUNNING")
        return made

    def _run(self, batch: int, stretch: Stretch, run: Run, at: datetime) -> tuple[dict[str, DeliverPlan], list[Report]]:
        """Plan a micro-batch with the rights of an instant, and run it."""
        compiled = list(self.make_plans(stretch.commits, at))
        plans = {name: plan for plan in compiled for name in plan.type_ids()}
        work = Work(
            batch, str(self.log.path), str(self.outbox.path), plans, self.make_keys, self.make_secret, self.clock
        )  # fmt: skip
        wanted = [commit for commit in stretch.commits if commit.type_id in plans]
        # SECURITY: what has no proven origin is refused here, and never opened.
        open_ = [commit for commit in wanted if not refusal(commit, plans[commit.type_id])]
        groups = _groups(open_)
        reports = list(run(work, groups)) if groups else []
        if len(reports) != len(groups):
            raise EncodingError("a task did not report", code="REPORT_MISSING")
        return plans, [*reports, Report(dead=list(_refused(wanted, plans)))]

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


def continues(after: Places, upto: Places) -> bool:
    """Tell whether an offset continues another one: no lane goes back."""
    for lane, place in upto.items():
        ours, theirs = read_place(after.get(lane, BEGINNING))[0], read_place(place)[0]
        if theirs.number < ours.number or (theirs.number == ours.number and theirs != ours):
            return False
    return True


def check_log(outbox: Outbox, log: LogDirectory) -> None:
    """Refuse a log that is not the one the outbox was made from.

    Raises:
        UsageError: A lane holds something else where the outbox ends: ``LOG_FOREIGN``; or the log has none of the lanes
            that the outbox knows: ``LOG_BEHIND``.
    """
    head = outbox.head()
    if head is None or not head.upto:
        return
    ends = log.ends({lane.partition("/")[0] for lane in head.upto}, first=tuple(head.upto))
    if not any(lane in ends for lane in head.upto):
        raise UsageError("the log has nothing of what the outbox was made from", code="LOG_BEHIND")
    for lane, place in head.upto.items():
        alarm = log.lane(lane).alarm
        ours = read_place(place)[0]
        theirs = read_place(ends[lane])[0] if lane in ends else None
        if theirs is not None and theirs.number == ours.number and theirs != ours and alarm is None:
            raise UsageError(f"record {ours.number} of a lane is not the one the outbox knows", code="LOG_FOREIGN")


def run_groups(work: Work, groups: Sequence[Group]) -> Iterator[Report]:
    """Run groups in this process, one after the other."""
    return (work.deliver(group) for group in groups)


def _groups(commits: Sequence[Commit]) -> list[Group]:
    """Make one group per segment."""
    tasks = [FileTask(commit.sequence, commit.lane, file) for commit in commits for file in commit.files]
    return [Group(number, (task,)) for number, task in enumerate(tasks)]


def _refused(commits: Sequence[Commit], plans: dict[str, DeliverPlan]) -> Iterator[DeadLetter]:
    """Name what is refused as a whole, a dead letter for each segment."""
    for commit in commits:
        code = refusal(commit, plans[commit.type_id])
        if code:
            for file in commit.files:
                yield DeadLetter(commit.sequence, file.path, -1, commit.origin, code, file.events)


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
