"""The numberplate network through the kernel: real certificates, sessions, sealing, opening, delivery."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
import pytest

from maia.authority import Action, CertificatePool, Verifier, type_right, verify_event_type
from maia.encryption import EpochId, KeyGroupId, Keyring, Parcel, Tolerance, open_parcel, parse_parcel, verify_parcel
from maia.errors import DeniedError, VerificationError
from maia.events import (
    EncryptionMode,
    EventType,
    Options,
    TypeName,
    Version,
    attribute,
    batch_to_transit,
    check_batch,
    sign_event_type,
)
from maia.kernel import (
    Sealing,
    Sessions,
    emulate,
    enforce_publication,
    milliseconds,
    open_batch,
    reserve_stamps,
    seal_batch,
    sub_types,
)
from maia.testing import (
    ATTRIBUTES,
    NETWORK_NAME,
    TYPE_NAME,
    TYPE_VERSION,
    NumberplateNetwork,
    People,
    at,
    grant,
    numberplate_network,
)

NETWORK = numberplate_network()
T1, T2 = at("2026-06-01T09:00:00"), at("2026-06-01T09:00:05")
E1, E2 = ("AE05 XYZ", T1, "Paddington"), ("BX51 ABC", T2, None)


def numberplate(mode=EncryptionMode.ATTRIBUTE):
    """PITO's type."""
    kinds = {"numberplate": "string", "timestamp": "timestamp", "location": "string"}
    return EventType(
        name=TypeName(NETWORK.key("PITO"), TYPE_NAME, Version(TYPE_VERSION)),
        attributes=tuple(attribute(name, int(uid), kinds[name]) for name, uid in ATTRIBUTES.items()),
        options=Options(encryption=mode),
    )


@dataclass
class Broker:
    """One broker of the network with some keys, and what it sends."""

    network: NumberplateNetwork
    event_type: EventType
    name: str
    uids: frozenset[str] = frozenset(ATTRIBUTES.values())
    sent: list[Parcel] = field(default_factory=list)
    high: int = -1

    def __post_init__(self):
        self.pool = CertificatePool(self.network.certificates.values())
        self.sessions = Sessions(Verifier(), network=(self.network.key("PITO"), NETWORK_NAME))
        signed = sign_event_type(self.event_type, self.network.people["PITO"])
        self.sessions.install(verify_event_type(signed, verifier=self.sessions.verifier, at=self.network.now))
        self.ring = Keyring()
        for label in (*(uid for uid in self.event_type.uids if uid in self.uids), "*"):
            if label != "*" or self.uids == self.event_type.uids:
                group = KeyGroupId(self.event_type.type_id, label.encode())
                self.ring.add(group, EpochId(0), label.encode().rjust(32, b"k"))

    def advertise(self, who):
        """Let a client advertise."""
        return self.sessions.advertise(
            self.network.key(who), self.event_type.type_id, TYPE_VERSION, self.pool, at=self.network.now
        )

    def subscribe(self, who, text="", *, identity=None):
        """Let a client subscribe."""
        return self.sessions.subscribe(
            identity or who, self.network.key(who), self.event_type.type_id, TYPE_VERSION, text, self.pool,
            at=self.network.now,
        )  # fmt: skip

    def admit(self, who, *events):
        """Check a client's events and return what may be sealed."""
        client = self.network.key(who)
        version = self.advertise(who).event_type
        clauses = self.sessions.clauses(client, Action.PUBLISH, version, self.pool, at=self.network.now)
        rows = [dict(zip(ATTRIBUTES, event, strict=True)) for event in events]
        names = list(ATTRIBUTES)
        given = pa.RecordBatch.from_arrays([pa.array([row[name] for row in rows]) for name in names], names=names)
        return enforce_publication(version, given, clauses)

    def publish(self, who, *events):
        """Publish a client's events as one parcel."""
        enforced = self.admit(who, *events)
        stamps = reserve_stamps(self.high, now=milliseconds(self.network.now), count=1)
        self.high = stamps.first
        sealing = Sealing(
            type_id=self.event_type.type_id, mode=self.event_type.options.encryption, evidence=bytes(32),
            padding=self.event_type.options.padding,
        )  # fmt: skip
        parcel = seal_batch(
            enforced.batch, sealing, self.network.people[self.name], self.ring, stamp=stamps.first,
            parcel_id=len(self.sent).to_bytes(16, "big"), event_base=len(self.sent).to_bytes(16, "big"),
        )  # fmt: skip
        self.sent.append(parcel)
        return parcel

    def open(self, parcel):
        """Open what this broker may open."""
        return open_batch(
            parcel.to_bytes(), self.sessions.kinds(self.event_type.type_id), self.ring, arrives=parcel.header.stamp,
            tolerance=Tolerance(), check_origin=lambda _: None,
        )  # fmt: skip

    def deliver(self, *parcels):
        """Deliver parcels to the subscribers of this broker: rows by subscription."""
        views: dict[str, list[tuple]] = {}
        plan = self.sessions.plan(self.event_type.type_id, self.pool, at=self.network.now)
        for parcel in parcels:
            for delivery in plan.deliver(self.open(parcel).batch):
                rows = [tuple(row.values()) for row in delivery.batch.to_pylist()]
                views.setdefault(delivery.subscription, []).extend(rows)
        return views


