"""The delivery job: follows the log and fills the outbox of all subscriptions of a domain, each event once.

One micro-batch covers a stretch of the log. The driver plans it with the rights of now, workers open, screen and seal
into files, and one record makes files and progress count together. Rules kept here:

- a micro-batch that is repeated is recognised by its number and the stretch it covers, and adds nothing; one that does
  not continue where the outbox ends is refused;
- an event is delivered to a subscription once: a lane has one writer and each of its commits is gone through once;
- what is proven to be wrong becomes a dead letter with its code, before anything of it is opened where its origin has
  no right; a doubt parks its lane (`stretches`), and the others go on;
- a subscription that cannot be judged, since a statement is late or something of this home is missing or damaged, waits
  at its own place, and the others go on. It is delivered what it missed, in order, when the doubt is gone (`waiting`);
- a file of this home that concerns everybody and is damaged stops the job: nobody loses events by it;
- plans that are over before a micro-batch is handed over are made again, with the rights of then: what a worker wrote
  in time and nobody has got yet counts for nothing;
- the audit has the intent before anything is opened, what each subscription gets before that counts, and the result.

The same steps run inside Spark, as a streaming query with a checkpoint (`maia.spark.start_job`), and without Spark
(`run_here`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from maia.domain.delivery_work import Group, MakeSecret, Report, Work, group_files, run_groups
from maia.domain.log_parts import refusal
from maia.domain.operations import Operation, deliver_digest
from maia.domain.stretches import Stretch
from maia.domain.waiting import Whom, held_back, left_waiting
from maia.domain.wanted import Wanted
from maia.errors import EncodingError, PlanOverError, UnavailableError, UsageError
from maia.kernel import VOLUME_HIGH, Clock, DeliverPlan, MakeKeys, VolumeWatch
from maia.log import (
    BEGINNING,
    OK,
    Audit,
    AuditRow,
    Commit,
    DeadLetter,
    LogDirectory,
    Outbox,
    OutboxCommit,
    Places,
    hash_subscription,
    read_place,
)

NextStretch = Callable[[Places, Places | None, int | None, datetime], Stretch]
"""Finds the stretch after an offset: up to another one, or about so many commits."""
Run = Callable[[Work, Sequence[Group]], Iterable[Report]]
_ATTEMPTS = 3
_CATCH_UP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """By what a stretch of the log can be delivered now.

    Attributes:
        plans: One for each type that somebody subscribes to.
        waits: Subscriptions that cannot be judged now, with the code of the doubt.
    """

    plans: tuple[DeliverPlan, ...] = ()
    waits: Mapping[str, str] = field(default_factory=dict)

    def by_type(self) -> dict[str, tuple[DeliverPlan, ...]]:
        """Give the plans by all ids that their types, and those that extend them, have in the log."""
        found: dict[str, tuple[DeliverPlan, ...]] = {}
        for plan in self.plans:
            for name in plan.type_ids():
                found[name] = (*found.get(name, ()), plan)
        return found

    def doubted(self) -> dict[str, str]:
        """Give those that wait by the hashes of their names, as an outbox has them."""
        return {hash_subscription(name): code for name, code in self.waits.items()}


MakePlans = Callable[[Sequence[Commit] | None, datetime, Whom], Planned]
"""Compiles, on the driver, subscriptions with the rights they have at an instant, for commits or to see who waits."""


@dataclass(slots=True, kw_only=True)
class DeliveryJob:
    """Delivers a log to the subscriptions of a domain.

    Attributes:
        log: What is followed.
        outbox: Where deliveries go.
        next_stretch: Finds what can be gone through after an offset.
        home: The domain's home, for whoever follows its log elsewhere.
        make_plans: The subscriptions and their rights, asked anew for each micro-batch.
        wanted: The subscriptions; ``None`` for those that the home keeps at each moment.
        make_keys: The domain's keys, built on the worker.
        make_secret: The outbox's secret, built on the worker.
        principal: Fingerprint of the broker, for the audit.
        audit: The domain's audit.
        volume: Points out, in the audit, subscriptions that receive more than expected; ``None`` expects nothing.
        clock: Reads the time.
        trace: Where the steps of events are written, by name and count; nowhere without it.
    """

    log: LogDirectory
    outbox: Outbox
    next_stretch: NextStretch
    home: Path
    make_plans: MakePlans
    make_keys: MakeKeys
    make_secret: MakeSecret
    principal: str
    audit: Audit
    wanted: tuple[Wanted, ...] | None = None
    volume: VolumeWatch | None = None
    clock: Clock = field(default=lambda: datetime.now(UTC))
    trace: Path | None = None

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
        return self._deliver(batch, head, stretch, run, query, at)

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
            if stretch.upto == after and not self.due(at=at):
                return done
            self.outbox.check_commits()
            self._deliver(batch, head, stretch, run_groups, "", at)
            done += len(stretch.commits)

    def due(self, *, at: datetime) -> bool:
        """Tell whether a subscription that waited can be delivered something of what it missed."""
        head = self.outbox.head()
        return head is not None and any(
            len(self.make_plans(None, at, held_back(item)).waits) < len(item.subscriptions)
            and self.next_stretch(item.after, head.upto, 1, at).upto != item.after
            for item in head.waiting
        )

    def _deliver(
        self, batch: int, head: OutboxCommit | None, stretch: Stretch, run: Run, query: str, at: datetime
    ) -> OutboxCommit:
        """Deliver a stretch; what was written by plans that ended meanwhile counts for nothing, and is planned anew.

        So no subscriber stops the others by a right that ends often.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._deliver_by_plans(batch, head, stretch, run, query, at)
            except PlanOverError:
                at = self.clock()
        return self._deliver_by_plans(batch, head, stretch, run, query, at)

    def _deliver_by_plans(
        self, batch: int, head: OutboxCommit | None, stretch: Stretch, run: Run, query: str, at: datetime
    ) -> OutboxCommit:
        """Deliver a stretch to whoever is up to date, and to those who waited something of what they missed."""
        after = self.begin() if head is None else head.upto
        waited = () if head is None else head.waiting
        away = {name for item in waited for name in item.subscriptions}
        planned = self.make_plans(stretch.commits, at, lambda name: hash_subscription(name) not in away)
        late = [(item, self.next_stretch(item.after, stretch.upto, _CATCH_UP, at)) for item in waited]
        behind = [self.make_plans(missed.commits, at, held_back(item)) for item, missed in late]
        plans = [plan for some in (planned, *behind) for plan in some.plans]
        commits = [*stretch.commits, *(commit for _, missed in late for commit in missed.commits)]
        operation = self._begin(batch, plans, commits, at)
        with operation.failing():
            reports = self._run(batch, planned, stretch.commits, run)
            left: list[tuple[Places, Mapping[str, str]]] = [(after, planned.doubted())]
            for (item, missed), found in zip(late, behind, strict=True):
                reports += self._first_told(self._run(batch, found, missed.commits, run))
                served = {name: "" for name in item.subscriptions if name not in found.doubted()}
                left += [(item.after, found.doubted()), (missed.upto, served)]
            self._check_terms(plans)
            rows = list(_audit(self.principal, batch, plans, reports, at))
            self.audit.tell(operation.number, [*rows, *self._alarms(rows)])
            dead = self.outbox.write_dead(batch, [letter for item in reports for letter in item.dead])
            made = OutboxCommit(
                batch,
                query,
                dict(after),
                dict(stretch.upto),
                len(stretch.commits),
                tuple(file for item in reports for file in item.files),
                () if dead is None else (dead,),
                left_waiting(left, stretch.upto),
            )
            self._check_terms(plans)
            if not self.outbox.commit(made):
                raise UsageError("another job delivers into this outbox", code="JOB_RUNNING")
        operation.end(OK, events=sum(row.events for row in rows if row.kind == "deliver"))
        return made

    def _check_terms(self, plans: Sequence[DeliverPlan]) -> None:
        """Refuse to hand over what was planned with rights that may have ended since.

        SECURITY: workers look at the clock before each parcel; between their last one and the record that makes
        everything count lie the other workers, a slow disk, or a driver that was stopped.

        Raises:
            PlanOverError: A plan is over: ``PLAN_OVER``.
        """
        now = self.clock()
        for plan in plans:
            plan.term.check(now)

    def _begin(self, batch: int, plans: Sequence[DeliverPlan], commits: Sequence[Commit], at: datetime) -> Operation:
        """Put into the audit what is going to be delivered, before anything is opened."""
        types = {plan.type_id.hex() for plan in plans}
        intent = AuditRow(
            at=at, kind="intent", principal=self.principal, type_id=types.pop() if len(types) == 1 else "",
            source=f"outbox batch {batch}", subject=f"{sum(len(plan.subscriptions) for plan in plans)} subscriptions",
            code="DELIVER", events=sum(commit.events for commit in commits), plan=deliver_digest(plans),
        )  # fmt: skip
        return Operation(self.audit, self.audit.begin(intent), intent)

    def _run(self, batch: int, planned: Planned, commits: Sequence[Commit], run: Run) -> list[Report]:
        plans = planned.by_type()
        work = Work(
            batch, self.log.place, str(self.outbox.path), plans, self.make_keys, self.make_secret, self.clock,
            self.trace,
        )  # fmt: skip
        # SECURITY: what has no proven origin is refused here, and never opened.
        open_ = [item for item in commits if not all(refusal(item, plan) for plan in plans.get(item.type_id, ()))]
        groups = group_files(open_, self.log)
        reports = list(run(work, groups)) if groups else []
        if len(reports) != len(groups):
            raise EncodingError("a task did not report", code="REPORT_MISSING")
        return [*reports, Report(dead=list(_refused(commits, plans)))]

    def _first_told(self, reports: list[Report]) -> list[Report]:
        """Leave out the dead letters that were written when the others were served."""
        if any(report.dead for report in reports):
            told = {(letter.file, letter.parcel) for letter in self.outbox.dead_letters()}
            for report in reports:
                report.dead = [letter for letter in report.dead if (letter.file, letter.parcel) not in told]
        return reports

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


def _refused(commits: Sequence[Commit], plans: Mapping[str, Sequence[DeliverPlan]]) -> Iterator[DeadLetter]:
    """Name what is refused as a whole, a dead letter for each segment.

    A commit of a child whose origin has no right on the parent is none of the parent's, which is no refusal.
    """
    for commit in commits:
        own = (plan for plan in plans.get(commit.type_id, ()) if not plan.reads_child(commit.type_id))
        code = next((code for plan in own if (code := refusal(commit, plan))), "")
        if code:
            for file in commit.files:
                yield DeadLetter(commit.sequence, file.path, -1, commit.origin, code, file.events)


def _audit(
    principal: str, batch: int, plans: Sequence[DeliverPlan], reports: Sequence[Report], at: datetime
) -> Iterator[AuditRow]:
    types = {item.identity: plan.type_id.hex() for plan in plans for item in plan.subscriptions}
    decisions = {item.identity: item.decision for plan in plans for item in plan.subscriptions}
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
            clauses=tuple(sorted(chains.get(name, ()))), decision=decisions[name],
        )  # fmt: skip
    for (type_id, code), events in sorted(dead.items()):
        yield row(kind="refuse", type_id=type_id, subject="dead letters", code=code, events=events)
