"""The numberplate network with PITO's key manager: homes over one log, their time, and what they send and see."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from maia.authority import Action, network_right, type_right
from maia.domain import HomeKeys, SealingKeys, join_key_groups, open_home_groups, open_key_manager
from maia.encryption import KeyGroupId, Parcel, parse_parcel
from maia.events import (
    AttributeType,
    EncryptionMode,
    EventType,
    Options,
    TypeName,
    attribute,
    parse_version,
    sign_event_type,
)
from maia.home import Home, HomeConfig
from maia.kernel import (
    BROKERS,
    Outcome,
    PublishPlan,
    deliver_parcels,
    enforce_publication,
    milliseconds,
    publish_batches,
    reserve_stamps,
)
from maia.key_manager import KeyManager, KeySettings
from maia.log import LogDirectory, OwnLanes
from maia.principals import Certificate, KeySigner
from maia.testing import (
    ATTRIBUTES,
    NETWORK_NAME,
    TYPE_NAME,
    TYPE_VERSION,
    NumberplateNetwork,
    People,
    deliver_plan,
    follow,
    grant,
    naming,
    numberplate_network,
    publish_plan,
)

KINDS = {"numberplate": "string", "timestamp": "timestamp", "location": "string"}
LEAD = timedelta(seconds=1)
HIDING = "uk.gov.pito.Network"
"""The type whose key hides the ids of all others, on a network with keyed ids."""
Row = tuple[object, object]


@dataclass
class Network:
    """All of it. Time passes only when it is told to."""

    root: Path
    people: NumberplateNetwork
    event_type: EventType
    now: datetime
    homes: dict[str, Home] = field(default_factory=dict)
    certificates: list[Certificate] = field(default_factory=list)
    settings: KeySettings = field(default_factory=lambda: KeySettings(lead=LEAD, period=None))
    keyed: bool = False
    parts: People | None = None
    high: int = -1

    def __post_init__(self) -> None:
        """Begin with PITO's home and its key manager."""
        self.log = LogDirectory(self.root / "log")
        self.add("pito", KeySigner.generate(), keys={"PITO": self.people.people["PITO"]}, domain="PITO")
        self.manager = self._open()

    def _open(self) -> KeyManager:
        manager, _ = open_key_manager(self.homes["pito"], settings=self.settings)
        manager.start(at=self.now)
        for event_type in self.types():
            open_home_groups(self.homes["pito"], manager, event_type.name, at=self.now)
        return manager

    def types(self) -> tuple[EventType, ...]:
        """List the types: the numberplates, and the one that hides ids."""
        name = TypeName(self.people.key("PITO"), HIDING, parse_version("1"))
        hiding = EventType(
            name=name, attributes=(attribute("none", "1", "string"),), options=Options(encryption=EncryptionMode.EVENT)
        )
        return (self.event_type, hiding) if self.keyed else (self.event_type,)

    def add(
        self, name: str, broker: KeySigner, *, keys: dict[str, KeySigner] | None = None, domain: str = "domain"
    ) -> Home:
        """Make a home with all certificates that there are by now."""
        home = Home.create(
            self.root / name,
            HomeConfig(
                name=name, log="../log", domain=domain, network=("PITO", NETWORK_NAME), plan_age=86_400, **self.extra(),
            ),
            broker=broker,
        )  # fmt: skip
        if domain != "PITO":
            home.add_public_key("PITO", self.people.key("PITO"))
        for who, signer in (keys or {}).items():
            home.add_key(who, signer)
        for event_type in self.types():
            home.types.put(sign_event_type(event_type, self.people.people["PITO"]).raw, at=self.now)
        self.homes[name] = home
        self.grant()
        return home

    def extra(self) -> dict[str, str]:
        """Give the settings that a test turned on."""
        return {"keyed_types": HIDING} if self.keyed else {}

    def grant(self, *certificates: Certificate) -> None:
        """Give certificates to everybody: they prove the same to all."""
        self.certificates += certificates
        for home in self.homes.values():
            for certificate in (*self.people.certificates.values(), *self.certificates):
                home.certificates.add(certificate)

    def close(self) -> None:
        """Let go of the database."""
        self.manager.close()

    def reopen(self) -> None:
        """Restart everything."""
        self.close()
        self.manager = self._open()
        self.homes = {name: Home.open(home.path) for name, home in self.homes.items()}

    # -- time and keys

    def pass_time(self, seconds: float, *, follow: Iterable[str] | None = None) -> None:
        """Let time pass for the manager, and then for those homes that look."""
        self.now += timedelta(seconds=seconds)
        self.manager.tick(at=self.now)
        self.look(self.homes if follow is None else follow)

    def look(self, homes: Iterable[str]) -> None:
        """Let homes follow the log."""
        for name in homes:
            follow(self.homes[name], at=self.now)

    def join(self, name: str) -> set[bytes]:
        """Let a home's broker join the groups of the types; tell the labels of the numberplates'."""
        manager, at = self.manager, self.now
        joined: list[tuple[KeyGroupId, ...]] = [
            join_key_groups(
                self.homes[name], event_type, lambda request, evidence: manager.join(request, evidence, at=at),
                manager=manager.public_key, at=at,
            )
            for event_type in reversed(self.types())
        ]  # fmt: skip
        return {group.label for group in joined[-1]}

    def refresh_all(self, event_type: EventType | None = None) -> None:
        """Change every key, or those of one type."""
        for status in self.manager.status():
            if status.number and (event_type is None or status.group.type_id == event_type.type_id):
                self.manager.refresh(status.group, at=self.now)

    # -- events

    @property
    def kinds(self) -> dict[str, AttributeType]:
        """Give the attribute types by uid."""
        return {item.uid: item.type for item in self.event_type.attributes}

    def stamp(self) -> int:
        """Reserve a stamp in the network's time."""
        self.high = reserve_stamps(self.high, now=milliseconds(self.now), count=1).first
        return self.high

    def rows(self, plates: Iterable[str]) -> pa.RecordBatch:
        """Make one sighting per plate, as the camera sees it."""
        found = list(plates)
        schema = pa.schema(
            [("numberplate", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC")), ("location", pa.string())]
        )
        columns = {"numberplate": found, "timestamp": [self.now] * len(found), "location": ["Paddington"] * len(found)}
        return pa.RecordBatch.from_pydict(columns, schema=schema)

    def plan(self, publication: str) -> PublishPlan:
        """Advertise as the camera of the CCS."""
        return publish_plan(
            self.homes["ccs"], TYPE_NAME, as_="CCTV", version=None, publication=publication, at=self.now
        )

    def transit(self, plates: Iterable[str]) -> pa.RecordBatch:
        """Make rows as they travel."""
        return enforce_publication(self.event_type, self.rows(plates), self.plan("transit").clauses).batch

    def publish(
        self,
        publication: str,
        plates: Iterable[str],
        *,
        follow: Iterable[str] = (),
        next_stamp: Callable[[], int] | None = None,
        plan: PublishPlan | None = None,
    ) -> None:
        """Publish through the kernel and commit."""
        self.look(follow)
        home, plan = self.homes["ccs"], self.plan(publication) if plan is None else plan
        sealed = publish_batches(
            plan, 0, iter([self.rows(plates)]), home.broker, SealingKeys(home), next_stamp or self.stamp
        )
        parcels = [item.parcel for item in sealed if item.parcel is not None]
        self.commit(
            publication, parcels, origin=home.broker.public_key.key_id, evidence=plan.sealing.evidence,
            type_id=plan.sealing.type_id,
        )  # fmt: skip

    def commit(
        self,
        publication: str,
        parcels: Iterable[Parcel],
        *,
        origin: bytes,
        evidence: bytes,
        type_id: bytes | None = None,
    ) -> None:
        """Put parcels into the log, whoever made them."""
        identity = self.event_type.type_id if type_id is None else type_id
        found = [home for home in self.homes.values() if home.broker.public_key.key_id == origin]
        signer = found[0].broker if found else KeySigner.generate()
        own = OwnLanes(self.log, (found[0].path if found else self.root / secrets.token_hex(8)) / "lanes", signer)
        writer = self.log.writer(publication, identity, 0, signer.public_key.key_id, at=self.now)
        for parcel in parcels:
            writer.add(parcel)
        file = writer.close()
        own.commit(publication, identity.hex(), () if file is None else (file,), evidence=evidence.hex(), at=self.now)

    def parcels(self) -> list[Parcel]:
        """List the parcels of the log, in order."""
        files = [(commit.lane, file) for commit in self.log.commits() for file in commit.files]
        found = (logged for lane, file in files for logged in self.log.parcels(lane, file))
        return [parse_parcel(logged.parse().to_bytes()) for logged in found]

    def deliver(self, name: str, who: str) -> Iterator[Outcome]:
        """Run the log through a home's plan for a client, as it is now."""
        home = self.homes[name]
        commits = list(self.log.commits())
        plan = deliver_plan(home, TYPE_NAME, as_=who, commits=commits, at=self.now, history=True)
        for commit in commits:
            for file in commit.files:
                parcels = self.log.parcels(commit.lane, file)
                yield from deliver_parcels(plan, parcels, HomeKeys(str(home.path))(), clock=lambda: self.now)

    def outcomes(self, name: str, who: str) -> list[str | None]:
        """List why each parcel was refused; ``None`` where it was not."""
        return [outcome.refused for outcome in self.deliver(name, who)]

    def read(self, name: str, who: str) -> list[Row]:
        """List what a client sees: numberplate and location."""
        rows = [
            (row["numberplate"], row["location"])
            for outcome in self.deliver(name, who)
            for delivery in outcome.deliveries
            for row in delivery.batch.to_pylist()
        ]
        return sorted(rows, key=str)


@contextmanager
def joined(root: Path, *, keyed: bool = False) -> Iterator[Network]:
    """Make the network and let the brokers of the CCS and the Met join; it is closed in the end."""
    made = build(root, keyed=keyed)
    for name in ("ccs", "met"):
        made.join(name)
    made.pass_time(10)
    yield made
    made.close()


def build(root: Path, *, keyed: bool = False, whole: bool = True, ago: timedelta = timedelta(hours=2)) -> Network:
    """Make the network: PITO manages, the CCS publishes and reads, the Met reads, Kent connects and relays.

    The CCS has a broker of its own when it is ``whole``; otherwise it names none, and leaves that to its sub-domains.
    Its time begins some while ``ago``.
    """
    now = datetime.now(UTC).replace(microsecond=0) - ago
    people = numberplate_network(now=now)
    kent, relay = KeySigner.generate(), KeySigner.generate()
    event_type = EventType(
        name=TypeName(people.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
        attributes=tuple(attribute(name, uid, KINDS[name]) for name, uid in ATTRIBUTES.items()),
        options=Options(encryption=EncryptionMode.ATTRIBUTE),
    )
    made = Network(root, people, event_type, now, keyed=keyed)
    connect = network_right(people.key("PITO"), NETWORK_NAME, [Action.CONNECT])
    who = people.people
    made.add("ccs", who["CB"], keys={name: who[name] for name in ("CCTV", "BO", "SO")})
    made.add("met", who["MB"], keys={"Smith": who["Smith"]})
    made.add("kent", relay)
    made.grant(
        *([naming(who["CCS"], BROKERS, who["CB"])] if whole else []),
        naming(who["Met"], BROKERS, who["MB"]),
        naming(kent, BROKERS, relay),
        grant(who["PITO"], kent, connect, delegate=True),
        grant(kent, relay, connect),
    )
    if keyed:
        see = type_right(people.key("PITO"), HIDING, actions=[Action.SUBSCRIBE])
        made.grant(*(grant(who["PITO"], who[domain], see, delegate=True) for domain in ("CCS", "Met")))
    return made