def brokers(mode=EncryptionMode.ATTRIBUTE):
    """The congestion charge's broker with camera and offices, the Metropolitan's broker with the detective."""
    event_type = numberplate(mode)
    charge, met = Broker(NETWORK, event_type, "CB"), Broker(NETWORK, event_type, "MB")
    charge.advertise("CCTV")
    charge.subscribe("BO")
    charge.subscribe("SO")
    met.subscribe("Smith")
    return charge, met


VIEWS = {
    "BO": [("AE05 XYZ", T1, None), ("BX51 ABC", T2, None)],
    "SO": [(None, T1, "Victoria"), (None, T2, "Victoria")],
    "Smith": [("AE05 XYZ", T1, "Victoria")],
}


@pytest.mark.parametrize("mode", EncryptionMode)
def test_the_camera_at_victoria_publishes_from_victoria(mode):
    """The camera says Paddington and nothing: in transit both events come from Victoria."""
    charge, _ = brokers(mode)
    parcel = charge.publish("CCTV", E1, E2)
    assert charge.open(parcel).batch.to_pylist() == [
        {"3265": "AE05 XYZ", "9058": T1, "3467": "Victoria"},
        {"3265": "BX51 ABC", "9058": T2, "3467": "Victoria"},
    ]


@pytest.mark.parametrize("mode", EncryptionMode)
@pytest.mark.parametrize("together", [True, False], ids=["one parcel", "two parcels"])
def test_each_reader_gets_its_view(mode, together):
    """Billing sees plates, statistics sees places, the detective sees his plate; in every mode, batched or not."""
    charge, met = brokers(mode)
    parcels = [charge.publish("CCTV", E1, E2)] if together else [charge.publish("CCTV", e) for e in (E1, E2)]
    assert charge.deliver(*parcels) | met.deliver(*parcels) == VIEWS


def test_a_relay_sees_ciphertext():
    """A broker without keys reads the type id and no value of any attribute."""
    charge, _ = brokers()
    parcel = charge.publish("CCTV", E1, E2)
    octets = parcel.to_bytes()
    assert not any(text in octets for text in (b"AE05", b"BX51", b"Victoria", b"Paddington"))
    assert open_parcel(verify_parcel(parse_parcel(octets)), lambda _: None) == {}


