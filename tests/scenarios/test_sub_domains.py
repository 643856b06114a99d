"""Domains in domains: what a parent has bounds what is below, and each broker holds the keys of its own domain only."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from key_network import Network, build

from maia.authority import (
    Action,
    CertificatePool,
    Request,
    Tag,
    Verifier,
    ask_network,
    ask_type,
    network_blanket,
    network_right,
    type_blanket,
    type_right,
)
from maia.domain import HomeKeys, join_key_groups, open_home_groups, open_key_manager
from maia.encryption import Tolerance
from maia.errors import ChainError, DeniedError, VerificationError
from maia.events import (
    EncryptionMode,
    EventType,
    Options,
    TypeName,
    attribute,
    batch_to_transit,
    parse_version,
    sign_event_type,
    to_arrow_schema,
)
from maia.home import Home, HomeConfig
from maia.kernel import (
    BROKERS,
    CLIENTS,
    DOMAINS,
    Sealing,
    deliver_parcels,
    milliseconds,
    open_batch,
    read_domain,
    seal_batch,
)
from maia.key_manager import KeySettings
from maia.log import LogDirectory
from maia.principals import Certificate, Name, Signer, TestKind
from maia.testing import (
    ATTRIBUTES,
    NETWORK_NAME,
    TYPE_NAME,
    People,
    at,
    book,
    deliver_plan,
    follow,
    grant,
    listing,
    naming,
    online,
)

NOW = at("2026-06-01T09:00:00")
PEOPLE = People("PITO", "Met", "CCS", "A", "B", "C", "MB1", "MB2", "CB", "Bob", "Smith")
PLATE, TIME, PLACE = ATTRIBUTES["numberplate"], ATTRIBUTES["timestamp"], ATTRIBUTES["location"]


def of(owner: str, name: str, *actions: Action) -> Tag:
    """Write a right on a type."""
    return type_right(PEOPLE[owner].public_key, name, actions=actions or (Action.SUBSCRIBE,))


def reading(owner: str, name: str) -> Request:
    """Ask to subscribe to a type."""
    return ask_type(Action.SUBSCRIBE, PEOPLE[owner].public_key, name, None)


def allowed(who: str, request: Request, *evidence: Certificate, verifier: Verifier | None = None) -> bool:
    """Ask the verifier."""
    decision = (verifier or Verifier()).decide(
        request, principal=PEOPLE[who].public_key, evidence=CertificatePool(evidence), at=NOW
    )
    return bool(decision)


# -- authority


def test_what_a_parent_loses_every_domain_below_loses() -> None:
    """A chain over four domains verifies; the parent's right is revoked, and nothing is left below."""
    crl = [online(TestKind.CRL, PEOPLE["PITO"])]
    top = grant(PEOPLE["PITO"], PEOPLE["Met"], of("PITO", "T1"), delegate=True, tests=crl)
    names = ["Met", "A", "B", "C"]
    below = [grant(PEOPLE[parent], PEOPLE[child], of("PITO", "T1"), delegate=True) for parent, child in pairwise(names)]
    fine, lost = (Verifier(statements=book(listing(TestKind.CRL, PEOPLE["PITO"], gone))) for gone in ([], [top]))
    for who in names:
        assert allowed(who, reading("PITO", "T1"), top, *below, verifier=fine)
        assert not allowed(who, reading("PITO", "T1"), top, *below, verifier=lost)
    assert not allowed("C", reading("PITO", "T2"), top, *below, verifier=fine)


BLANKET = grant(PEOPLE["Met"], PEOPLE["MB1"], type_blanket())
T1 = grant(PEOPLE["PITO"], PEOPLE["Met"], of("PITO", "T1"), delegate=True)
T2 = grant(PEOPLE["CCS"], PEOPLE["Met"], of("CCS", "T2"), delegate=True)


def test_new_domain_right_reaches_brokers_without_a_new_broker_certificate() -> None:
    """With the blanket and T1 the broker reads T1 only; the new domain certificate alone gives T2."""
    assert allowed("MB1", reading("PITO", "T1"), BLANKET, T1)
    assert not allowed("MB1", reading("CCS", "T2"), BLANKET, T1)
    assert allowed("MB1", reading("CCS", "T2"), BLANKET, T1, T2)


