"""Keys follow capabilities, end to end: the real key manager, real homes, real parcels, real delivery."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from key_network import Network, build

from maia.authority import Action, type_right
from maia.domain import OwnKeyManager, SealingKeys, ensure_keys
from maia.domain.memberships import GroupKeys
from maia.encryption import KeyGroupId, Tolerance, rekey_topic
from maia.errors import SealError, UnavailableError, UsageError, VerificationError
from maia.events import EncryptionMode, EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import BROKERS, Sealing, event_base, milliseconds, open_batch, publish_batches, seal_batch
from maia.key_manager import KeyManager
from maia.log import NoticeKind, NoticeLog
from maia.testing import ATTRIBUTES, TYPE_NAME, follow, grant, naming, numberplate_network, publish_plan

NUMBERPLATE, TIMESTAMP, LOCATION = (uid.encode() for uid in ATTRIBUTES.values())


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """PITO manages the keys; the CCS publishes and reads; the Met reads; Kent relays."""
    made = build(tmp_path)
    yield made
    made.close()


def labels(home: Home) -> set[bytes]:
    """List the labels of the keys that a home holds."""
    ring = home.keyring()
    return {g.label for g in ring.groups() if any(ring.key(g, epoch) for epoch in ring.epochs(g))}


def test_brokers_get_the_keys_of_their_rights_and_the_relay_none(network: Network) -> None:
    """MB and CB hold the three attribute keys; Kent, which may connect only, is refused and relays ciphertext."""
    for name in ("ccs", "met"):
        network.join(name)
    with pytest.raises(VerificationError):
        network.join("kent")
    network.pass_time(10)
    assert labels(network.homes["ccs"]) >= {NUMBERPLATE, TIMESTAMP, LOCATION}
    assert labels(network.homes["met"]) >= {NUMBERPLATE, TIMESTAMP, LOCATION}
    assert labels(network.homes["kent"]) == set()
    network.publish("first", ["AE05 XYZ", "BX51 ABC"])
    assert network.read("met", "Smith") == [("AE05 XYZ", "Victoria")]
    assert network.read("ccs", "BO") == [("AE05 XYZ", None), ("BX51 ABC", None)]
    for path in network.log.path.rglob("*"):
        if path.is_file():
            assert b"AE05 XYZ" not in path.read_bytes()


@pytest.mark.threat("T42")
def test_revoked_broker_reads_nothing_that_is_sealed_after(network: Network) -> None:
    """The Met's right is revoked: its keyring learns that it is out, and later parcels are refused there."""
    for name in ("ccs", "met"):
        network.join(name)
    network.pass_time(10)
    network.publish("before", ["AE05 XYZ"])
    network.manager.revoke([network.people.certificates["Cap12"].certificate_id], at=network.now)
    network.pass_time(10)
    network.publish("after", ["AE05 XYZ"])
    assert network.read("ccs", "BO") == [("AE05 XYZ", None)] * 2
    assert network.outcomes("met", "Smith") == [None, "NO_KEY"]
    held = network.homes["met"].keyring()
    for label in (NUMBERPLATE, TIMESTAMP, LOCATION):
        group = KeyGroupId(network.event_type.type_id, label)
        assert held.key(group, held.epochs(group)[-1]) is None


@pytest.mark.fault("F23")
def test_home_that_was_away_over_three_epochs_reads_all_of_them(network: Network) -> None:
    """Keys are refreshed three times while the Met is away; it then reads every parcel."""
    for name in ("ccs", "met"):
        network.join(name)
    network.pass_time(10)
    for number in range(4):
        network.publish(f"part {number}", ["AE05 XYZ"], follow=("ccs",))
        network.refresh_all()
        network.pass_time(10, follow=("ccs",))
    assert network.read("met", "Smith") == [("AE05 XYZ", "Victoria")] * 4
    epochs = {parcel.header.epoch for parcel in network.parcels()}
    assert len(epochs) == 4


