"""The same world with everything real: homes in folders, domains that open them, a key manager, key groups and rekeys.

A sequence here is about keys: who gets them, who keeps them, and what is sealed under which. It costs some ten times as
much as one on `stage`, so few sequences are played here. The world is built once a process and copied for each.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from moves import UIDS, Link, Naming, Row
from oracle import BASE
from stage import (
    BASE_NAMES,
    PEOPLE,
    RHYTHM,
    TYPE,
    Fixed,
    Sealed,
    Shown,
    at,
    certificate,
    name_certificate,
    table,
)

from maia.domain import (
    Domain,
    SealingKeys,
    begin_read,
    commit_publication,
    home_notices,
    join_key_groups,
    open_home_groups,
    open_key_manager,
    parts_of,
    publication_operation,
    scan,
    type_stretch,
)
from maia.domain.publication import Written
from maia.encryption import KeyGroupId, Parcel, open_parcel, verify_parcel
from maia.errors import MaiaError
from maia.home import Home, HomeConfig
from maia.kernel import event_ids, event_name, milliseconds, publish_batches
from maia.key_manager import KeyManager, KeySettings
from maia.log import LogDirectory, Places
from maia.principals import CertificateId, parse_certificate, verify_certificate
from maia.testing import StatementPublisher

SILENCE, HEARD = 10, 30
"""How long a manager may be silent beyond its promise, and what it promises, in seconds."""
SETTINGS = KeySettings(lead=timedelta(seconds=1), period=None, rhythm=timedelta(seconds=HEARD))
BROKERS = {"o": "o-broker", "s": "sb", "m": "mb", "x": "xb"}
CLIENTS = {"o": (), "s": ("camera",), "m": ("reader",), "x": ()}


def build(fixed: Fixed, root: Path) -> None:
    """Make the homes over one log, and let the honest ones join the key groups."""
    signed = fixed.definition.raw
    for name, broker in BROKERS.items():
        config = HomeConfig(name=name, domain=name, broker=broker, log="../log", silence=SILENCE)
        home = Home.create(root / name, config, broker=PEOPLE[broker] if name != "o" else None)
        for who in (name, *CLIENTS[name]):
            home.add_key(who, PEOPLE[who])
        home.add_public_key("owner", PEOPLE["o"].public_key)
        for raw in (*map(certificate, BASE), *map(name_certificate, BASE_NAMES)):
            home.certificates.add(verify_certificate(parse_certificate(raw)))
        home.types.put(signed, at=at(0))
    world = Homes(fixed, root)
    world.manager.start(at=at(0))
    open_home_groups(world.homes["o"], world.manager, fixed.event_type.name, at=at(0))
    for name in ("s", "m"):
        world.join(name)
    world.now = 2
    world.tick()
    world.close()


@dataclass
class Homes:
    """The world of one sequence about keys.

    Attributes:
        withhold: What somebody does to the log whenever the key manager has said something.
    """

    fixed: Fixed
    root: Path
    now: int = 0
    withdrawn: dict[CertificateId, datetime | None] = field(default_factory=dict)
    after: Places = field(default_factory=dict)
    keys: dict[KeyGroupId, dict[int, bytes]] = field(default_factory=dict)
    withhold: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        """Open the homes."""
        self.homes = {name: Home.open(self.root / name) for name in BROKERS}
        self.domains = {name: Domain(home, clock=lambda: at(self.now)) for name, home in self.homes.items()}
        self.log = self.root / "log"
        self.lists = StatementPublisher(notices=home_notices(self.homes["o"]), signer=PEOPLE["o"], rhythm=RHYTHM)
        self.manager: KeyManager = open_key_manager(self.homes["o"], settings=SETTINGS)[0]

    def close(self) -> None:
        """Let go of what was opened."""
        self.manager.close()
        for domain in self.domains.values():
            domain.close()

    def give(self, link: Link) -> CertificateId:
        """Put a certificate into every home."""
        return self._add(certificate(link))

    def name(self, naming: Naming) -> None:
        """Put a name into every home."""
        self._add(name_certificate(naming))

    def _add(self, raw: bytes) -> CertificateId:
        made = verify_certificate(parse_certificate(raw))
        for home in self.homes.values():
            home.certificates.add(made)
        return made.certificate_id

    # -- the owner

    def tick(self) -> None:
        """Let the owner say its lists, the manager do what time asks for, and the honest homes look."""
        self.lists.publish(self.withdrawn, at=at(self.now))
        with suppress(MaiaError):
            self.manager.tick(at=at(self.now))
        self.withhold()
        for name in ("s", "m"):
            self.domains[name].follow()

    def revoke(self, identity: CertificateId) -> None:
        """Withdraw a certificate at once."""
        self.withdrawn[identity] = None
        self.lists.withdraw(self.withdrawn, at=at(self.now))
        self.manager.revoke([identity], at=at(self.now))
        self.withhold()

    # -- the coalition

    def join(self, name: str) -> set[str]:
        """Ask the manager for keys; tell of which attributes they came."""
        manager, moment = self.manager, at(self.now)
        try:
            groups = join_key_groups(
                self.homes[name], self.fixed.event_type, lambda sent, shown: manager.join(sent, shown, at=moment),
                manager=manager.public_key, at=moment,
            )  # fmt: skip
        except MaiaError:
            return set()
        finally:
            self.withhold()
        return {group.label.decode() for group in groups} & set(UIDS)

    def collect(self) -> None:
        """Let the coalition's broker follow its groups, and keep every key that it ever had."""
        with suppress(MaiaError):
            self.domains["x"].follow()
        ring = self.homes["x"].keyring()
        for group in ring.groups():
            for epoch in ring.epochs(group):
                key = ring.key(group, epoch)
                if key is not None:
                    self.keys.setdefault(group, {})[epoch] = key

    def opened(self) -> set[tuple[str, str]]:
        """Open what can be opened of the honest lane with all those keys: events and attributes."""
        found: set[tuple[str, str]] = set()
        lane = LogDirectory(self.log).lane(
            f"{self.fixed.event_type.type_id.hex()}/{PEOPLE['sb'].public_key.key_id.hex()}"
        )
        lane.refresh()
        for commit in lane.commits():
            for file in commit.files:
                for logged in lane.parcels(file):
                    found |= set(self._tried(logged.parse()))
        return found

    def _tried(self, parcel: Parcel) -> Iterator[tuple[str, str]]:
        verified = verify_parcel(parcel)
        header = verified.header
        names = event_ids(event_name(header.origin, header.event_base), range(header.count))
        for group, keys in self.keys.items():
            for key in keys.values():
                with suppress(MaiaError):
                    columns = open_parcel(verified, {group.label: key}.get)
                    yield from ((name, uid.decode()) for uid in columns for name in names)

    # -- events

    def publish(self, rows: tuple[Row, ...], *, name: str) -> Sealed:
        """Publish as the camera.

        Raises:
            MaiaError: Nothing may be sealed now, or the log refuses.
        """
        domain, home, moment = self.domains["s"], self.homes["s"], at(self.now)
        plan = domain.publish_plan(TYPE, client=domain.prove("camera"), publication=name, at=moment)
        writer = domain.log.writer(name, plan.sealing.type_id, 0, home.broker.public_key.key_id, at=moment)
        keys = SealingKeys(home, clock=lambda: moment)
        events: list[tuple[str, Row]] = []
        batch = table(self.fixed.event_type, rows)
        for sealed in publish_batches(plan, 0, iter((batch,)), home.broker, keys, lambda: milliseconds(moment)):
            if sealed.parcel is not None:
                writer.add(sealed.parcel)
                header = sealed.parcel.header
                names = event_ids(event_name(header.origin, header.event_base), range(len(rows)))
                events += zip(names, rows, strict=True)
        written = Written(writer.close(), sealed_as=(plan.sealing.type_id.hex(), plan.sealing.evidence.hex()))
        told = publication_operation(home, plan, client="camera", at=moment).number
        commit_publication(home, domain.lanes, plan, [written], client="camera", operation=told, at=moment)
        return Sealed(tuple(events), tuple(range(len(rows))))

    def step(self) -> list[Shown]:
        """Take the next stretch of the honest reader's stream."""
        domain, home, moment = self.domains["m"], self.homes["m"], self.domains["m"].follow()
        found = type_stretch(domain, self.fixed.event_type.name, after=self.after, at=moment)
        plan = domain.deliver_plan(TYPE, client=domain.prove("reader"), commits=found.commits, at=moment)
        parts = parts_of(found.commits, plan)
        number = begin_read(
            home, plan, found.commits, domain.prove("reader"), attributes=None, parts=1, at=moment
        )  # fmt: skip
        batches = scan(
            home, plan, parts, client="reader", columns=None, with_event_id=True, clock=domain.clock, operation=number
        )  # fmt: skip
        rows = [
            ("", row["_event"], tuple(row[f"x{uid}"] for uid in UIDS)) for batch in batches for row in batch.to_pylist()
        ]
        self.after = dict(found.upto)
        return rows


def copy(template: Path, root: Path) -> None:
    """Give a sequence a world of its own."""
    shutil.copytree(template, root)