def test_blanket_is_narrowed_by_kind_or_owner() -> None:
    """Over networks, over types, or over the types of one owner."""
    connect = ask_network(Action.CONNECT, PEOPLE["PITO"].public_key, NETWORK_NAME)
    right = network_right(PEOPLE["PITO"].public_key, NETWORK_NAME, [Action.CONNECT])
    joined = grant(PEOPLE["PITO"], PEOPLE["Met"], right, delegate=True)
    blankets = {
        "network:*": network_blanket(),
        "type:*": type_blanket(),
        "[PITO,*,*]": type_right(PEOPLE["PITO"].public_key, actions=[Action.SUBSCRIBE]),
    }
    found = {
        name: tuple(
            allowed("MB1", request, grant(PEOPLE["Met"], PEOPLE["MB1"], blanket), T1, T2, joined)
            for request in (connect, reading("PITO", "T1"), reading("CCS", "T2"))
        )
        for name, blanket in blankets.items()
    }
    assert found == {
        "network:*": (True, False, False),
        "type:*": (False, True, True),
        "[PITO,*,*]": (False, True, False),
    }


def test_leaked_domain_certificate_helps_nobody_without_a_blanket_of_that_domain() -> None:
    """Bob of the Met has no blanket; the broker of the CCS has one of the CCS: both are denied."""
    leaked = grant(PEOPLE["PITO"], PEOPLE["Met"], of("PITO", "T2"), delegate=True)
    assert not allowed("Bob", reading("PITO", "T2"), leaked)
    foreign = grant(PEOPLE["CCS"], PEOPLE["CB"], type_blanket())
    assert not allowed("CB", reading("PITO", "T2"), leaked, foreign)
    with pytest.raises(ChainError):
        Verifier().verify(
            reading("PITO", "T2"),
            principal=PEOPLE["CB"].public_key,
            evidence=CertificatePool([leaked, foreign]),
            at=NOW,
        )


def test_group_of_brokers_gets_a_right_that_others_do_not() -> None:
    """`salary-brokers` is MB1: it may, MB2 may not, although both have the old blanket; nothing is revoked."""
    met = PEOPLE["Met"]
    group = Name(met.public_key, ("salary-brokers",))
    old = type_right(PEOPLE["PITO"].public_key, actions=[Action.SUBSCRIBE])
    evidence = [
        grant(met, PEOPLE["MB1"], old),
        grant(met, PEOPLE["MB2"], old),
        T1,
        grant(PEOPLE["CCS"], met, of("CCS", "Salary"), delegate=True),
        naming(met, "salary-brokers", PEOPLE["MB1"]),
        grant(met, group, of("CCS", "Salary")),
    ]
    for broker, may in (("MB1", True), ("MB2", False)):
        assert allowed(broker, reading("PITO", "T1"), *evidence)
        assert allowed(broker, reading("CCS", "Salary"), *evidence) is may


# -- keys: the privileged sub-domain


def transit(event_type: EventType, **columns: list[object]) -> pa.RecordBatch:
    """Make rows as they travel."""
    return batch_to_transit(event_type, pa.RecordBatch.from_pydict(columns, schema=to_arrow_schema(event_type)))


