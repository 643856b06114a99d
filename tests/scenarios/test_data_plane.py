"""The data plane of the numberplate network, row by row: relays, many to many, absence, one decryption for all."""

from __future__ import annotations

import secrets
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

sys.path.insert(0, str(Path(__file__).parent.parent / "faults"))

import hunting
from network import CCS_SUBSCRIPTIONS, MET_SUBSCRIPTIONS, Network, ahead, build, delivered, publish_here, sightings

import maia.encryption.parcel as parcel_module
from maia.authority import Action, type_right
from maia.domain import DeliveryJob, Domain, Wanted, delivery_job, find_type
from maia.domain.delivery_work import Group, Report, Work, run_groups
from maia.encryption import EpochId, Keyring, encode_column, verify_parcel
from maia.errors import MaiaError
from maia.events import AttributeType, EventType, Options, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.log import Commit, LogDirectory
from maia.testing import ATTRIBUTES, TYPE_NAME, grant


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Give two homes over one empty log."""
    return build(tmp_path / "net")


def plates(job: DeliveryJob, name: str = "billing") -> list[object]:
    """Give the plates that a subscription got, in order."""
    return [row["numberplate"] for row in delivered(job, name)]


class Relay:
    """A broker of a fourth domain that may connect and has no right to the type: it verifies, and carries on."""

    def __init__(self, network: Network, name: str) -> None:
        self.home = Home.create(network.root / name, HomeConfig(name=name, broker="B"))
        self.log = LogDirectory(self.home.log_path)

    def carry(self, source: LogDirectory) -> None:
        """Carry lanes into this broker's log as they are; what no origin signed goes no further."""
        for lane in source.lanes():
            for commit in lane.commits():
                self.log.put_evidence(source.evidence(bytes.fromhex(commit.evidence)))
                for file in commit.files:
                    for logged in source.parcels(commit.lane, file):
                        verify_parcel(logged.parse())
                    self.log.store.put_new(file.path, source.store.get(file.path, limit=file.size))
                name = lane.lane.record_name(commit.sequence)
                self.log.store.put_new(name, source.store.get(name, limit=1 << 20))


def test_kent_relays_ciphertext_and_knows_neither_type_nor_key(network: Network) -> None:
    """Everything goes through Kent. It has no definition, no key and no value; Met, behind it, gets its view."""
    word = f"canary{secrets.token_hex(6)}"
    publish_here(network, "a", [sightings([f"{word} 1", "AE05 XYZ", f"{word} 2"])])
    kent = Relay(network, "kent")
    kent.carry(network.log)
    # What Kent has: no type, no key of an attribute, and in nothing that it holds is there a value.
    assert list(kent.home.types.names()) == []
    assert kent.home.keyring().groups() == ()
    needles = [*hunting.forms(word), *hunting.forms("AE05 XYZ"), *hunting.forms("Victoria")]
    assert hunting.hunt(kent.home.path, needles) == []
    with pytest.raises(MaiaError, match="TYPE_NOT_FOUND"):
        find_type(kent.home, TYPE_NAME)
    # Behind Kent the Metropolitan's broker, which holds the keys of all three attributes, delivers.
    met = Home.open(network.met)
    assert len({group.label for group in met.keyring().groups()} & {uid.encode() for uid in ATTRIBUTES.values()}) == 3
    config = replace(met.config, log="../kent/log")
    (met.path / "maia.toml").write_text(config.to_toml(), "utf-8")
    job = delivery_job(Domain.open(network.met), MET_SUBSCRIPTIONS)
    job.run_here()
    assert [(row["numberplate"], row["location"]) for row in delivered(job, "detective")] == [("AE05 XYZ", "Victoria")]
    # The offices at the congestion charge are kept apart by their broker, which holds all keys.
    edge = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    edge.run_here()
    assert {row["location"] for row in delivered(edge, "billing")} == {None}
    assert {row["numberplate"] for row in delivered(edge, "statistics")} == {None}