@pytest.mark.threat("T69")
def test_broker_that_may_only_read_cannot_write(network: Network) -> None:
    """MB holds every key and forges: signed by itself, under CB's evidence, in CB's name. Nobody takes it."""
    for name in ("ccs", "met"):
        network.join(name)
    network.pass_time(10)
    network.publish("true", ["AE05 XYZ"])
    met, ccs = network.homes["met"], network.homes["ccs"]
    (true,) = network.parcels()
    own = network.log.put_evidence(tuple(c.raw for c in network.people.some("Cap12", "Cap13")))
    me, other = met.broker.public_key.key_id, ccs.broker.public_key.key_id
    forgeries = {
        "its own evidence": (own, me),
        "another's evidence": (true.header.evidence, me),
        "another's name": (true.header.evidence, other),
    }
    rows = network.transit(["FORGED"])
    for number, (evidence, claimed) in enumerate(forgeries.values()):
        sealing = Sealing(
            type_id=network.event_type.type_id, mode=network.event_type.options.encryption, evidence=evidence
        )
        parcel = seal_batch(
            rows, sealing, met.broker, met.keyring(), stamp=network.stamp(), parcel_id=secrets.token_bytes(16),
            event_base=event_base(met.broker, f"forged for {claimed.hex()}", 0, number),
        )  # fmt: skip
        if claimed == me:
            # The base mode of the thesis: whoever has the key is believed, and the forgery opens.
            opened = open_batch(
                parcel.to_bytes(), network.kinds, ccs.keyring(), arrives=milliseconds(network.now),
                tolerance=Tolerance(), check_origin=lambda _: None,
            )  # fmt: skip
            assert opened.batch.column("3265").to_pylist() == ["FORGED"]
        forged = replace(parcel, header=replace(parcel.header, origin=claimed))
        network.commit(f"forged {number}", [forged], origin=claimed, evidence=evidence)
    for home, who in (("ccs", "BO"), ("met", "Smith")):
        assert network.outcomes(home, who) == [None, "ORIGIN_NOT_PROVEN", "ORIGIN_NOT_PROVEN", "WRONG_SIGNER"]
    assert network.read("ccs", "BO") == [("AE05 XYZ", None)]


def test_group_traffic_travels_in_the_log_of_the_events(network: Network) -> None:
    """Rekey messages are notices of the very log that carries the parcels, and can be counted there."""
    network.join("ccs")
    network.refresh_all()
    notices = NoticeLog(network.log.path)
    manager = network.manager.public_key.key_id
    lanes = [
        notices.reader(NoticeKind.REKEY, manager, rekey_topic(status.group)) for status in network.manager.status()
    ]
    assert len(lanes) == 4
    assert min(len(lane.since().records) for lane in lanes) == 2


def test_restart_keeps_stamps_and_epochs_increasing(network: Network) -> None:
    """The home and the manager are opened anew between parcels: stamps increase, and no epoch comes twice."""
    network.join("ccs")
    network.pass_time(10)
    for number in range(5):
        network.reopen()
        network.publish(f"part {number}", ["AE05 XYZ"], next_stamp=network.homes["ccs"].next_stamp)
        network.refresh_all()
        network.pass_time(10)
    stamps = [parcel.header.stamp for parcel in network.parcels()]
    assert stamps == sorted(set(stamps))
    for group in (status.group for status in network.manager.status()):
        numbers = [epoch.number for epoch in network.manager.history(group)]
        assert numbers == sorted(set(numbers))


