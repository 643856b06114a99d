"""A key manager, brokers that join and follow it, and their log; shared by the tests of the key manager."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from maia import database
from maia.authority import Action, CertificatePool, StatementBook, Verifier, type_right, verify_event_type
from maia.encryption import (
    CountUse,
    EpochKey,
    GroupRequest,
    JoinGroups,
    KeyGroupId,
    LeaveGroups,
    TreeMember,
    join_public_key,
    new_join_key,
    open_join_answer,
    open_welcome,
    parse_rekey,
    rekey_topic,
    sign_group_request,
    verify_rekey,
)
from maia.events import EncryptionMode, EventType, Options, TypeName, attribute, parse_event_type, parse_version
from maia.events import sign_event_type as sign_type
from maia.kernel import BROKERS, DOMAINS, milliseconds
from maia.key_manager import KeyManager, KeySettings, manager_secret
from maia.log import START as LANE_START
from maia.log import LaneReader, NoticeKind, NoticeLog, Place, sign_record
from maia.principals import Certificate, KeySigner
from maia.testing import at as instant
from maia.testing import grant, naming

OWNER, DOMAIN, EVE = KeySigner(b"o" * 32), KeySigner(b"d" * 32), KeySigner(b"e" * 32)
START = instant("2026-06-01T12:00:00")
EXACT = KeySettings(period=timedelta(hours=1), lead=timedelta(0))
UIDS = ("1", "2")


def moment(seconds: float) -> datetime:
    """Name an instant some seconds after the start."""
    return START + timedelta(seconds=seconds)


def ms(seconds: float) -> int:
    """Name it in milliseconds."""
    return milliseconds(moment(seconds))


def definition(version: str = "1", mode: EncryptionMode = EncryptionMode.ATTRIBUTE, uids: Iterable[str] = UIDS):
    """Give one verified version of the type."""
    body = EventType(
        name=TypeName(OWNER.public_key, "Sighting", parse_version(version)),
        attributes=tuple(attribute(f"a{uid}", uid, "string") for uid in uids),
        options=Options(encryption=mode),
    )
    return verify_event_type(parse_event_type(sign_type(body, OWNER).raw), verifier=Verifier(), at=START)


TYPE = definition()
TYPE_ID = TYPE.event_type.type_id
GROUPS = tuple(KeyGroupId(TYPE_ID, label) for label in (b"*", b"1", b"2"))
PLATE = GROUPS[1]


def read_everything(**more):
    """Write a right to read the type."""
    return type_right(OWNER.public_key, "Sighting", **({"actions": [Action.SUBSCRIBE]} | more))


class Broker:
    """A broker of the domain: its key, its certificates, and what it knows of each group."""

    def __init__(self, name: str, *, valid=None, tests=(), attributes=None, publishes: bool = False) -> None:
        self.signer = KeySigner(name.encode().ljust(32, b"."))
        rights = {"actions": [Action.SUBSCRIBE, Action.PUBLISH]} if publishes else {}
        self.chain: list[Certificate] = [
            grant(OWNER, DOMAIN, read_everything(**rights), delegate=True),
            grant(
                DOMAIN,
                self.signer,
                read_everything(**({} if attributes is None else {"attributes": attributes}), **rights),
                valid=valid,
                tests=tests,
            ),
            naming(OWNER, DOMAINS, DOMAIN),
            naming(DOMAIN, BROKERS, self.signer),
        ]
        self.private = b""
        self.request = b""
        self.members: dict[KeyGroupId, TreeMember] = {}
        self.keys: dict[KeyGroupId, dict[int, EpochKey]] = {}
        self.read: dict[KeyGroupId, Place] = {}

    @property
    def name(self) -> bytes:
        """What it is called in messages."""
        return self.signer.public_key.key_id

    @property
    def evidence(self) -> list[bytes]:
        """Its certificates."""
        return [certificate.raw for certificate in self.chain]

    def sign(self, manager: KeyManager, what, at: datetime) -> bytes:
        """Sign a request."""
        request = GroupRequest(manager=manager.public_key.key_id, type_id=TYPE_ID, stamp=milliseconds(at), what=what)
        return sign_group_request(request, self.signer)

    def ask(self, manager: KeyManager, at: datetime) -> bytes:
        """Make a request to join."""
        self.private = new_join_key()
        self.request = self.sign(manager, JoinGroups(key=join_public_key(self.private)), at)
        return self.request

    def join(self, manager: KeyManager, at: datetime) -> set[bytes]:
        """Join, and start to follow; tell the labels."""
        return self.take(manager.join(self.ask(manager, at), self.evidence, at=at), manager)

    def take(self, answer: bytes, manager: KeyManager) -> set[bytes]:
        """Take an answer in."""
        places = open_join_answer(
            answer, self.private, member=self.signer.public_key.key_id, manager=manager.public_key
        )
        for place in places:
            self.members[place.group] = TreeMember(place.group, self.name, place.individual)
            self.read[place.group] = LANE_START
            if place.welcome is not None:
                key = open_welcome(place.welcome, place.individual, manager.public_key)
                self.keys.setdefault(place.group, {})[key.number] = key
        return {place.group.label for place in places}

    def leave(self, manager: KeyManager, at: datetime, *labels: bytes):
        """Leave."""
        return manager.leave(self.sign(manager, LeaveGroups(labels=labels), at), at=at)

    def count(self, manager: KeyManager, at: datetime, *uses: tuple[bytes, int, int]):
        """Count what it sealed."""
        return manager.count_use(self.sign(manager, CountUse(uses=uses), at), at=at)

    def follow(self, notices: NoticeLog, manager: KeyManager) -> None:
        """Read what is new in the log."""
        for group, member in self.members.items():
            lane = notices.reader(NoticeKind.REKEY, manager.public_key.key_id, rekey_topic(group))
            for record in lane.since(self.read[group]).records:
                key = member.apply(verify_rekey(parse_rekey(record.body), manager.public_key))
                self.read[group] = record.place
                if key is not None:
                    self.keys.setdefault(group, {})[key.number] = key

    def newest(self, group: KeyGroupId = PLATE) -> int:
        """Tell the newest epoch whose key it has."""
        return max(self.keys.get(group, {0: None}))


class World:
    """A database, a log, and the manager on them."""

    def __init__(
        self, root: Path, url: str | None = None, *, settings: KeySettings = EXACT, migrate: bool = True
    ) -> None:
        self.root = root
        self.url = str(root / "store.db") if url is None else url
        self.settings = settings
        self.book = StatementBook()
        self.notices = NoticeLog(root / "log")
        self.versions = [TYPE]
        self.engine = database.open_database(self.url)
        if migrate:
            database.migrate(self.engine)
        self.manager = self.make()

    def make(self, **more) -> KeyManager:
        """Make a manager, as a new process would."""
        arguments = {
            "verifier": lambda: Verifier(statements=self.book),
            "versions": lambda _type, _at: [item.event_type for item in self.versions],
            "notices": self.notices,
            "settings": self.settings,
        } | more
        return KeyManager(self.engine, OWNER, manager_secret(OWNER.export_seed()), **arguments)

    def open(self, seconds: float = 0) -> tuple[KeyGroupId, ...]:
        """Open the groups of the type."""
        return self.manager.open_groups(self.versions, CertificatePool(), at=moment(seconds))

    def join(self, broker: Broker, seconds: float) -> set[bytes]:
        """Let a broker join."""
        return broker.join(self.manager, moment(seconds))

    def follow(self, *brokers: Broker) -> None:
        """Let brokers read the log."""
        for broker in brokers:
            broker.follow(self.notices, self.manager)

    def starts(self, group: KeyGroupId = PLATE) -> list[float]:
        """Tell when the epochs of a group begin, in seconds."""
        return [(record.start - ms(0)) / 1000 for record in self.manager.history(group)]

    def published(self, group: KeyGroupId = PLATE) -> list[int]:
        """Tell the numbers that the log shows, in its order."""
        return [parse_rekey(record.body).rekey.number for record in self.lane(group).since().records]

    def sign_elsewhere(self, body: bytes, group: KeyGroupId = PLATE) -> None:
        """Put the next record into the manager's lane with the manager's key, past its database."""
        read = self.lane(group).since()
        stamp = read.records[-1].stamp + 1 if read.records else 0
        record = sign_record(self.lane(group).lane, read.place, stamp=stamp, body=body, signer=OWNER)
        assert self.notices.store.put_new(record.lane.record_name(record.number), record.raw)

    def lane(self, group: KeyGroupId = PLATE) -> LaneReader:
        """Read the manager's lane of a group."""
        return self.notices.reader(NoticeKind.REKEY, OWNER.public_key.key_id, rekey_topic(group))