def test_split_domains_are_kept_apart_by_keys_and_not_by_a_broker(network: Network) -> None:
    """Billing and Statistics with brokers of their own: whoever rules the billing broker has no location to show."""
    publish_here(network, "a", [sightings(["AE05 XYZ", "BX51 ABC"])])
    whole = Home.open(network.ccs).keyring()
    lacking = {"billing": "location", "statistics": "numberplate"}
    views = {}
    for name, missing in lacking.items():
        home = Home(network.root / name, HomeConfig(name=name, broker="B", log="../log"))
        home.new_key("B")
        for who in ("PITO", "SO", "BO"):
            home.add_public_key(who, network.people.key(who))
        (home.path / "maia.toml").write_text(home.config.to_toml(), "utf-8")
        for certificate in network.people.certificates.values():
            home.certificates.add(certificate)
        home.types.put(Home.open(network.ccs).types.find(home_type(network))[0].raw, at=datetime.now(UTC))
        part = Keyring()
        for group in whole.groups():
            if group.label not in {ATTRIBUTES[missing].encode(), b"*"}:
                for epoch in whole.epochs(group):
                    part.add(group, EpochId(epoch), whole.key(group, epoch) or b"")
        home.save_keyring(part)
        # Broker and client of the sub-domain have every right there is: what they lack is the key.
        right = type_right(network.people.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE])
        home.certificates.add(grant(network.people.people["PITO"], network.people.people["BO"], right))
        home.certificates.add(grant(network.people.people["PITO"], home.broker, right))
        job = delivery_job(Domain.open(home.path), (Wanted(name="all", as_="BO", type=TYPE_NAME),))
        job.run_here()
        views[name] = [(row["numberplate"], row["location"]) for row in delivered(job, "all")]
    assert views == {
        "billing": [("AE05 XYZ", None), ("BX51 ABC", None)],
        "statistics": [(None, "Victoria"), (None, "Victoria")],
    }


def home_type(network: Network) -> TypeName:
    """Name the type."""
    return find_type(Home.open(network.ccs), TYPE_NAME)


def test_two_publishers_and_three_subscribers_make_six_deliveries(network: Network) -> None:
    """Two cameras, three subscriptions: six deliveries; with none, publishing is fine and nothing is delivered."""
    home = Home.open(network.ccs)
    right = type_right(
        network.people.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH], attributes=list(ATTRIBUTES.values())
    )
    home.certificates.add(grant(network.people.people["CCS"], home.new_key("CAM2"), right))
    publish_here(network, "first", [sightings(["P1"])])  # nobody subscribes: it returns all the same
    nobody = delivery_job(Domain.open(network.ccs), (), outbox=network.root / "nobody")
    nobody.run_here()
    assert sum(commit.events for commit in nobody.outbox.commits()) == 0
    publish_here(network, "second", [sightings(["P2"])], as_="CAM2")
    three = tuple(Wanted(name=f"s{number}", as_="BO", type=TYPE_NAME) for number in range(3))
    unmatched = Wanted(name="other", as_="BO", type=TYPE_NAME, where="numberplate = 'P3'")
    job = delivery_job(Domain.open(network.ccs), (*three, unmatched))
    job.run_here()
    assert sum(commit.events for commit in job.outbox.commits()) == 6
    assert [plates(job, item.name) for item in (*three, unmatched)] == [["P1", "P2"]] * 3 + [[]]


def test_slow_subscriber_delays_no_publication(network: Network) -> None:
    """A delivery that hangs: publications return meanwhile, and reach the subscriber when it goes on."""
    publish_here(network, "before", [sightings(["P1"])])
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    hanging, go_on = threading.Event(), threading.Event()

    def slow(work: Work, groups: Sequence[Group]) -> list[Report]:
        hanging.set()
        assert go_on.wait(60)
        return list(run_groups(work, groups))

    subscriber = threading.Thread(target=lambda: job.step(0, ahead(job), slow))
    subscriber.start()
    assert hanging.wait(60)
    for number in range(3):
        publish_here(network, f"meanwhile {number}", [sightings([f"P{number + 2}"])])
    assert (len(list(network.log.commits())) - 1, subscriber.is_alive(), plates(job)) == (3, True, [])
    go_on.set()
    subscriber.join()
    job.run_here()
    assert plates(job) == ["P1", "P2", "P3", "P4"]