@pytest.mark.fault("F13")
def test_home_that_owns_its_types_manages_their_keys_in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The embedded default: publishing opens the groups, the broker joins, and no key is made outside of them.

    While the manager's database is away, events go on with the keys there are, and the program's log says why.
    """
    home = Home.create(tmp_path / "clinic", HomeConfig(name="clinic"))
    domain = home.new_key("domain")
    name = TypeName(domain.public_key, "Report", parse_version("1"))
    event_type = EventType(
        name=name, attributes=(attribute("text", "1", "string"),), options=Options(encryption=EncryptionMode.ATTRIBUTE)
    )
    now = datetime.now(UTC)
    home.types.put(sign_event_type(event_type, domain).raw, at=now)
    publish = type_right(domain.public_key, "Report", actions=[Action.PUBLISH, Action.SUBSCRIBE])
    home.certificates.add(grant(domain, home.broker, publish))
    groups = (KeyGroupId(event_type.type_id, b"1"), KeyGroupId(event_type.type_id, b"*"))
    named = naming(domain, BROKERS, home.broker)
    assert not OwnKeyManager(home).manages(event_type, at=now)
    home.certificates.add(named)
    home.certificates.add(grant(domain, home.new_key("lab"), publish))
    plan = publish_plan(home, "Report", as_="lab", version=None, publication="one", at=now)
    assert GroupKeys(home).groups() == tuple(sorted(groups))
    ring = home.keyring()
    assert len(ring.epochs(groups[0])) == 1
    assert ring.epochs(groups[0])[0] <= milliseconds(now)
    assert ensure_keys(home, OwnKeyManager(home), event_type, at=now) == 0
    rows = pa.RecordBatch.from_pydict({"text": ["fine"]}, schema=pa.schema([("text", pa.string())]))
    (sealed,) = publish_batches(plan, 0, iter([rows]), home.broker, SealingKeys(home), home.next_stamp)
    assert sealed.parcel is not None
    later = now + timedelta(days=2)
    follow(home, at=later)
    follow(home, at=later + timedelta(seconds=10))
    assert len(home.keyring().epochs(groups[0])) == 2, "the period is over, so the key was refreshed"

    def unreachable(*_: object, **__: object) -> None:
        raise UnavailableError("no database", code="DATABASE_UNAVAILABLE")

    monkeypatch.setattr(KeyManager, "tick", unreachable)
    assert follow(home, at=later + timedelta(days=3)) == later + timedelta(days=3)
    assert "DATABASE_UNAVAILABLE" in caplog.text


def test_home_without_a_manager_keeps_its_own_keys(tmp_path: Path) -> None:
    """A local keyring works as it always did, and a home whose manager is elsewhere makes no key itself."""
    people = numberplate_network()
    event_type = EventType(
        name=TypeName(people.key("PITO"), "Report", parse_version("1")),
        attributes=(attribute("text", "1", "string"),),
        options=Options(encryption=EncryptionMode.ATTRIBUTE),
    )
    now = datetime.now(UTC)
    alone = Home.create(tmp_path / "alone", HomeConfig(name="alone"))
    own = OwnKeyManager(alone)
    assert (ensure_keys(alone, own, event_type, at=now), ensure_keys(alone, own, event_type, at=now)) == (1, 0)
    assert GroupKeys(alone).groups() == ()
    served = Home.create(tmp_path / "served", HomeConfig(name="served", key_manager="https://keys.example"))
    with pytest.raises(UnavailableError, match="maia keys join Report"):
        ensure_keys(served, OwnKeyManager(served), event_type, at=now)
    assert served.keyring().groups() == ()


@pytest.fixture
def hidden(tmp_path: Path) -> Iterator[Network]:
    """The same network, with keyed type ids."""
    made = build(tmp_path, keyed=True)
    yield made
    made.close()


def test_nothing_is_lost_while_type_ids_change_ten_times(hidden: Network) -> None:
    """100,000 events over ten refreshes of the network's key: each arrives once, under old and new ids alike."""
    for name in ("ccs", "met"):
        hidden.join(name)
    hidden.pass_time(10)
    _, hiding = hidden.types()
    plates = [f"P{number}" for number in range(4_999)]
    type_id = hidden.event_type.type_id
    overlaps = []
    for number in range(10):
        stale = hidden.plan(f"late {number}")
        hidden.publish(f"before {number}", [*plates, "AE05 XYZ"])
        hidden.refresh_all(hiding)
        hidden.pass_time(2)
        # A publisher that planned before the change is still under way; its id is read as well as the new one.
        ids = hidden.homes["met"].type_ids()
        assert ids is not None
        fresh = hidden.plan("fresh").sealing.type_id
        overlaps.append({stale.sealing.type_id, fresh} <= ids.known(type_id) and stale.sealing.type_id != fresh)
        hidden.publish(f"late {number}", [*plates, "AE05 XYZ"], plan=stale)
        hidden.pass_time(60)
    assert overlaps == [True] * 10
    assert len({commit.type_id for commit in hidden.log.commits()}) == 10
    for home, who, expected in (("ccs", "SO", 100_000), ("met", "Smith", 20)):
        outcomes = list(hidden.deliver(home, who))
        assert [outcome.refused for outcome in outcomes] == [None] * 20
        assert sum(outcome.delivered for outcome in outcomes) == expected


def test_outsider_with_a_dictionary_finds_no_type(hidden: Network) -> None:
    """Who reads all parcels, commits and evidence and knows every name finds none; on a plain network it finds one."""
    plain = build(hidden.root / "plain")
    for network in (hidden, plain):
        network.join("ccs")
        network.pass_time(10)
        network.publish("sightings", ["AE05 XYZ"])
    names = [TYPE_NAME, "uk.gov.pito.Network", *(f"uk.gov.pito.Type{number}" for number in range(1000))]
    version = parse_version("1")

    def found(network: Network) -> set[str]:
        owner = network.people.key("PITO")
        folder = network.log.path
        files = [path for path in folder.rglob("*") if path.is_file() and "_lanes" not in path.parts]
        seen = b"".join(str(path.relative_to(folder)).encode() + path.read_bytes() for path in files)
        hits = set()
        for name in names:
            identity = TypeName(owner, name, version).type_id
            if identity in seen or identity.hex().encode() in seen or name.encode() in seen:
                hits.add(name)
        return hits

    assert found(hidden) == set()
    assert found(plain) == {TYPE_NAME}
    plain.close()


def test_broker_outside_the_network_key_publishes_nothing(hidden: Network) -> None:
    """Before it holds the network's key a home does not fall back to the plain id."""
    with pytest.raises(SealError, match="NO_KEY"):
        hidden.publish("too early", ["AE05 XYZ"])
    assert list(hidden.log.commits()) == []


def test_keyed_ids_need_a_network(tmp_path: Path) -> None:
    """A home without a network has no owner whose key could hide anything."""
    home = Home.create(tmp_path / "alone", HomeConfig(name="alone", keyed_types="Network"))
    assert Home.open(home.path).config.keyed_types == "Network"
    with pytest.raises(UsageError, match="KEYED_TYPES"):
        home.type_ids()
