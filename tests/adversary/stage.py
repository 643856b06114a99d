"""The world on which a sequence is played: the real authority, kernel, planner, lanes and notices, over one log.

What stands below Spark is called as the doors call it: `Domain.publish_plan`, `publish_batches`, `OwnLanes.commit`,
`type_stretch`, `Domain.deliver_plan`, `deliver_segment`, `admit_broker`, `StatementFollower`. What a home would read
from its own files (certificates, the keyring) is in memory here, and time is told, so that a sequence costs
milliseconds; `homes.py` plays with real homes and a real key manager.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
from moves import COALITION, HONEST, UIDS, Link, Naming, Option, Row
from oracle import BASE, LEAD, PERIOD

from maia.authority import (
    Action,
    CertificatePool,
    Constraint,
    Rhythm,
    SignatureCache,
    Tag,
    VerifiedEventType,
    Verifier,
    one_of,
    type_right,
    verify_event_type,
)
from maia.domain import Domain, parts_of, type_stretch
from maia.domain.plans import Planner
from maia.domain.possession import prove_client
from maia.domain.snapshot import Snapshot
from maia.domain.statements import StatementFollower
from maia.encryption import WHOLE_EVENT, EpochId, KeyGroupId, Keyring, Parcel, open_parcel, verify_parcel
from maia.errors import EncodingError, MaiaError, UnavailableError
from maia.events import (
    EncryptionMode,
    EventType,
    Options,
    TypeName,
    attribute,
    parse_version,
    sign_event_type,
    to_arrow_schema,
)
from maia.home import Home, HomeConfig, StatementFile
from maia.kernel import (
    DeliverPlan,
    Sealing,
    Sessions,
    admit_broker,
    event_ids,
    event_name,
    milliseconds,
    publish_batches,
)
from maia.log import (
    Commit,
    LogDirectory,
    NoticeKind,
    NoticeLog,
    OwnLanes,
    Places,
    deliver_segment,
)
from maia.principals import (
    Authorisation,
    CertificateId,
    OnlineTest,
    Period,
    TestKind,
    UnverifiedCertificate,
    issue,
    parse_certificate,
    unsafe_sign_certificate,
)
from maia.principals import Naming as NameBody
from maia.testing import People, StatementPublisher

TYPE = "T"
START = datetime(2026, 1, 1, tzinfo=UTC)
PEOPLE = People(*HONEST, *COALITION, seed="adversary")
TESTS = (OnlineTest(TestKind.CRL, PEOPLE["o"].public_key, ()),)
RHYTHM = Rhythm(period=timedelta(seconds=PERIOD), lead=timedelta(seconds=LEAD))
BASE_NAMES = (
    Naming("o", "domains", "s"), Naming("o", "domains", "m"), Naming("s", "brokers", "sb"),
    Naming("m", "brokers", "mb"), Naming("x", "brokers", "xb"),
)  # fmt: skip
SKEW = HomeConfig(name="m").skew * 1000
"""By how much an event may be dated ahead, in milliseconds."""
Shown = tuple[str, str, Row]
"""What a reader is shown: the lane's origin in hex, the event's name, and the cells."""


def at(seconds: int) -> datetime:
    """The instant so many seconds after the beginning."""
    return START + timedelta(seconds=seconds)


@lru_cache(maxsize=2)
def definition(owner: str) -> EventType:
    """The type; ``p`` owns one that is called the same."""
    return EventType(
        name=TypeName(PEOPLE[owner].public_key, TYPE, parse_version("1")),
        attributes=tuple(attribute(f"x{uid}", uid, "integer") for uid in UIDS),
        options=Options(encryption=EncryptionMode.ATTRIBUTE),
    )


def certificate(link: Link) -> bytes:
    """Sign a link."""
    return issue(_body(link), PEOPLE[link.issuer]).raw


def _body(link: Link) -> Authorisation:
    return Authorisation(
        issuer=PEOPLE[link.issuer].public_key, subject=PEOPLE[link.subject].public_key, delegate=link.delegate,
        tag=one_of(map(_tag, link.options)).to_sexp(), tests=TESTS if link.listed else (),
        period=Period(None, None if link.until is None else at(link.until)),
        conditions=tuple(f'event["{uid}"] == {value}' for uid, value in link.conditions),
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _tag(option: Option) -> Tag:
    return type_right(
        PEOPLE["o"].public_key, TYPE, actions=[Action(word) for word in option.actions], attributes=option.uids,
        constraints=[Constraint(uid, "in", values) for uid, values in option.demands],
    )  # fmt: skip


def forged(link: Link) -> bytes:
    """Make a certificate in the name of somebody whose key is not at hand."""
    return unsafe_sign_certificate(_body(link), PEOPLE["p"])


def name_certificate(naming: Naming) -> bytes:
    """Sign a name."""
    signer = PEOPLE[naming.issuer]
    subject = PEOPLE[naming.subject].public_key
    return issue(NameBody(issuer=signer.public_key, name=naming.name, subject=subject), signer).raw


def lists(root: Path) -> StatementPublisher:
    """The owner's lists, in the log of a sequence."""
    return StatementPublisher(notices=NoticeLog(root / "log", own=root / "o"), signer=PEOPLE["o"], rhythm=RHYTHM)


