"""What is published is sealed where it enters, whoever stands next; what no key opens, no broker's will opens."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import maia
from maia.encryption import KeyGroupId, Keyring, Parcel, open_parcel, verify_parcel
from maia.errors import MaiaError
from maia.events import EncryptionMode
from maia.testing import (
    ATTRIBUTES,
    TYPE_NAME,
    Command,
    NumberplateHomes,
    numberplate_homes,
    publish_here,
    read_here,
    sealed_here,
)

WHEN = datetime(2026, 6, 1, 9, tzinfo=UTC)
ROW = {"numberplate": "AE05 XYZ", "timestamp": WHEN, "location": "Victoria"}
WORDS = (b"AE05 XYZ", b"Victoria")


class Network:
    """Two homes over one log; both brokers may read everything, and hold every key."""

    def __init__(self, root: Path) -> None:
        """Publish nothing yet."""
        self.homes: NumberplateHomes = numberplate_homes(root)
        self.log, self.at = root / "log", datetime.now(UTC)

    def publish(self, change: Any = None) -> None:
        """Let the camera publish one sighting, by a plan that its broker changed."""
        self.at += timedelta(milliseconds=1)
        home = maia.open(self.homes.ccs).home
        publish_here(home, TYPE_NAME, [ROW], as_="CCTV", at=self.at, honest=change is None, change=change)

    def parcels(self) -> list[Parcel]:
        """Read what lies in the log."""
        return sealed_here(maia.open(self.homes.ccs).home)

    def seen(self) -> dict[str, list[tuple[Any, Any]]]:
        """Read in both homes."""
        readers = {"BO": self.homes.ccs, "SO": self.homes.ccs, "Smith": self.homes.met}
        found = {who: read_here(maia.open(home).home, TYPE_NAME, as_=who) for who, home in readers.items()}
        return {who: [(row["numberplate"], row["location"]) for row in rows] for who, rows in found.items()}

    def keys(self, *labels: bytes) -> Keyring:
        """Take some keys from the ring of the police's broker."""
        ring, out = maia.open(self.homes.met).home.keyring(), Keyring()
        for group in (KeyGroupId(self.homes.event_type.type_id, label) for label in labels):
            for epoch in ring.epochs(group):
                out.add(group, epoch, ring.key(group, epoch) or b"")
        return out


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Give the network."""
    return Network(tmp_path)


VIEWS = {"BO": [("AE05 XYZ", None)], "SO": [(None, "Victoria")], "Smith": [("AE05 XYZ", "Victoria")]}


@pytest.mark.requirement("15.15")
def test_what_goes_to_brokers_with_every_right_is_sealed_all_the_same(network: Network) -> None:
    """All brokers on the path may read: it is sealed once, where it enters; the log holds it so, and all read it."""
    network.publish()
    [parcel] = network.parcels()
    assert parcel.header.mode is EncryptionMode.ATTRIBUTE
    assert parcel.header.origin == network.homes.network.key("CB").key_id
    assert len(parcel.blocks) == len(ATTRIBUTES), "one encryption an attribute, whoever will read"
    files = [path.read_bytes() for path in network.log.rglob("*") if path.is_file()]
    assert not [word for word in WORDS if any(word in data for data in files)]
    assert network.seen() == VIEWS
    assert network.parcels() == [parcel], "what was read by everybody lies there as it was sealed"


@pytest.mark.requirement("15.15")
@pytest.mark.parametrize("mode", [EncryptionMode.PLAIN, EncryptionMode.EVENT], ids=lambda mode: mode.value)
def test_a_broker_that_does_not_seal_for_its_friends_is_refused_by_them(network: Network, mode: EncryptionMode) -> None:
    """CB leaves its parcel open, or seals it whole, since all its neighbours may read: no neighbour takes it."""
    network.publish()

    def spared(plan: Any) -> Any:
        return replace(plan, sealing=replace(plan.sealing, mode=mode))

    if mode is EncryptionMode.EVENT:
        with pytest.raises(MaiaError) as caught:
            network.publish(spared)
        assert caught.value.code == "NO_KEY", "there is no key of whole events of a type that is sealed by attribute"
    else:
        network.publish(spared)
        assert network.parcels()[-1].header.mode is EncryptionMode.PLAIN
    assert network.seen() == VIEWS
    refused = {row["reason"] for row in Command(network.homes.ccs).do("audit", "--kind", "refuse")["rows"]}
    assert refused == ({"MODE_REFUSED"} if mode is EncryptionMode.PLAIN else set())


@pytest.mark.requirement("23.15")
def test_a_broker_that_enforces_nothing_opens_what_it_has_keys_for(network: Network) -> None:
    """It takes the octets from the log and asks nobody: with no key nothing opens, with one, one attribute."""
    network.publish()
    [parcel] = network.parcels()
    plate, _, place = (uid.encode() for uid in ATTRIBUTES.values())

    def opened(*labels: bytes) -> dict[bytes, Any]:
        ring = network.keys(*labels)

        def key_of(label: bytes) -> bytes | None:
            group = KeyGroupId(parcel.header.type_id, label)
            epochs = ring.epochs(group)
            return ring.key(group, epochs[-1]) if epochs else None

        found = open_parcel(verify_parcel(parcel), key_of)
        return {uid: column.to_pylist()[0] for uid, column in found.items()}

    assert opened() == {}
    assert opened(place) == {place: "Victoria"}
    assert set(opened(plate, place)) == {plate, place}


@pytest.mark.requirement("23.15")
def test_a_home_without_keys_shows_its_own_client_nothing(network: Network) -> None:
    """Whatever its certificates say: a client of a home that was given no keys sees no row, and with them it reads."""
    network.publish()
    home = maia.open(network.homes.met).home
    ring = home.keyring()
    home.save_keyring(Keyring())
    assert read_here(maia.open(network.homes.met).home, TYPE_NAME, as_="Smith") == []
    home.save_keyring(ring)
    assert network.seen()["Smith"] == VIEWS["Smith"]


VERSION = {
    "owner": "pito", "signer": "pito", "name": "Sighting", "version": 1,
    "attributes": [{"name": "plate", "uid": 1, "type": "string"}, {"name": "place", "uid": 2, "type": "string"}],
}  # fmt: skip


@pytest.mark.requirement("23.15")
@pytest.mark.parametrize(
    ("holds", "seen"),
    [
        pytest.param({"1": [0], "2": [0]}, {"result": [{"plate": "AE05 XYZ", "place": "Victoria"}]}, id="both keys"),
        pytest.param({"2": [0]}, {"result": [{"plate": None, "place": "Victoria"}]}, id="one key"),
        pytest.param({}, {"result": "refused", "reason": "NO_KEY"}, id="no key"),
    ],
)
def test_keys_alone_say_what_opens(maia_command: Command, holds: dict[str, list[int]], seen: dict[str, Any]) -> None:
    """The same asked of `maia conformance`, where nothing but keys decides."""
    parcel = {"by": "cb", "at": 150, "events": [{"plate": "AE05 XYZ", "place": "Victoria"}]}
    asked = {
        "id": 1, "verb": "parcel.open", "type": VERSION, "epochs": [100], "parcels": [parcel], "open": 0,
        "arrives": 151, "grace": 30, "skew": 5, "holds": holds,
    }  # fmt: skip
    ran = maia_command("conformance", stdin=json.dumps(asked) + "\n")
    assert json.loads(ran.out) == {"id": 1, **seen}