def test_the_seven_steps_of_the_publisher_broker():
    """Type check, nulls, force, uids, stamp, seal, route: the golden trace of the camera's event."""
    charge, _ = brokers()
    trace = []
    with pytest.raises(VerificationError):
        charge.admit("BO", E1)
    wrong = charge.admit("CCTV", ("AE05 XYZ", None, 42))
    trace.append(("type check", [refusal.code for refusal in wrong.refusals]))
    pool = CertificatePool([*NETWORK.certificates.values()])
    timestamp_only = grant(
        NETWORK.people["CCS"], NETWORK.people["CCTV"],
        type_right(NETWORK.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH], attributes=[ATTRIBUTES["timestamp"]]),
    )  # fmt: skip
    narrow = CertificatePool([c for c in NETWORK.certificates.values() if c != NETWORK.certificates["Cap8"]])
    narrow.add(timestamp_only)
    for name, evidence in (("null", narrow), ("force", pool)):
        clauses = charge.sessions.clauses(
            NETWORK.key("CCTV"), Action.PUBLISH, charge.event_type, evidence, at=NETWORK.now
        )
        given = pa.RecordBatch.from_arrays([pa.array([value]) for value in E1], names=list(ATTRIBUTES))
        enforced = enforce_publication(charge.event_type, given, clauses)
        trace.append((name, list(enforced.batch.to_pylist()[0].values()), enforced.nulled, enforced.forced))
    trace.append(("uids", enforced.batch.schema.names))
    parcel = charge.publish("CCTV", E1)
    trace.append(("stamp", parcel.header.stamp - milliseconds(NETWORK.now)))
    trace.append(("seal", [label.decode() for label in parcel.header.labels], b"AE05" in parcel.to_bytes()))
    trace.append(("route", parcel.header.type_id == charge.event_type.type_id, len(charge.sent)))
    assert trace == [
        ("type check", ["VALUE_TYPE"]),
        ("null", [None, T1, None], 1, 0),
        ("force", ["AE05 XYZ", T1, "Victoria"], 0, 1),
        ("uids", ["3265", "9058", "3467"]),
        ("stamp", 0),
        ("seal", ["3265", "9058", "3467"], False),
        ("route", True, 1),
    ]


def test_two_publishers_and_three_subscribers_give_six_deliveries():
    """Many to many; a subscriber that comes first or last gets what is published while it is there."""
    charge, _ = brokers()
    charge.advertise("CB")
    parcels = [charge.publish("CCTV", E1), charge.publish("CB", ("BX51 ABC", T2, "Kent"))]
    charge.subscribe("SO", identity="SO again")
    found = charge.deliver(*parcels)
    assert sum(len(rows) for rows in found.values()) == 6
    quiet = Broker(NETWORK, numberplate(), "MB")
    assert quiet.deliver(*parcels) == {}


def test_the_local_broker_decrypts_once_for_all_its_subscribers(monkeypatch):
    """Ten local subscribers, three attributes: three decryptions. Clients handle no keys."""
    charge, _ = brokers()
    for n in range(8):
        charge.subscribe("BO", identity=f"BO {n}")
    parcel = charge.publish("CCTV", E1)
    opened = []
    real = Keyring.key
    monkeypatch.setattr(
        Keyring, "key", lambda self, group, epoch: opened.append(group.label) or real(self, group, epoch)
    )
    assert len(charge.deliver(parcel)) == 10
    assert sorted(opened) == sorted(uid.encode() for uid in ATTRIBUTES.values())


def test_emulated_groups_give_the_same_views():
    """Three sub-event types: three events per sighting, each under its group's key; the views equal those of one."""
    charge, met = brokers()
    groups = {"BO": {"3265", "9058"}, "SO": {"9058", "3467"}, "Smith": {"3265", "9058", "3467"}}
    subs = {frozenset(sub.uids): sub for sub in sub_types(charge.event_type.type_id, groups.values())}
    ring = Keyring()
    for number, sub in enumerate(subs.values()):
        ring.add(KeyGroupId(sub.type_id, b"*"), EpochId(0), bytes([number + 1]) * 32)
    sealing = Sealing(type_id=charge.event_type.type_id, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32))
    serial = itertools.count(1)
    views: dict[str, list[tuple]] = {}
    for event in (E1, E2):
        parcels = emulate(
            charge.admit("CCTV", event).batch, subs.values(), sealing, NETWORK.people["CB"], ring, stamp=next(serial),
            fresh_id=lambda: next(serial).to_bytes(16, "big"), event_base=bytes(16),
        )  # fmt: skip
        assert len(parcels) == 3
        for who, broker in (("BO", charge), ("SO", charge), ("Smith", met)):
            sub = subs[frozenset(groups[who])]
            [mine] = [parcel for parcel in parcels if parcel.header.type_id == sub.type_id]
            opened = open_batch(
                mine.to_bytes(), broker.sessions.kinds(charge.event_type.type_id), ring, arrives=100,
                tolerance=Tolerance(), check_origin=lambda _: None,
            )  # fmt: skip
            plan = broker.sessions.plan(charge.event_type.type_id, broker.pool, at=NETWORK.now)
            for delivery in plan.deliver(opened.batch):
                if delivery.subscription == who:
                    views.setdefault(who, []).extend(tuple(row.values()) for row in delivery.batch.to_pylist())
    assert views == VIEWS