def test_privileged_sub_domain_reads_and_the_other_sees_ciphertext(tmp_path: Path) -> None:
    """Corp is PayRoll and General; Salary goes to PayRoll only: its broker reads, General's broker and admin do not."""
    people = People("corp", "payroll", "general", "pb", "gb", "admin")
    now = datetime.now(UTC)
    name = TypeName(people["corp"].public_key, "Salary", parse_version("1"))
    event_type = EventType(
        name=name,
        attributes=(attribute("employee", "1", "string"), attribute("amount", "2", "integer")),
        options=Options(encryption=EncryptionMode.ATTRIBUTE),
    )
    right = type_right(people["corp"].public_key, "Salary", actions=[Action.PUBLISH, Action.SUBSCRIBE])
    certificates = [
        naming(people["corp"], DOMAINS, people["payroll"]),
        naming(people["corp"], DOMAINS, people["general"]),
        naming(people["payroll"], BROKERS, people["pb"]),
        naming(people["general"], BROKERS, people["gb"]),
        grant(people["corp"], people["payroll"], right, delegate=True),
        grant(people["payroll"], people["pb"], type_blanket()),
        grant(people["general"], people["gb"], type_blanket()),
        grant(people["general"], people["admin"], type_blanket()),
    ]
    homes = {}
    for home_name, broker, keys in (("corp", "corp", "corp"), ("pay", "pb", "pb"), ("general", "gb", "admin")):
        speaks = "general" if keys == "admin" else keys
        home = Home.create(
            tmp_path / home_name, HomeConfig(name=home_name, log="../log", domain=speaks), broker=people[broker]
        )
        home.add_key(keys, people[keys])
        for certificate in certificates:
            home.certificates.add(certificate)
        home.types.put(sign_event_type(event_type, people["corp"]).raw, at=now)
        homes[home_name] = home
    manager, _ = open_key_manager(homes["corp"], settings=KeySettings(lead=timedelta(0)))
    open_home_groups(homes["corp"], manager, name, at=now)

    def join(who: str) -> None:
        join_key_groups(
            homes[who], name, lambda request, evidence: manager.join(request, evidence, at=now),
            manager=manager.public_key, at=now,
        )  # fmt: skip
        follow(homes[who], at=now)

    join("pay")
    with pytest.raises(VerificationError):
        join("general")
    manager.close()
    pay, general = homes["pay"], homes["general"]
    sealing = Sealing(type_id=event_type.type_id, mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32))
    stamp = milliseconds(now)
    parcel = seal_batch(
        transit(event_type, employee=["ann.archer"], amount=[100]), sealing, pay.broker, pay.keyring(), stamp=stamp,
        parcel_id=secrets.token_bytes(16), event_base=secrets.token_bytes(16),
    )  # fmt: skip
    data = parcel.to_bytes()
    assert b"ann.archer" not in data
    kinds = {item.uid: item.type for item in event_type.attributes}
    views = {
        who: open_batch(
            data, kinds, homes[who].keyring(), arrives=stamp, tolerance=Tolerance(), check_origin=lambda _: None
        ).batch.to_pylist()
        for who in ("pay", "general")
    }
    assert views == {"pay": [{"1": "ann.archer", "2": 100}], "general": [{"1": None, "2": None}]}
    with pytest.raises(VerificationError):
        deliver_plan(general, "Salary", as_="admin", commits=(), at=now)
    corp = read_domain(people["corp"].public_key.key_id, homes["corp"].pool(), verifier=Verifier(), at=now)
    assert len(corp.domains) == 2


# -- the CCS, split


@pytest.fixture
def split(tmp_path: Path) -> Iterator[Network]:
    """The CCS as three domains: cameras publish, Billing reads plates, Statistics reads places; Kent relays."""
    network = build(tmp_path, whole=False)
    who = network.people.people
    parts = People("Billing", "Statistics", "Cameras", "BB", "SB", "BO", "SO", seed="split")
    pito = network.people.key("PITO")
    connect = network_right(pito, NETWORK_NAME, [Action.CONNECT])
    certificates: list[Certificate] = []

    def member(domain: Signer, broker: Signer, right: Tag, clients: dict[Signer, Tag]) -> None:
        certificates.extend(
            [
                naming(who["CCS"], DOMAINS, domain),
                naming(domain, BROKERS, broker),
                grant(who["CCS"], domain, connect, delegate=True),
                grant(who["CCS"], domain, right, delegate=True),
                grant(domain, broker, connect),
                grant(domain, broker, type_blanket()),
            ]
        )
        for client, own in clients.items():
            certificates.extend(
                [naming(domain, CLIENTS, client), grant(domain, client, connect), grant(domain, client, own)]
            )

    def on(*actions: Action, uids: list[str] | None = None) -> Tag:
        return type_right(pito, TYPE_NAME, actions=actions, attributes=uids)

    plates, places = on(Action.SUBSCRIBE, uids=[PLATE, TIME]), on(Action.SUBSCRIBE, uids=[PLACE, TIME])
    member(parts["Cameras"], who["CB"], on(Action.PUBLISH, Action.SUBSCRIBE), {})
    certificates.append(naming(parts["Cameras"], CLIENTS, who["CCTV"]))
    member(parts["Billing"], parts["BB"], plates, {parts["BO"]: plates})
    member(parts["Statistics"], parts["SB"], places, {parts["SO"]: places})
    # A mistake: the CCS itself lets the billing office see everything.
    certificates.append(grant(who["CCS"], parts["BO"], on(Action.SUBSCRIBE, uids=[PLATE, TIME, PLACE])))
    network.add("billing", parts["BB"], keys={"BO": parts["BO"]})
    network.add("statistics", parts["SB"], keys={"SO": parts["SO"]})
    network.grant(*certificates)
    network.parts = parts
    yield network
    network.close()