@dataclass(frozen=True)
class Sealed:
    """What left a broker: the events by the names that readers give them, with the rows they came from."""

    events: tuple[tuple[str, Row], ...]
    rows: tuple[int, ...]


@dataclass
class Fixed:
    """What is the same in all sequences of a process: keys, homes without content, the type, and its keys."""

    root: Path
    homes: dict[str, Home] = field(default_factory=dict)
    certificates: tuple[UnverifiedCertificate, ...] = ()
    ring: Keyring = field(default_factory=Keyring)

    def __post_init__(self) -> None:
        """Make them."""
        self.event_type = definition("o")
        self.definition = sign_event_type(self.event_type, PEOPLE["o"])
        self.signatures = SignatureCache()
        self.groups = {uid: KeyGroupId(self.event_type.type_id, uid.encode()) for uid in UIDS}
        for uid, group in self.groups.items():
            self.ring.add(group, EpochId(milliseconds(START)), uid.encode() * 32)
        for name, broker, clients in (("s", "sb", ("camera", "w")), ("m", "mb", ("reader", "h", "g"))):
            home = Home.create(
                self.root / name, HomeConfig(name=name, domain=name, broker=broker), broker=PEOPLE[broker]
            )
            for client in (name, *clients):
                home.add_key(client, PEOPLE[client])
            home.save_keyring(self.ring)
            self.homes[name] = home
        always = (*map(certificate, BASE), *map(name_certificate, BASE_NAMES))
        self.certificates = tuple(map(parse_certificate, always))
        self.named = parse_certificate(name_certificate(Naming("o", "domains", "x")))
        lists(self.root / "listed").publish({}, at=START)
        self.proven = {
            client: prove_client(self.homes[name], client, PEOPLE[client])
            for name, client in (("s", "camera"), ("s", "w"), ("m", "reader"), ("m", "h"), ("m", "g"))
        }

    def verified(self, verifier: Verifier) -> VerifiedEventType:
        """The type, as its owner's."""
        return verify_event_type(self.definition, verifier=verifier, at=START)

    def home(self, name: str, root: Path) -> Home:
        """Give a home of its own to a sequence, with the same files and the same keys."""
        kept = self.homes[name]
        (root / name).mkdir()
        for path in kept.path.iterdir():
            if path.is_file():
                os.link(path, root / name / path.name)
        (root / name / "keys").symlink_to(kept.path / "keys")
        return Home(root / name, kept.config)

    @classmethod
    def make(cls) -> Fixed:
        """Make them in a folder that `close` removes, in memory where there is such a place."""
        memory = Path("/dev/shm")  # noqa: S108 - only faster
        return cls(Path(tempfile.mkdtemp(prefix="maia-adversary-", dir=memory if memory.is_dir() else None)))

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.root, ignore_errors=True)


