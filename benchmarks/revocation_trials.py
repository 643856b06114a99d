"""Revocations at random instants under load, in simulated time, on the delivery job itself.

A world is one log, one publishing domain and one domain with subscribers. Each subscriber is a trial: its right can be
withdrawn in one way, and is, at a random instant. What it received is read from its outbox; the window that was printed
for its certificate at that instant is what the measured one is compared with. Nothing here waits: clocks are
parameters. A link to the issuers may be cut for a while, as nobody notices a cut link sooner than by silence.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from pathlib import Path

import pyarrow as pa

from maia.authority import (
    Action,
    Challenge,
    OneTimeAnswer,
    Rhythm,
    StatementBook,
    exposure_window,
    issue_statement,
    renew,
    type_right,
)
from maia.domain import DeliveryJob, Domain, DomainPlans, Planned, Wanted, delivery_job, own_lanes
from maia.errors import DeniedError
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import DeliverPlan, Subscription, milliseconds
from maia.kernel import publish_batches as sealed_batches
from maia.log import START as LANE_START
from maia.log import LogDirectory, NoticeKind, NoticeLog, Place, StatementSubscription
from maia.policy import PolicyEngine, parse_policy
from maia.principals import Certificate, CertificateId, KeySigner, TestKind
from maia.testing import (
    ATTRIBUTES,
    TYPE_NAME,
    TYPE_VERSION,
    StatementPublisher,
    grant,
    numberplate_network,
    online,
    publish_plan,
)

START = datetime(2026, 6, 1, 9, tzinfo=UTC)
KINDS = {"numberplate": "string", "timestamp": "timestamp", "location": "string"}
LIFE = timedelta(seconds=6)
LISTS = Rhythm(period=timedelta(seconds=6), lead=timedelta(seconds=1))
BEATS = Rhythm(period=timedelta(seconds=3), lead=timedelta(seconds=1))
QUIET = 10
"""Seconds at the end of a world in which nothing is withdrawn, longer than any window."""
POLICY = "tracker(case) <- courtOrder(case)*, ?assigned(self, case)*\ntracker(case) |- track(case)"


class Way(Enum):
    """The ways to lose a right."""

    EXPIRY = "expiry"
    TIMED_LIST = "timed list"
    REVALIDATION = "revalidation"
    ONE_TIME = "one-time"
    ACTIVE = "active"
    ROLE = "role cascade"


@dataclass(slots=True)
class Trial:
    """One subscriber, its right, and what became of it.

    Attributes:
        name: The subscription.
        way: How the right is withdrawn.
        revoked: When.
        certificate: The one in use at that moment.
        printed: The window that was printed for it then.
        events: The names of all events that were delivered.
        stamps: Their stamps, in milliseconds.
    """

    name: str
    way: Way
    revoked: datetime
    certificate: Certificate
    printed: timedelta | None = None
    events: list[str] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)

    @property
    def measured(self) -> timedelta:
        """How long after the revocation the last delivered event was stamped; zero when none was."""
        last = max(self.stamps, default=0) - milliseconds(self.revoked)
        return timedelta(milliseconds=max(last, 0))


@dataclass
class World:
    """Homes, issuers and trials over one log, at an instant that moves."""

    root: Path
    rng: random.Random
    per_way: int
    seconds: int
    cut: tuple[float, float] | None = None
    skew: timedelta = timedelta(0)
    broker_clock: Callable[[datetime], datetime] = lambda now: now
    now: datetime = START
    trials: list[Trial] = field(default_factory=list)
    signers: dict[Way, KeySigner] = field(default_factory=dict)
    published: dict[int, int] = field(default_factory=dict)
    batches: list[datetime] = field(default_factory=list)
    _moved: dict[bytes, Place] = field(default_factory=dict)
    _withdrawn: dict[Way, dict[CertificateId, datetime | None]] = field(default_factory=dict)
    _number: int = 0

    def build(self) -> None:
        """Make homes, rights and subscriptions."""
        self.network = numberplate_network(now=START)
        people = self.network.people
        definition = EventType(
            name=TypeName(self.network.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
            attributes=tuple(attribute(name, uid, KINDS[name]) for name, uid in ATTRIBUTES.items()),
        )
        signed = sign_event_type(definition, people["PITO"])
        homes = []
        for name, broker, keys in (("ccs", "CB", ("CCTV",)), ("met", "MB", ())):
            home = Home.create(
                self.root / name, HomeConfig(name=name, broker=broker, log="../log"), broker=people[broker]
            )
            for key in keys:
                home.add_key(key, people[key])
            home.add_public_key("PITO", self.network.key("PITO"))
            for certificate in self.network.certificates.values():
                home.certificates.add(certificate)
            home.types.put(signed.raw, at=START)
            homes.append(home)
        self.ccs, self.met = homes
        # the issuers' side; `link` carries it over
        self.remote = NoticeLog(self.root / "issuers", own=self.root / "own")
        self.local = NoticeLog(self.met.log_path)
        self.log = LogDirectory(self.ccs.log_path)
        self.signers = {way: KeySigner(secrets.token_bytes(32)) for way in Way}
        self._withdrawn = {way: {} for way in Way}
        self.issuers = {way: KeySigner(secrets.token_bytes(32)) for way in Way}
        tag = type_right(self.network.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE])
        for issuer in self.issuers.values():
            self.met.certificates.add(grant(people["Met"], issuer, tag, delegate=True))
        self.engine = PolicyEngine(parse_policy(POLICY))
        for way in Way:
            for number in range(self.per_way):
                self._subscriber(way, f"{way.name.lower()}-{number}".replace("_", "-"))
        self._plan("keys")
        self.met.save_keyring(self.ccs.keyring())
        self.wanted = tuple(Wanted(name=trial.name, as_=trial.name, type=TYPE_NAME) for trial in self.trials)
        regular = tuple(
            item for item, trial in zip(self.wanted, self.trials, strict=True) if trial.way is not Way.ONE_TIME
        )
        self.job: DeliveryJob = replace(
            delivery_job(Domain.open(self.met.path), regular), clock=lambda: self.broker_clock(self.now)
        )
        plans = DomainPlans(Domain.open(str(self.met.path)), regular)
        self.job.make_plans = lambda commits, at, whom: self._plans(plans(commits, at, whom), whom, at)

    def _subscriber(self, way: Way, name: str) -> None:
        signer = KeySigner(secrets.token_bytes(32))
        self.met.add_key(name, signer)
        revoked = START + timedelta(seconds=self.rng.uniform(1.5, self.seconds - QUIET))
        if way is Way.ROLE:
            self.engine.appoint(f"courtOrder('{name}')")
            self.engine.observe(f"assigned('{name}', '{name}')")
            self.engine.activate(f"tracker('{name}')", principal=name)
        self.trials.append(Trial(name, way, revoked, self._issue(way, signer, START)))

    def _issue(self, way: Way, holder: KeySigner, at: datetime) -> Certificate:
        kinds = {Way.REVALIDATION: TestKind.REVALIDATION, Way.ONE_TIME: TestKind.ONE_TIME}
        tests = [] if way is Way.EXPIRY else [online(kinds.get(way, TestKind.CRL), self.signers[way])]
        tag = type_right(self.network.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE])
        ends = at + LIFE - timedelta(seconds=1) if way is Way.EXPIRY else START + timedelta(hours=1)
        made = grant(self.issuers[way], holder, tag, valid=(at, ends), tests=tests)
        self.met.certificates.add(made)
        return made

    # -- what happens

    def run(self) -> list[Trial]:
        """Let events, lists, revocations and micro-batches happen in the order of time, and read the outboxes."""
        self.build()
        for moment, what in self._agenda():
            self.now = max(moment, self.now)
            what()
        for trial, item in zip(self.trials, self.wanted, strict=True):
            found = list(self.job.outbox.read(item.name, self.job.make_secret()))
            trial.events = [name for batch in found for name in batch.column("_event").to_pylist()]
            trial.stamps = [stamp for batch in found for stamp in batch.column("_stamp").to_pylist()]
        return self.trials

    def _agenda(self) -> list[tuple[datetime, object]]:
        """Draw when everything happens."""
        agenda: list[tuple[datetime, int, object]] = []

        def add(seconds: float, order: int, what: object) -> None:
            agenda.append((START + timedelta(seconds=seconds), order, what))

        for second in range(self.seconds):
            add(second, 0, self._lists)
            add(second, 1, self._renew)
        over = START + timedelta(seconds=self.seconds)
        agenda += [(trial.revoked, 2, partial(self._revoke, trial)) for trial in self.trials if trial.revoked < over]
        seconds = 0.5
        while seconds < self.seconds:
            add(seconds, 3, self._publish)
            if self.rng.random() < 0.3:
                add(seconds + 0.05, 3, self._publish)
            add(seconds + self.rng.uniform(0.06, 0.3), 4, self._batch)
            seconds += self.rng.uniform(0.6, 1.6)
        agenda.sort(key=lambda item: (item[0], item[1]))
        return [(moment, what) for moment, _, what in agenda]

    def _publisher(self, way: Way) -> StatementPublisher:
        rhythm = BEATS if way in (Way.ACTIVE, Way.ROLE) else LISTS
        kind = TestKind.REVALIDATION if way is Way.REVALIDATION else TestKind.CRL
        return StatementPublisher(notices=self.remote, signer=self.signers[way], rhythm=rhythm, kind=kind)

    def _lists(self) -> None:
        for way in (Way.TIMED_LIST, Way.REVALIDATION, Way.ACTIVE, Way.ROLE):
            listed = self._withdrawn[way]
            if way is Way.REVALIDATION:
                own = [trial.certificate for trial in self.trials if trial.way is way]
                listed = {
                    item.certificate_id: item.body.period.not_after
                    for item in own
                    if item.certificate_id not in self._withdrawn[way]
                }
            self._publisher(way).publish(listed, at=self.now)
        self._link()

    def _renew(self) -> None:
        """Renew the short-lived rights when half of their life is over; whoever was revoked is declined."""
        for trial in self.trials:
            ends = trial.certificate.body.period.not_after
            if trial.way is not Way.EXPIRY or ends is None or ends - self.now > LIFE / 2:
                continue
            granted = self.now < trial.revoked
            try:
                trial.certificate = renew(
                    trial.certificate, self.issuers[trial.way], at=self.now,
                    still_granted=lambda _, granted=granted: granted,
                )  # fmt: skip
            except DeniedError:
                continue
            self.met.certificates.add(trial.certificate)

    def _revoke(self, trial: Trial) -> None:
        exposure = exposure_window(
            trial.certificate, at=trial.revoked, statements=self._signed(trial.way), skew=self.skew
        )
        trial.printed = exposure.window
        identity = trial.certificate.certificate_id
        if trial.way is Way.ROLE:
            fallen = self.engine.retract(f"assigned('{trial.name}', '{trial.name}')").fallen
            assert [fact.holder for fact in fallen] == [trial.name]
        self._withdrawn[trial.way][identity] = trial.certificate.body.period.not_after
        if trial.way in (Way.ACTIVE, Way.ROLE):
            self._publisher(trial.way).withdraw(self._withdrawn[trial.way], at=self.now)
            self._link()

    def _signed(self, way: Way) -> StatementBook:
        """Collect what the issuer signed by now and cannot take back."""
        book = StatementBook()
        subscription = StatementSubscription(self.remote, self.signers[way].public_key.key_id)
        for statement in subscription.state(at=self.now):
            book.accept(statement)
        return book

    def _link(self) -> None:
        """Carry what issuers said to the broker's log, unless the link is cut."""
        since = (self.now - START).total_seconds()
        if self.cut is not None and self.cut[0] <= since < self.cut[1]:
            return
        for signer in self.signers.values():
            topic = signer.public_key.key_id
            lane = self.remote.reader(NoticeKind.STATEMENT, topic, topic)
            found = lane.since(self._moved.get(topic, LANE_START))
            if found.alarm is not None and found.head is not None:  # what is gone at the issuer's side is not carried
                found = lane.since(found.head.floor)
            for record in found.records:
                self.local.store.put(record.lane.record_name(record.number), record.raw)
            self._moved[topic] = found.place
            if found.head is not None:
                head = self.remote.store.get(lane.lane.head_name, limit=4096)
                self.local.store.put(lane.lane.head_name, head)

    def _plan(self, publication: str) -> object:
        return publish_plan(self.ccs, TYPE_NAME, as_="CCTV", version=None, publication=publication, at=self.now)

    def _publish(self) -> None:
        self._number += 1
        publication = f"p{self._number}"
        stamp = milliseconds(self.now)
        plan = publish_plan(self.ccs, TYPE_NAME, as_="CCTV", version=None, publication=publication, at=self.now)
        rows = self.rng.randrange(1, 20)
        batch = pa.RecordBatch.from_pydict(
            {
                "numberplate": [f"P{n}" for n in range(rows)],
                "timestamp": pa.array([self.now] * rows, type=pa.timestamp("us", tz="UTC")),
                "location": ["Victoria"] * rows,
            }
        )
        type_id = plan.sealing.type_id
        writer = self.log.writer(publication, type_id, 0, self.ccs.broker.public_key.key_id, at=self.now)
        for sealed in sealed_batches(
            plan, 0, iter((batch,)), self.ccs.broker, self.ccs.keyring(), lambda: stamp + len(self.published)
        ):
            assert sealed.parcel is not None
            self.published[sealed.parcel.header.stamp] = rows
            writer.add(sealed.parcel)
        file = writer.close()
        assert file is not None
        own_lanes(self.ccs, self.log).commit(
            publication, type_id.hex(), (file,), evidence=plan.sealing.evidence.hex(), at=self.now
        )

    def _batch(self) -> None:
        self.batches.append(self.now)
        self.job.run_here()

    def _plans(self, planned: Planned, whom: Callable[[str], bool], at: datetime) -> Planned:
        """Plan as every home does, and ask those who confirm rights one by one, afresh for each micro-batch."""
        return replace(planned, plans=tuple(self._asked(plan, whom, at) for plan in planned.plans))

    def _asked(self, plan: DeliverPlan, whom: Callable[[str], bool], at: datetime) -> DeliverPlan:
        asked = [trial for trial in self.trials if trial.way is Way.ONE_TIME and whom(trial.name)]
        home = Home.open(self.met.path)
        known = Domain(home).known(at=at)
        sessions, pool = known.sessions, known.pool
        extra = []
        for trial in asked:
            challenge = Challenge(nonce=secrets.token_bytes(16), verifier="met", until=at + timedelta(seconds=5))
            good = self.now < trial.revoked
            body = OneTimeAnswer(
                signer=self.signers[Way.ONE_TIME].public_key, nonce=challenge.nonce, verifier="met",
                certificates=frozenset([trial.certificate.certificate_id] if good else ()),
            )  # fmt: skip
            sessions.verifier.statements.accept(issue_statement(body, self.signers[Way.ONE_TIME]))
            event_type = plan.subscriptions[0].event_type
            clauses = sessions.clauses(
                home.key(trial.name), Action.SUBSCRIBE, event_type, pool, at=at, challenge={event_type.name: challenge}
            )
            if clauses:
                extra.append(Subscription(trial.name, event_type, plan.subscriptions[0].filter, clauses))
        return replace(plan, subscriptions=(*plan.subscriptions, *extra))


def play(root: Path, *, seed: int, per_way: int, seconds: int = 17, cut: bool = False) -> World:
    """Run one world and return it with its trials."""
    rng = random.Random(seed)
    begins = rng.uniform(2, seconds - QUIET)
    world = World(root, rng, per_way, seconds, cut=(begins, begins + rng.uniform(3, 8)) if cut else None)
    world.run()
    return world
