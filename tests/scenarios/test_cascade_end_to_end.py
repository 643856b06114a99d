"""One premise is taken back, and everything that stood on it falls in order: role, capability, stream, keys.

The police run an access control service and a key manager in process over one home; their vans are brokers by role, and
the congestion charge service publishes. Nothing is played: policy, certificates, lists, log, delivery job and key trees
are the real ones, and time is the test's.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.access_control import MemberKind, Settings, Withdrawn
from maia.authority import ListStatement, parse_statement
from maia.domain import (
    DeliveryJob,
    Domain,
    HomeKeyGroups,
    HomeKeys,
    HomeTelling,
    Wanted,
    delivery_job,
    join_key_groups,
    open_access_control,
    open_home_groups,
    open_key_manager,
    prove_key,
)
from maia.encryption import KeyGroupId, RefreshCause
from maia.errors import UnavailableError, VerificationError
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import BROKERS, KEY_MANAGER, deliver_parcels, milliseconds
from maia.log import LogDirectory, NoticeKind, NoticeLog
from maia.principals import Authenticated, Certificate, CertificateId, KeySigner
from maia.testing import (
    ATTRIBUTES,
    NETWORK_NAME,
    TYPE_NAME,
    TYPE_VERSION,
    deliver_plan,
    follow,
    naming,
    numberplate_network,
    publish_here,
)

POLICY = """\
tracker(plate)  <-  operation(name, plate)* , detective(self)*
tracker(plate)  |-  subscribe Numberplate(location, timestamp, numberplate = plate)
relay(name)  <-  operation(name, plate)* , driver(self)*
relay(name)  |-  subscribe Numberplate
"""
LANTERN, HARBOUR = "operation(lantern, 'AE05 XYZ')", "operation(harbour, 'BX51 ABC')"
PLATES = {"smith": "AE05 XYZ", "jones": "BX51 ABC"}
BROKER_ROLES = {"depot": "relay(harbour)", "van1": "relay(lantern)", "van2": "relay(harbour)"}
START = datetime(2026, 6, 1, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
LEAD = 10
"""Seconds by which a key that was announced has begun."""
WITHOUT = ("Cap2", "Cap3", "Cap10", "Cap13", "N1")
"""What the thesis lets the police sign by hand; here their policy says who has it."""


class Killed(BaseException):
    """The process is gone in the middle of something."""


class Force:
    """The police with a depot and two vans, and the congestion charge service, over one log."""

    def __init__(self, root: Path) -> None:
        self.now = START
        self.network = numberplate_network(now=START)
        people = self.network.people
        self.signers = {"smith": people["Smith"], "jones": people["TM"], "depot": people["MB"]}
        self.signers |= {name: KeySigner.generate() for name in ("van1", "van2")}
        self.type = EventType(
            name=TypeName(self.network.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
            attributes=tuple(
                attribute(name, uid, "timestamp" if name == "timestamp" else "string")
                for name, uid in ATTRIBUTES.items()
            ),
        )
        manager = KeySigner.generate()
        self.shared: list[Certificate] = [
            *(item for name, item in self.network.certificates.items() if name not in WITHOUT),
            naming(people["CCS"], BROKERS, people["CB"]),
            naming(people["PITO"], KEY_MANAGER, manager),
        ]
        self.homes: dict[str, Home] = {}
        self._home(root / "ccs", people["CB"], keys={"CCS": people["CCS"], "CCTV": people["CCTV"]}, domain="CCS")
        self.met = self._home(root / "met", people["MB"], keys={"Met": people["Met"], KEY_MANAGER: manager})
        self.homes["depot"] = self.homes.pop("met")
        for van in ("van1", "van2"):
            self._home(root / van, self.signers[van])
        self.share(*self.shared)
        self.manager = open_key_manager(self.met)[0]
        self.groups = open_home_groups(self.met, self.manager, self.type.name, at=self.now)
        self.open_service()
        self.service.apply(POLICY, at=self.now)
        self.held = {name: self._enrol(name) for name in self.signers}
        wanted = [Wanted(name=name, as_=name, type=TYPE_NAME) for name in PLATES]
        self.job: DeliveryJob = replace(delivery_job(Domain.open(self.met.path), wanted), clock=lambda: self.now)
        for name in self.homes:
            self.join(name)
        self.pass_seconds(LEAD)

    def _home(
        self, path: Path, broker: KeySigner, *, keys: dict[str, KeySigner] | None = None, domain: str = "Met"
    ) -> Home:
        config = HomeConfig(name=path.name, domain=domain, network=("PITO", NETWORK_NAME), log="../log")
        home = Home.create(path, config, broker=broker)
        home.add_public_key("PITO", self.network.key("PITO"))
        for name in PLATES:
            home.add_key(name, self.signers[name])
        for name, signer in (keys or {}).items():
            home.add_key(name, signer)
        home.types.put(sign_event_type(self.type, self.network.people["PITO"]).raw, at=self.now)
        self.homes[path.name] = home
        return home

    def share(self, *certificates: Certificate) -> None:
        """Give certificates to everybody: they prove the same to all."""
        for home in self.homes.values():
            for certificate in certificates:
                home.certificates.add(certificate)

    def open_service(self, listeners: list[Callable[[Withdrawn], object]] | None = None) -> None:
        """Start the access control service, as a home does, or with other listeners."""
        telling = None if listeners is None else HomeTelling(self.met, self.network.people["Met"], listeners=listeners)
        self.service = open_access_control(self.met, settings=Settings(blanket=False), telling=telling)

    def prove(self, name: str) -> Authenticated:
        """Let somebody prove its key."""
        return prove_key(self.service, self.signers[name], nonce=secrets.token_bytes(32), at=self.now)

    def _enrol(self, name: str) -> frozenset[CertificateId]:
        """Make a member, let it activate its role, and share what it is handed; give what the role brought."""
        client = name in PLATES
        kind, job = (MemberKind.CLIENT, "detective") if client else (MemberKind.BROKER, "driver")
        self.service.appoint(LANTERN, at=self.now)
        self.service.appoint(HARBOUR, at=self.now)
        code = self.service.invite(name, kind=kind, appointments=[f"{job}({name})"], at=self.now)
        first = self.service.enrol(self.prove(name), invitation=code, at=self.now).handed
        role = f"tracker('{PLATES[name]}')" if client else BROKER_ROLES[name]
        self.service.activate(self.prove(name), role, at=self.now)
        then = self.service.capabilities(self.prove(name), at=self.now)
        assert not then.refused
        self.share(*first.certificates, *then.certificates)
        known = {item.certificate_id for item in first.certificates}
        return frozenset(item.certificate_id for item in then.certificates) - known

    # -- time, keys and events

    def join(self, name: str) -> None:
        """Let a home's broker join on the certificates it has, and nothing else."""
        home, at = self.homes[name], self.now
        follow(home, at=at)
        joined = join_key_groups(
            home, self.type, lambda request, evidence: self.manager.join(request, evidence, at=at),
            manager=self.manager.public_key, at=at,
        )  # fmt: skip
        assert set(joined) == set(self.groups)

    def pass_seconds(self, seconds: int, *, sight: bool = False) -> None:
        """Let time pass; each second both cars may be sighted, and a micro-batch is delivered."""
        for _ in range(seconds):
            self.now += SECOND
            if sight:
                rows = [
                    {"numberplate": plate, "timestamp": self.now, "location": "Victoria"} for plate in PLATES.values()
                ]
                assert publish_here(self.homes["ccs"], TYPE_NAME, rows, as_="CCTV", at=self.now) == len(rows)
                self.job.run_here()

    def seen(self, name: str) -> list[int]:
        """List the seconds since the beginning whose sightings a client got."""
        rows = [row for batch in self.job.outbox.read(name, self.job.make_secret()) for row in batch.to_pylist()]
        assert {row["numberplate"] for row in rows} <= {PLATES[name]}
        return [(row["_stamp"] - milliseconds(START)) // 1000 for row in rows]

    def opened(self, name: str) -> list[bool]:
        """Tell of each parcel of the log whether the keys of a home open it; the depot made the plan, for Jones."""
        home, log = self.homes[name], LogDirectory(self.met.log_path)
        follow(home, at=self.now)
        commits = list(log.commits())
        plan = deliver_plan(self.met, TYPE_NAME, as_="jones", commits=commits, at=self.now, history=True)
        outcomes = [
            outcome
            for commit in commits
            for file in commit.files
            for outcome in deliver_parcels(
                plan, log.parcels(commit.lane, file), HomeKeys(str(home.path))(), clock=lambda: plan.term.made
            )
        ]
        places = [[row["location"] for item in out.deliveries for row in item.batch.to_pylist()] for out in outcomes]
        return [out.refused is None and seen == ["Victoria"] for out, seen in zip(outcomes, places, strict=True)]

    # -- what is so

    def roles(self) -> set[str]:
        """List the active roles."""
        return {str(role) for role in self.service.roles(at=self.now)}

    def withdrawn(self) -> frozenset[CertificateId]:
        """List what the newest list of the police in the log withdraws."""
        met = self.network.key("Met").key_id
        *_, record = NoticeLog(self.met.log_path).reader(NoticeKind.STATEMENT, met, met).since().records
        body = parse_statement(record.body).body
        assert isinstance(body, ListStatement)
        return body.certificates

    def epochs(self) -> dict[KeyGroupId, list[tuple[int, tuple[str, ...], int]]]:
        """List number, causes and size of the epochs of every group."""
        return {
            group: [(item.number, item.causes, item.members) for item in self.manager.history(group)]
            for group in self.groups
        }

    def inside(self, name: str) -> set[KeyGroupId]:
        """List the groups in which the manager has a place for a broker."""
        key = self.homes[name].broker.public_key.key_id
        found: set[KeyGroupId] = set()
        for group in self.groups:
            picture = self.manager.picture(group)
            if key in {member for _, member in picture.places} | set(picture.waiting):
                found.add(group)
        return found


ALL_ROLES = {
    "depot: relay(harbour)", "jones: tracker('BX51 ABC')", "smith: tracker('AE05 XYZ')", "van1: relay(lantern)",
    "van2: relay(harbour)",
}  # fmt: skip
FALLEN = {"smith: tracker('AE05 XYZ')", "van1: relay(lantern)"}


@pytest.fixture
def force(tmp_path: Path) -> Iterator[Force]:
    """Give the police with everybody in place and every key begun."""
    made = Force(tmp_path)
    yield made
    made.manager.close()


def check_fallen(force: Force, before: dict[KeyGroupId, list[tuple[int, tuple[str, ...], int]]]) -> None:
    """What the end of the operation leaves of roles, certificates and key groups, each group refreshed once for it."""
    assert force.roles() == ALL_ROLES - FALLEN
    assert force.withdrawn() == force.held["smith"] | force.held["van1"]
    live = {entry.certificate_id for entry in force.service.register(at=force.now)}
    assert live.isdisjoint(force.withdrawn())
    assert live >= force.held["jones"] | force.held["van2"] | force.held["depot"]
    assert force.inside("van1") == set()
    for name in ("depot", "van2", "ccs"):
        assert force.inside(name) == set(force.groups), name
    for group, epochs in force.epochs().items():
        assert epochs[:-1] == before[group]
        number, causes, members = epochs[-1]
        assert (number, members) == (before[group][-1][0] + 1, len(force.homes) - 1)
        assert RefreshCause.REVOCATION.value in causes


def test_a_retracted_premise_takes_role_capability_stream_and_keys_in_order(force: Force) -> None:
    """The operation ends: one call, and each stage is there in its place; another operation's people notice nothing."""
    heard: list[str] = []
    groups = HomeKeyGroups(force.met)

    def listen(notice: Withdrawn) -> None:
        # What comes before in the order is done when the key manager hears of it.
        assert notice.certificates == force.withdrawn() == force.held["smith"] | force.held["van1"]
        assert force.roles() == ALL_ROLES - FALLEN
        assert force.inside("van1") == set(force.groups)
        heard.append("told")
        groups(notice)

    force.open_service([listen])
    force.pass_seconds(2, sight=True)
    assert force.roles() == ALL_ROLES
    assert force.seen("smith") == force.seen("jones") == [LEAD + 1, LEAD + 2]
    assert all(all(force.opened(name)) for name in ("depot", "van1", "van2"))
    before = force.epochs()
    revocation = force.service.retract(LANTERN, at=force.now)
    assert (set(revocation.roles), heard, revocation.told) == (FALLEN, ["told"], True)
    check_fallen(force, before)
    force.pass_seconds(LEAD, sight=True)  # old key for a lead, then the new one
    assert force.seen("smith") == [LEAD + 1, LEAD + 2]
    assert force.seen("jones") == [LEAD + second for second in range(1, LEAD + 3)]
    assert all(force.opened("depot"))
    assert all(force.opened("van2"))
    opened = force.opened("van1")
    assert opened == sorted(opened, reverse=True)  # what was sealed before, and from some parcel on nothing
    assert opened[:2] == [True, True]
    assert not opened[-1]
    check_fallen(force, before)  # time and micro-batches have added nothing
    follow(force.homes["van1"], at=force.now)
    with pytest.raises(VerificationError):
        force.join("van1")


def test_a_premise_that_comes_back_brings_nothing_back_by_itself(force: Force) -> None:
    """The operation begins anew: roles, streams and keys stay down until they are asked for, with new certificates."""
    before = force.epochs()
    force.service.retract(LANTERN, at=force.now)
    force.service.appoint(LANTERN, at=force.now)
    force.pass_seconds(LEAD)
    check_fallen(force, before)
    force.service.activate(force.prove("van1"), "relay(lantern)", at=force.now)
    force.share(*force.service.capabilities(force.prove("van1"), at=force.now).certificates)
    force.join("van1")
    force.pass_seconds(LEAD)
    force.pass_seconds(1, sight=True)
    assert force.opened("van1") == [True]
    assert force.seen("smith") == []


@pytest.mark.parametrize("done", [False, True], ids=["before the key manager heard", "before the service noted it"])
def test_a_service_that_dies_within_the_cascade_completes_it_after_a_restart(force: Force, done: bool) -> None:
    """The list is out when it dies; started again it tells the key manager, and no key changes twice."""
    groups = HomeKeyGroups(force.met)

    def die(notice: Withdrawn) -> None:
        if done:
            groups(notice)
        raise Killed

    before = force.epochs()
    force.open_service([die])
    with pytest.raises(Killed):
        force.service.retract(LANTERN, at=force.now)
    assert force.withdrawn() == force.held["smith"] | force.held["van1"]
    assert force.inside("van1") == (set() if done else set(force.groups))
    assert (force.epochs() == before) is not done
    force.now += SECOND
    force.open_service()
    assert force.service.tell(at=force.now)
    check_fallen(force, before)
    assert force.service.tell(at=force.now)  # nothing is left
    force.pass_seconds(LEAD)
    force.pass_seconds(2, sight=True)
    check_fallen(force, before)
    assert (force.seen("smith"), len(force.seen("jones"))) == ([], 2)
    assert force.opened("van1") == [False, False]
    assert force.opened("van2") == [True, True]


def test_a_key_manager_that_does_not_answer_holds_up_no_later_list(force: Force) -> None:
    """While key groups cannot be told, the next withdrawal is in the log at once; later both are made good."""
    groups = HomeKeyGroups(force.met)
    down = True

    def listen(notice: Withdrawn) -> None:
        if down:
            raise UnavailableError("the key manager does not answer", code="DATABASE_DOWN")
        groups(notice)

    before = force.epochs()
    force.open_service([listen])
    assert not force.service.retract(LANTERN, at=force.now).told
    assert not force.service.retract(HARBOUR, at=force.now).told
    gone = frozenset().union(*force.held.values())
    assert force.withdrawn() == gone
    assert force.epochs() == before
    down = False
    assert force.service.tell(at=force.now)
    assert [force.inside(name) for name in ("depot", "van1", "van2")] == [set()] * 3
    assert force.inside("ccs") == set(force.groups)