def test_the_applications_reach_their_ends():
    """A plate seen three times on one day and once on the next is charged twice; places are counted without plates."""
    charge, _ = brokers()
    day = timedelta(days=1)
    times = [T1, T1 + timedelta(hours=1), T1 + timedelta(hours=2), T1 + day]
    views = charge.deliver(charge.publish("CCTV", *(("AE05 XYZ", when, None) for when in times)))
    charges = {(plate, when.date()) for plate, when, _ in views["BO"]}
    assert len(charges) == 2
    counts = Counter((place, when.replace(minute=0, second=0)) for _, when, place in views["SO"])
    assert counts == {("Victoria", when): 1 for when in times}
    assert all(plate is None for plate, _, _ in views["SO"])


def test_a_detective_of_one_force_learns_of_a_theft_reported_to_another():
    """Force P2 reports the car stolen, later; the detective of P1 gets one notification, the witness's name null."""
    people = People("home-office", "p1", "p2", "detective", "desk", "b1", "b2")
    owner = people["home-office"]
    theft = EventType(
        name=TypeName(owner.public_key, "uk.gov.homeoffice.Theft", Version("1")),
        attributes=(
            attribute("numberplate", 1, "string"), attribute("force", 2, "string"),
            attribute("witness-name", 3, "string"),
        ),
    )  # fmt: skip

    def right(*actions, attributes=None):
        return type_right(owner.public_key, theft.name.name, actions=actions, attributes=attributes)

    pool = CertificatePool([
        grant(owner, people["p1"], right(Action.SUBSCRIBE, attributes=["1", "2"]), delegate=True),
        grant(people["p1"], people["detective"], right(Action.SUBSCRIBE)),
        grant(owner, people["p2"], right(Action.PUBLISH, Action.SUBSCRIBE), delegate=True),
        grant(people["p2"], people["desk"], right(Action.PUBLISH)),
    ])  # fmt: skip
    sessions = Sessions(Verifier())
    sessions.install(verify_event_type(sign_event_type(theft, owner), verifier=sessions.verifier, at=T1))
    detective, desk = people["detective"].public_key, people["desk"].public_key
    with pytest.raises(DeniedError):
        sessions.subscribe("d", detective, theft.type_id, "1", "witness-name any", pool, at=T1)
    sessions.subscribe("d", detective, theft.type_id, "1", "numberplate = 'AE05 XYZ'", pool, at=T1)
    # Days later a desk of the other force reports two cars.
    later = T1 + timedelta(days=3)
    version = sessions.advertise(desk, theft.type_id, "1", pool, at=later).event_type
    given = check_batch(version, pa.RecordBatch.from_pydict({
        "numberplate": ["BX51 ABC", "AE05 XYZ"], "force": ["P2", "P2"], "witness-name": ["Jones", "Brown"],
    }))  # fmt: skip
    enforced = enforce_publication(version, given, sessions.clauses(desk, Action.PUBLISH, version, pool, at=later))
    assert enforced.batch.equals(batch_to_transit(version, given))
    [notification] = sessions.plan(theft.type_id, pool, at=later).deliver(enforced.batch)
    assert notification.subscription == "d"
    assert notification.batch.to_pylist() == [{"numberplate": "AE05 XYZ", "force": "P2", "witness-name": None}]