def test_ten_local_subscribers_and_three_attributes_need_three_decryptions(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker decrypts once for all its subscribers, block by block; what clients get is plain values."""
    publish_here(network, "a", [sightings(["AE05 XYZ"])])
    opened: list[int] = []

    class Counting:
        def __init__(self, key: bytes) -> None:
            self._cipher = AESGCM(key)

        def decrypt_into(self, nonce: Any, data: Any, associated: Any, plain: Any) -> Any:
            opened.append(len(data))
            return self._cipher.decrypt_into(nonce, data, associated, plain)

    monkeypatch.setattr(parcel_module, "AESGCM", Counting)
    ten = tuple(Wanted(name=f"s{number}", as_=("BO", "SO")[number % 2], type=TYPE_NAME) for number in range(10))
    job = delivery_job(Domain.open(network.ccs), ten)
    job.run_here()
    monkeypatch.undo()
    assert len(opened) == 3
    assert sum(len(list(delivered(job, item.name))) for item in ten) == 10


def test_values_that_a_client_encrypted_itself_travel_as_they_are(network: Network) -> None:
    """A client may seal a value end to end: brokers carry the octets and know nothing of their key."""
    people, owner = network.people, network.people.key("PITO")
    secret = EventType(
        name=TypeName(owner, "uk.gov.pito.Tip", parse_version("1")),
        attributes=(attribute("force", 1, "string"), attribute("note", 2, "binary")),
        options=Options(),
    )
    home = Home.open(network.ccs)
    home.types.put(sign_event_type(secret, people.people["PITO"]).raw, at=datetime.now(UTC))
    for who, action in (("CCTV", Action.PUBLISH), ("BO", Action.SUBSCRIBE), ("CB", Action.PUBLISH)):
        right = type_right(owner, secret.name.name, actions=[action])
        home.certificates.add(grant(people.people["PITO"], people.people[who], right))
    key, nonce = secrets.token_bytes(32), secrets.token_bytes(12)
    sealed = nonce + AESGCM(key).encrypt(nonce, b"the car is in the canal", None)
    schema = pa.schema([("force", pa.string()), ("note", pa.binary())])
    batch = pa.RecordBatch.from_pydict({"force": ["P2"], "note": [sealed]}, schema=schema)
    publish_here(network, "tip", [batch], type_name=secret.name.name)
    job = delivery_job(Domain.open(network.ccs), (Wanted(name="tips", as_="BO", type=secret.name.name),))
    job.run_here()
    [row] = delivered(job, "tips")
    got = row["note"]
    assert got == sealed
    assert AESGCM(key).decrypt(sealed[:12], sealed[12:], None) == b"the car is in the canal"


def test_subscriber_that_was_away_gets_what_it_missed_once_after_a_fresh_check(network: Network) -> None:
    """Away for events 5 to 7, back: 5, 6, 7, once, by the right of now; when that has ended, 8 does not come."""

    def back() -> tuple[DeliveryJob, list[int]]:
        job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
        asked: list[int] = []
        real = job.make_plans

        def counted(commits: Sequence[Commit], at: Any, whom: Any) -> Any:
            asked.append(len(commits))
            return real(commits, at, whom)

        job.make_plans = counted
        return job, asked

    for number in range(1, 5):
        publish_here(network, f"event {number}", [sightings([f"P{number}"])])
    back()[0].run_here()
    for number in range(5, 8):
        publish_here(network, f"event {number}", [sightings([f"P{number}"])])
    job, asked = back()
    before = job.outbox.latest()
    job.run_here()
    assert asked == [3]  # the chains were asked anew, for what was missed
    missed = [row for batch in job.outbox.read("billing", job.make_secret(), after=before) for row in batch.to_pylist()]
    assert [row["numberplate"] for row in missed] == ["P5", "P6", "P7"]
    job, asked = back()
    assert (job.run_here(), asked) == (0, [])
    publish_here(network, "event 8", [sightings(["P8"])])
    Home.open(network.ccs).certificates.remove(network.people.certificates["Cap7"].certificate_id)
    job, asked = back()
    job.run_here()
    assert asked == [1]
    assert plates(job) == [f"P{number}" for number in range(1, 8)]
    assert len(list(delivered(job, "statistics"))) == 8


def test_a_value_of_four_octets_costs_four_octets_and_a_tag_beside_what_names_it() -> None:
    """Ciphertext is as long as its plaintext, and the tag has 16 octets.

    The row asks for EAX; ADR 0008 chose AES-256-GCM, which keeps both properties, so the published vectors checked here
    are GCM's. A value does not travel alone: its column has a head of 14 octets and a bit of validity, and each block
    a commitment to its key, 32 octets, which EAX would not give.
    """
    vector = AESGCM(bytes(32)).encrypt(bytes(12), bytes(16), None)  # NIST, AES-256-GCM, test case 14
    assert vector.hex() == "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"
    four = pa.array([7], pa.int32()).cast(pa.date32())
    assert four.nbytes == 4
    plain = encode_column(four, AttributeType.DATE)
    assert len(plain) == 14 + 1 + 4
    sealed = AESGCM(bytes(32)).encrypt(bytes(12), bytes(plain), b"")
    assert len(sealed) == len(plain) + 16
    for flipped in range(0, len(sealed) * 8, 7):
        altered = bytearray(sealed)
        altered[flipped // 8] ^= 1 << flipped % 8
        with pytest.raises(InvalidTag):
            AESGCM(bytes(32)).decrypt(bytes(12), bytes(altered), b"")