class StageDomain(Domain):
    """An honest domain whose certificates are in memory; its statements, its log and its plans are a domain's."""

    def __init__(self, stage: Stage, name: str) -> None:
        """Open the domain for one sequence."""
        home = stage.fixed.home(name, stage.root)
        super().__init__(home, clock=lambda: at(stage.now))
        self.log = LogDirectory(stage.log)
        self._planner = Planner(home, self.log, self._own, self._follower.fetcher)
        self._stage = stage
        self._file = StatementFile(stage.root / name / "statements")
        self._heed = StatementFollower(SimpleNamespace(statements=self._file), NoticeLog(stage.log))  # type: ignore[arg-type]
        self._known: tuple[object, Snapshot] | None = None
        self._mark: object = None
        self._followed: object = None
        self._verifier: Verifier | None = None

    def follow(self, *, at: datetime | None = None) -> datetime:
        """Take up what the owner's lists say."""
        moment = self.clock() if at is None else at
        seen = (moment, self._stage.pool.token)
        if seen != self._followed:  # nothing happens within an instant
            self._heed.follow(self._stage.pool, at=moment)
            self._followed = seen
        return moment

    def known(self, *, at: datetime) -> Snapshot:
        """Give the evidence of the sequence, with the statements that were taken up."""
        verifier = self.verifier()
        pool = self._stage.pool
        key = (verifier, pool.token)
        if self._known is None or self._known[0] != key:
            verified = self._stage.fixed.verified(verifier)
            sessions = self._known[1].sessions if self._known and self._known[1].verifier is verifier else None
            if sessions is None:
                sessions = Sessions(verifier)
                sessions.install(verified)
            raw = self._stage.fixed.definition.raw
            names = (verified.event_type.name,)
            self._known = (key, Snapshot(pool, sessions, ((verified, raw),), names, failed=False, at=at))
        return self._known[1]

    def verifier(self) -> Verifier:
        """Prove rights with the statements of now."""
        mark = self._file.path.stat().st_mtime_ns if self._file.path.exists() else None
        if self._verifier is None or mark != self._mark:
            self._mark = mark
            self._verifier = Verifier(statements=self._file.load(), signatures=self._stage.fixed.signatures)
        return self._verifier


