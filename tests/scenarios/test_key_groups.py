"""The owner's key manager and the brokers of four domains: homes, a shared log, and keys that follow capabilities."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.authority import Action, type_right
from maia.domain import join_key_groups, open_home_groups, open_key_manager
from maia.encryption import KeyGroupId
from maia.errors import VerificationError
from maia.events import EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import BROKERS, DOMAINS, key_groups_needed
from maia.key_manager import KeyManager, KeySettings
from maia.principals import KeySigner
from maia.testing import ATTRIBUTES, TYPE_NAME, TYPE_VERSION, follow, grant, naming, numberplate_network

NOW = datetime.now(UTC).replace(microsecond=0)
NET = numberplate_network(now=NOW - timedelta(hours=1))
PITO, MET, CCS = (NET.people[name] for name in ("PITO", "Met", "CCS"))
KENT, KENT_BROKER = KeySigner(b"k" * 32), KeySigner(b"K" * 32)
TYPE = EventType(
    name=TypeName(NET.key("PITO"), TYPE_NAME, parse_version(TYPE_VERSION)),
    attributes=tuple(
        attribute(name, uid, "timestamp" if name == "timestamp" else "string") for name, uid in ATTRIBUTES.items()
    ),
    options=Options(),
)
PLATE, TIME, PLACE = (ATTRIBUTES[name].encode() for name in ("numberplate", "timestamp", "location"))
CERTIFICATES = {
    "ccs": [*NET.some("Cap6", "Cap13b"), naming(CCS, BROKERS, NET.people["CB"]), naming(PITO, DOMAINS, CCS)],
    "met": [
        *NET.some("Cap12", "Cap13", "Cap10"),
        naming(MET, BROKERS, NET.people["MB"]),
        naming(PITO, DOMAINS, MET),
    ],
    "kent": [
        grant(
            PITO,
            KENT,
            type_right(NET.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE], attributes=[ATTRIBUTES["timestamp"]]),
            delegate=True,
        ),
        grant(KENT, KENT_BROKER, type_right(None)),
        naming(KENT, BROKERS, KENT_BROKER),
        naming(PITO, DOMAINS, KENT),
    ],
    "relay": [],
}
BROKER_KEYS = {"ccs": NET.people["CB"], "met": NET.people["MB"], "kent": KENT_BROKER, "relay": KeySigner(b"r" * 32)}


class World:
    """PITO's home with its key manager, and the homes of four domains over one log."""

    def __init__(self, root: Path) -> None:
        signed = sign_event_type(TYPE, PITO)
        self.owner = Home.create(root / "pito", HomeConfig(name="pito", log="../log"))
        self.owner.add_key("domain", PITO)
        self.homes = {name: self._home(root, name) for name in CERTIFICATES}
        for home in (self.owner, *self.homes.values()):
            home.types.put(signed.raw, at=NOW)
        self.manager: KeyManager = open_key_manager(self.owner, settings=KeySettings(lead=timedelta(0)))[0]
        self.groups = open_home_groups(self.owner, self.manager, TYPE.name, at=NOW)

    def _home(self, root: Path, name: str) -> Home:
        home = Home.create(root / name, HomeConfig(name=name, log="../log"), broker=BROKER_KEYS[name])
        for certificate in CERTIFICATES[name]:
            home.certificates.add(certificate)
        return home

    def join(self, name: str, seconds: float) -> set[bytes]:
        """Let a home's broker join, and read the log."""
        at = NOW + timedelta(seconds=seconds)
        joined = join_key_groups(
            self.homes[name], TYPE, lambda request, evidence: self.manager.join(request, evidence, at=at),
            manager=self.manager.public_key, at=at,
        )  # fmt: skip
        follow(self.homes[name], at=at)
        return {group.label for group in joined}

    def held(self, name: str, label: bytes) -> dict[int, bytes | None]:
        """Return the keys of a group that a home holds, by the start of their epoch."""
        ring, group = self.homes[name].keyring(), KeyGroupId(TYPE.type_id, label)
        return {epoch: ring.key(group, epoch) for epoch in ring.epochs(group)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Give the homes and the manager."""
    return World(tmp_path)


def test_homes_join_the_groups_of_their_rights_and_hold_those_keys_alone(world: World) -> None:
    """CCTV's broker joins NP and its 3 attribute groups; only timestamp joins 1; no chain, and a client, none."""
    assert {group.label for group in world.groups} == {b"*", PLATE, TIME, PLACE}
    assert world.join("ccs", 1) == {b"*", PLATE, TIME, PLACE}
    assert world.join("met", 2) == {b"*", PLATE, TIME, PLACE}
    assert world.join("kent", 3) == {TIME}
    with pytest.raises(VerificationError):
        world.join("relay", 4)
    client = Home.create(world.owner.path.parent / "smith", HomeConfig(name="smith"), broker=NET.people["Smith"])
    client.types.put(sign_event_type(TYPE, PITO).raw, at=NOW)
    for certificate in CERTIFICATES["met"]:
        client.certificates.add(certificate)
    world.homes["smith"] = client
    with pytest.raises(VerificationError) as refused:
        world.join("smith", 5)
    assert refused.value.code == "NOT_A_BROKER"
    for label in (PLATE, TIME, PLACE):
        assert world.held("ccs", label) == world.held("met", label) != {}
    assert world.held("kent", TIME) == world.held("ccs", TIME)
    assert world.held("kent", PLATE) == world.held("relay", TIME) == {}


def test_a_revoked_domain_keeps_what_it_had_and_gets_nothing_new(world: World) -> None:
    """PITO revokes the grant to the Met: its broker is put out at once, everybody else goes on."""
    world.join("ccs", 1)
    world.join("met", 2)
    changed = world.manager.revoke([NET.certificates["Cap12"].certificate_id], at=NOW + timedelta(seconds=10))
    assert set(changed) == set(world.groups)
    for name in ("ccs", "met"):
        follow(world.homes[name], at=NOW + timedelta(seconds=11))
    ccs, met = world.held("ccs", PLATE), world.held("met", PLATE)
    first, second = sorted(ccs)
    assert met[first] == ccs[first] is not None
    assert ccs[second] is not None
    assert met.get(second) is None
    with pytest.raises(VerificationError):
        world.join("met", 12)


def test_attribute_keys_need_as_many_groups_as_attributes() -> None:
    """5 attributes: 32 groups when each set of readers has a type of its own, 5 with attribute keys."""
    assert (key_groups_needed(5, emulated=True), key_groups_needed(5, emulated=False)) == (32, 5)