def test_billing_broker_has_no_location_key(split: Network) -> None:
    """Each sub-domain's broker joins the groups of its own attributes; Kent's joins none, and relays ciphertext."""
    joined = {name: split.join(name) for name in ("ccs", "billing", "statistics", "met")}
    plate, time, place = PLATE.encode(), TIME.encode(), PLACE.encode()
    assert joined["billing"] == {plate, time}
    assert joined["statistics"] == {place, time}
    assert {plate, time, place} <= joined["met"]
    with pytest.raises(VerificationError):
        split.join("kent")
    split.pass_time(10)
    held = {
        name: {group.label for group in split.homes[name].keyring().groups()}
        for name in ("billing", "statistics", "kent")
    }
    assert held == {"billing": {plate, time}, "statistics": {place, time}, "kent": set()}
    split.publish("sightings", ["AE05 XYZ", "BX51 ABC"])
    # Also what the client's own right opens, by mistake, its broker cannot.
    assert split.read("billing", "BO") == [("AE05 XYZ", None), ("BX51 ABC", None)]
    assert split.read("statistics", "SO") == [(None, "Victoria"), (None, "Victoria")]
    assert split.read("met", "Smith") == [("AE05 XYZ", "Victoria")]
    domain = read_domain(split.people.key("CCS").key_id, split.homes["ccs"].pool(), verifier=Verifier(), at=split.now)
    assert len(domain.domains) == 3
    assert not domain.brokers


def test_broker_of_a_sub_domain_serves_its_own_clients(split: Network) -> None:
    """BO uses Billing's broker and no other, also with its own key and certificates at Statistics."""
    split.homes["statistics"].add_key("BO", split.parts["BO"])
    for who, home in (("BO", "billing"), ("SO", "statistics")):
        assert deliver_plan(split.homes[home], TYPE_NAME, as_=who, commits=(), at=split.now).subscriptions
    with pytest.raises(DeniedError, match="NOT_LOCAL"):
        deliver_plan(split.homes["statistics"], TYPE_NAME, as_="BO", commits=(), at=split.now)


def test_type_that_is_closed_to_a_relay_is_delivered_through_it(split: Network, tmp_path: Path) -> None:
    """Kent, a domain of brokers alone, copies the log for the Met without a key; the Met reads the copy."""
    split.join("ccs")
    split.join("met")
    split.pass_time(10)
    split.publish("sightings", ["AE05 XYZ"])
    far = LogDirectory(tmp_path / "far")
    for commit in split.log.commits():
        far.put_evidence(split.log.evidence(bytes.fromhex(commit.evidence)))
        record = split.log.lane(commit.lane).lane.record_name(commit.sequence)
        for name in (record, *(file.path for file in commit.files)):
            far.store.put_new(name, split.log.store.get(name, limit=1 << 24))
    assert split.homes["kent"].keyring().groups() == ()
    assert split.outcomes("met", "Smith") == [None]
    met = split.homes["met"]
    plan = deliver_plan(met, TYPE_NAME, as_="Smith", commits=list(far.commits()), at=split.now, history=True)
    files = [(commit.lane, file) for commit in far.commits() for file in commit.files]
    rows = [
        row["numberplate"]
        for lane, file in files
        for outcome in deliver_parcels(
            plan, far.parcels(lane, file), HomeKeys(str(met.path))(), clock=lambda: plan.term.made
        )
        for delivery in outcome.deliveries
        for row in delivery.batch.to_pylist()
    ]
    assert rows == ["AE05 XYZ"]