class Stage:
    """The world of one sequence; its parts are named as in `moves`."""

    def __init__(self, fixed: Fixed, root: Path, given: tuple[Link, ...], *, domain: bool) -> None:
        """Build it: what was given is in everybody's hands, and the owner has said its first list."""
        self.fixed = fixed
        self.root = root
        self.log = root / "log"
        self.now = 0
        self.listed = any(link.listed for link in given)
        if self.listed:
            shutil.copytree(fixed.root / "listed", root)
        else:
            root.mkdir()
        self.pool = CertificatePool(fixed.certificates)
        self.ids = [item.certificate_id for item in fixed.certificates[: len(BASE)]]
        for link in given:
            self.ids.append(self.add(certificate(link)))
        if domain:
            self.pool.add(fixed.named)
        self.lists = lists(root)
        self.withdrawn: dict[CertificateId, datetime | None] = {}
        self.s, self.m = StageDomain(self, "s"), StageDomain(self, "m")
        self.lanes = OwnLanes(self.s.log, root / "s" / "lanes", PEOPLE["sb"])
        self.ring = Keyring()
        self.after: Places = {}
        self.parked: tuple[tuple[str, str], ...] = ()
        self.plans: list[tuple[DeliverPlan, tuple[Commit, ...]]] = []
        self.tried: dict[str, Sealed] = {}

    # -- certificates and lists

    def add(self, raw: bytes) -> CertificateId:
        """Put a certificate into everybody's hands."""
        parsed = parse_certificate(raw)
        self.pool.add(parsed)
        return parsed.certificate_id

    @property
    def evidence(self) -> tuple[bytes, ...]:
        """All certificates that there are."""
        return tuple(item.raw for item in self.pool)

    def upkeep(self) -> None:
        """Say the lists that are due, if anything demands them."""
        if self.listed:
            self.lists.publish(self.withdrawn, at=at(self.now))

    def revoke(self, identity: CertificateId) -> None:
        """Withdraw a certificate at once."""
        self.withdrawn[identity] = None
        self.lists.withdraw(self.withdrawn, at=at(self.now))

    def reassert(self) -> None:
        """Let the owners of lanes put again what is theirs."""
        self.lanes.reassert(at=at(self.now), depth=None)
        if not self.listed:
            return
        writer = self.lists.notices.writer(NoticeKind.STATEMENT, PEOPLE["o"], PEOPLE["o"].public_key.key_id)
        writer.reassert(at=at(self.now), depth=None)

    # -- publishing

    def publish(self, who: str, rows: tuple[Row, ...], *, name: str) -> Sealed | None:
        """Publish as a client of ``s``; nothing when it is refused as a whole or was published before.

        Raises:
            MaiaError: The client has no right.
        """
        moment = at(self.now)
        plan = self.s.publish_plan(TYPE, client=self.fixed.proven[who], publication=name, at=moment)
        batch = table(self.fixed.event_type, rows)
        writer = self.s.log.writer(name, plan.sealing.type_id, 0, PEOPLE["sb"].public_key.key_id, at=moment)
        events: list[tuple[str, Row]] = []
        kept: list[int] = []
        for sealed in publish_batches(
            plan, 0, iter((batch,)), PEOPLE["sb"], self.fixed.ring, lambda: milliseconds(moment)
        ):
            refused = {letter.row for letter in sealed.letters}
            kept += [number for number in range(len(rows)) if number not in refused]
            if sealed.parcel is not None:
                writer.add(sealed.parcel)
                events += self.contents(sealed.parcel)
        file = writer.close()
        if file is None:
            return Sealed((), ())
        type_id, evidence = plan.sealing.type_id.hex(), plan.sealing.evidence.hex()
        self.tried[file.path] = Sealed(tuple(events), tuple(kept))
        try:
            made = self.lanes.commit(name, type_id, (file,), evidence=evidence, at=moment)
        except UnavailableError as error:
            if error.code != "LANE_PENDING":  # it counts, and is told when the store takes it
                raise
        else:
            if made.files != (file,):
                return None
        return Sealed(tuple(events), tuple(kept))

    def counted(self, name: str) -> Sealed | None:
        """Give what was sealed by the attempt of a publication that counts, by the publisher's own record."""
        found = self.lanes.find(name)
        return None if found is None else next((self.tried[file.path] for file in found.files), None)

    def contents(self, parcel: Parcel) -> Iterator[tuple[str, Row]]:
        """Look what was sealed, with all keys there are."""
        columns = open_parcel(verify_parcel(parcel), self._key)
        names = event_ids(event_name(parcel.header.origin, parcel.header.event_base), range(parcel.header.count))
        cells = [columns[uid.encode()].to_pylist() if uid.encode() in columns else None for uid in UIDS]
        for row, name in enumerate(names):
            yield name, tuple(None if column is None else column[row] for column in cells)

    def _key(self, label: bytes) -> bytes | None:
        group = self.fixed.groups.get(label.decode("ascii", "replace"))
        return None if group is None else self.fixed.ring.key(group, self.fixed.ring.epochs(group)[0])

    def sealing(self, evidence: bytes, owner: str = "o") -> Sealing:
        """How somebody seals events of a type."""
        return Sealing(type_id=definition(owner).type_id, mode=EncryptionMode.ATTRIBUTE, evidence=evidence)

    def lane_folder(self, origin: str) -> Path:
        """Where the lane of an origin lies."""
        return self.log / f"type={self.fixed.event_type.type_id.hex()}/origin={PEOPLE[origin].public_key.key_id.hex()}"

    def lanes_commits(self) -> list[Commit]:
        """What ``s`` committed so far and the log still shows, as anybody can read it."""
        lane = LogDirectory(self.log).lane(
            f"{self.fixed.event_type.type_id.hex()}/{PEOPLE['sb'].public_key.key_id.hex()}"
        )
        with suppress(MaiaError):
            lane.refresh()
            return lane.commits()
        return []

    # -- reading

    def read(self, who: str, where: tuple[str, int] | None) -> list[Shown]:
        """Read the whole log as a client of ``m``, as a batch is read: lane, event, cells.

        Raises:
            MaiaError: The client has no right, or its filter reads what is closed to it.
        """
        moment = self.m.follow()
        text = "" if where is None else f"x{where[0]} = {where[1]}"
        name = self.fixed.event_type.name
        found = type_stretch(self.m, name, after={}, at=moment, deep=False)
        plan = self.m.deliver_plan(
            TYPE, client=self.fixed.proven[who], where=text, commits=found.commits, at=moment
        )  # fmt: skip
        self.plans.append((plan, found.commits))
        return list(self._rows(plan, found.commits, lenient=True))

    def again(self, number: int) -> list[Shown]:
        """Work by the plan of an earlier read, as a task that is tried again or a frame that was kept.

        Raises:
            MaiaError: The plan is over.
        """
        return list(self._rows(*self.plans[number], lenient=True))

    def step(self) -> list[Shown]:
        """Take the next stretch of the honest reader's stream; what raises leaves the place where it is."""
        moment = self.m.follow()
        found = type_stretch(self.m, self.fixed.event_type.name, after=self.after, at=moment)
        plan = self.m.deliver_plan(TYPE, client=self.fixed.proven["reader"], commits=found.commits, at=moment)
        rows = list(self._rows(plan, found.commits, lenient=False))
        self.after = dict(found.upto)
        self.parked = found.parked
        return rows

    def _rows(self, plan: DeliverPlan, commits: tuple[Commit, ...], *, lenient: bool) -> Iterator[Shown]:
        compiled = plan.compiled()
        for part in parts_of(commits, plan):
            parcels = self.m.log.parcels(part.lane, part.file)
            outcomes = deliver_segment(
                plan,
                parcels,
                self.fixed.ring,
                file=part.file,
                origin=part.origin,
                clock=self.m.clock,
                compiled=compiled,
            )
            try:
                for outcome in outcomes:
                    if outcome.opened is None or outcome.refused is not None:
                        continue
                    for delivery in outcome.deliveries:
                        names = outcome.opened.event_ids(delivery.rows.tolist())
                        for event, row in zip(names, delivery.batch.to_pylist(), strict=True):
                            yield part.origin, event, tuple(row[f"x{uid}"] for uid in UIDS)
            except (UnavailableError, EncodingError):
                if not lenient:
                    raise

    # -- keys

    def join(self, who: str) -> set[str]:
        """Ask for the keys of the attributes, as a key manager decides; the coalition keeps what it gets."""
        self.m.follow()
        verifier = self.m.verifier()
        verified = self.fixed.verified(verifier)
        try:
            found = admit_broker(
                PEOPLE[who].public_key, [verified.event_type], self.pool, verifier=verifier, at=at(self.now)
            )
        except MaiaError:
            return set()
        labels = {admission.group.label for admission in found}
        got = set(UIDS) if WHOLE_EVENT in labels else {label.decode() for label in labels}
        for uid in got:
            group = self.fixed.groups[uid]
            if not self.ring.epochs(group):
                epoch = self.fixed.ring.epochs(group)[0]
                key = self.fixed.ring.key(group, epoch)
                assert key is not None
                self.ring.add(group, epoch, key)
        return got


def table(event_type: EventType, rows: tuple[Row, ...]) -> pa.RecordBatch:
    """Rows as a client hands them over."""
    columns = [pa.array([row[place] for row in rows], type=pa.int64()) for place in range(len(UIDS))]
    return pa.RecordBatch.from_arrays(columns, schema=to_arrow_schema(event_type))
