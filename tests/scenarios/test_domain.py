"""Domains that run themselves: the detective's court order, joining and leaving, pushed rights, an agreement."""

from __future__ import annotations

import pyarrow as pa
import pytest

from domain_world import ASSIGNED, DAY, HOUR, MINUTE, ORDER, PLATE, SECOND, TRACKING, Force, Holdings, numberplate
from maia import database
from maia.access_control import AccessControl, MemberKind, Revocation, Settings
from maia.authority import (
    Action,
    CertificatePool,
    Rhythm,
    StatementBook,
    Verifier,
    ask_network,
    ask_type,
    network_right,
    parse_statement,
    type_right,
    verify_event_type,
    verify_statement,
)
from maia.domain import HomeTelling, prove_key
from maia.errors import ChainError, DeniedError, UsageError
from maia.events import EventType, TypeName, attribute, parse_version, sign_event_type
from maia.home import Home, HomeConfig
from maia.kernel import Sessions
from maia.log import NoticeKind, NoticeLog
from maia.policy import (
    PolicySource,
    SignedAgreement,
    TypeCatalogue,
    combine_sources,
    draft_agreement,
    parse_policy,
    sign_agreement,
)
from maia.principals import Authorisation, KeySigner, Naming, Threshold, parse_certificate, verify_certificate
from maia.testing import NETWORK_NAME, People, at, follow, grant


@pytest.fixture
def met(tmp_path):
    """The Metropolitan Police."""
    force = Force(str(tmp_path / "store.db"))
    yield force
    force.engine.dispose()


def right_of(handed):
    """The one capability among what was handed out."""
    (found,) = [item for item in handed.certificates if isinstance(item.body, Authorisation)]
    return found


# ------------------------------------------------------------------ the court order


def test_the_court_order_becomes_the_capability_of_the_thesis(met):
    """Order, detective and assignment give exactly the right of Cap10; without the assignment there is none."""
    met.service.apply(TRACKING, at=met.now)
    met.join("smith", "Smith", appointments=["detective(smith)"])
    met.service.appoint(ORDER, at=met.now)
    smith = met.prove("Smith")
    with pytest.raises(DeniedError):
        met.service.activate(smith, PLATE, at=met.now)
    assert not any(
        isinstance(item.body, Authorisation) for item in met.service.capabilities(smith, at=met.now).certificates
    )
    met.service.observe(ASSIGNED, at=met.now)
    met.service.activate(smith, PLATE, at=met.now)
    capability = right_of(met.service.capabilities(smith, at=met.now)).body
    cap10 = met.network.certificates["Cap10"].body
    assert (capability.tag, capability.subject, capability.issuer, capability.delegate) == (
        cap10.tag, cap10.subject, cap10.issuer, cap10.delegate,
    )  # fmt: skip


def test_the_certificate_ends_with_the_court_order(tmp_path):
    """The order ends on 2008-06-30, so does the certificate, although the domain would let it live for a year."""
    met = Force(str(tmp_path / "store.db"), settings=Settings(life=365 * DAY, rhythm=None))
    met.now = at("2008-06-01T09:00:00")
    ends = at("2008-06-30T00:00:00")
    handed = met.service.capabilities(met.track(until=ends), at=met.now)
    assert right_of(handed).body.period.not_after == ends
    assert met.subscribe(handed, at=ends)
    assert not met.subscribe(handed, at=ends + SECOND)
    met.engine.dispose()


WAYS = {"court order revoked": ORDER, "detective status lost": "detective(smith)", "removed from the case": ASSIGNED}


@pytest.mark.parametrize("lost", WAYS.values(), ids=WAYS)
def test_smith_loses_access_in_three_ways_before_the_certificate_ends(met, lost):
    """Role, certificate and subscription end at once; given back, a new certificate opens it, the old does not."""
    ends = met.now + 30 * DAY
    smith = met.track(until=ends)
    handed = met.service.capabilities(smith, at=met.now)
    sessions = broker_of(met)
    subscribe(sessions, met, handed)
    assert deliveries(sessions, met, handed, met.now + MINUTE) == [["AE05 XYZ", "Victoria"]]
    done = met.service.retract(lost, at=met.now + HOUR)
    assert done.roles == (f"smith: {PLATE}",)
    assert [item.certificate_id for item in done.certificates] == [right_of(handed).certificate_id]
    after = met.now + HOUR + SECOND
    assert deliveries(sessions, met, handed, after) == []
    assert met.subscribe(handed, at=after).reason == "REVOKED"
    (met.service.observe if lost == ASSIGNED else met.service.appoint)(lost, at=after)
    assert met.service.roles(at=after) == ()
    met.service.activate(smith, PLATE, at=after)
    again = met.service.capabilities(smith, at=after)
    assert met.subscribe(again, at=after)
    assert not met.subscribe(handed, at=after)


def test_after_the_order_has_ended_everything_is_closed(met):
    """Nobody does anything: the day after, there is no role and no delivery."""
    ends = met.now + 10 * HOUR
    handed = met.service.capabilities(met.track(until=ends), at=met.now)
    sessions = broker_of(met)
    subscribe(sessions, met, handed)
    assert deliveries(sessions, met, handed, ends) == [["AE05 XYZ", "Victoria"]]
    assert deliveries(sessions, met, handed, ends + SECOND) == []
    assert met.service.roles(at=ends + SECOND) == ()


def test_only_monitored_premises_end_the_role(met):
    """A premise without the star is asked once: its end changes nothing, and no certificate is withdrawn."""
    met.service.apply(TRACKING.replace("detective(self)*", "detective(self)"), at=met.now)
    met.join("smith", "Smith", appointments=["detective(smith)"])
    met.service.appoint(ORDER, at=met.now)
    met.service.observe(ASSIGNED, at=met.now)
    smith = met.prove("Smith")
    met.service.activate(smith, PLATE, at=met.now)
    handed = met.service.capabilities(smith, at=met.now)
    assert met.service.retract("detective(smith)", at=met.now) == Revocation()
    assert met.subscribe(handed)


def broker_of(met):
    """A broker of the Met, which follows what the service publishes."""
    verifier = Verifier(statements=met.book())
    sessions = Sessions(verifier)
    signed = sign_event_type(numberplate(met.network), met.network.people["PITO"])
    sessions.install(verify_event_type(signed, verifier=verifier, at=met.now))
    return sessions


def subscribe(sessions, met, handed):
    """Let Smith subscribe to everything he may see."""
    sessions.subscribe(
        "smith-1", met.network.key("Smith"), numberplate(met.network).type_id, "8516", "",
        CertificatePool(handed.evidence), at=met.now,
    )  # fmt: skip


def deliveries(sessions, met, handed, moment):
    """What the broker delivers of one sighting, after it took in what was published by then."""
    known = set(sessions.verifier.statements.raw_statements())
    for raw in met.book().raw_statements():
        if raw not in known:
            sessions.verifier.statements.accept(verify_statement(parse_statement(raw)))
    batch = pa.RecordBatch.from_pydict(
        {
            "3265": pa.array(["AE05 XYZ", "BX51 ABC"]),
            "9058": pa.array([moment, moment], type=pa.timestamp("us", tz="UTC")),
            "3467": pa.array(["Victoria", "Paddington"]),
        }
    )
    plan = sessions.plan(numberplate(met.network).type_id, CertificatePool(handed.evidence), at=moment)
    rows = [row for delivery in plan.deliver(batch) for row in delivery.batch.to_pylist()]
    return [[row["numberplate"], row["location"]] for row in rows]


# ------------------------------------------------------------------ short lives


def test_a_short_lived_capability_is_revoked_by_declining(tmp_path):
    """Life 60 s, the policy changes at 10: without any list it is over at 60 at the latest, and renewal is refused."""
    met = Force(str(tmp_path / "store.db"), settings=Settings(life=MINUTE, tests=()))
    smith = met.track()
    handed = met.service.capabilities(smith, at=met.now)
    met.service.apply(TRACKING.replace("detective(self)*", "inspector(self)*"), at=met.now + 10 * SECOND)
    assert not met.subscribe(handed, at=met.now + 61 * SECOND)
    with pytest.raises(DeniedError) as refusal:
        met.service.renew(smith, right_of(handed).raw, at=met.now + 30 * SECOND)
    assert refusal.value.code == "RENEWAL_REFUSED"
    met.engine.dispose()


def test_an_expired_link_is_renewed_where_it_says(tmp_path):
    """The certificate above Smith's, PITO's to the Met, has expired: with a fresh one his old one serves again."""
    address = "https://pito.example/renew"
    pito = Force(str(tmp_path / "pito.db"), settings=Settings(life=HOUR, renew=address))
    pito.service = pito.open(signer=pito.network.people["PITO"])
    pito.service.apply("partner(self) <- contract(self)*\npartner(d) |- subscribe Numberplate", at=pito.now)
    pito.join("met", "Met", kind=MemberKind.DOMAIN, appointments=["contract(met)"])
    domain = pito.prove("Met")
    pito.service.activate(domain, "partner(met)", at=pito.now)
    above = right_of(pito.service.capabilities(domain, at=pito.now))
    below = grant(pito.network.people["Met"], pito.network.people["Smith"], type_right(pito.network.key("PITO")))

    def decide(*evidence, moment):
        return Verifier(statements=pito.book()).decide(
            pito.network.on_type(Action.SUBSCRIBE), principal=pito.network.key("Smith"), evidence=evidence, at=moment
        )

    later = pito.now + 2 * HOUR
    assert decide(above, below, moment=pito.now)
    assert decide(above, below, moment=later).reason == "EXPIRED"
    assert above.body.renew == address
    fresh = right_of(pito.service.renew(pito.prove("Met", at=later), above.raw, at=later))
    assert decide(fresh, below, moment=later)
    pito.engine.dispose()


# ------------------------------------------------------------------ enrolment, networks, pushed rights


def test_first_credentials_are_obtained_end_to_end(tmp_path):
    """Challenge, invitation, first certificates with their chain: enough to connect, without any other message."""
    met = Force(str(tmp_path / "store.db"), connected=True)
    handed = met.join("smith", "Smith")
    names = [item.body.name for item in handed.certificates if isinstance(item.body, Naming)]
    assert names == ["smith"]
    decision = Verifier(statements=met.book()).decide(
        met.network.connect(), principal=met.network.key("Smith"), evidence=handed.evidence, at=met.now
    )
    assert decision
    assert met.network.certificates["Cap1"].raw in handed.chain
    met.engine.dispose()


def test_a_network_of_founders_admits_with_two_of_three_signatures():
    """{Met, CCS, PITO} own the network: two signatures admit Kent, one does not."""
    people = People("Met", "CCS", "PITO", "Kent")
    owner = Threshold(2, tuple(people[name].public_key for name in ("Met", "CCS", "PITO")))
    connect = network_right(owner, NETWORK_NAME, [Action.CONNECT])
    votes = {name: grant(people[name], people["Kent"], connect, delegate=True) for name in ("Met", "CCS", "PITO")}
    request = ask_network(Action.CONNECT, owner, NETWORK_NAME)

    def admitted(*names):
        evidence = [votes[name] for name in names]
        return bool(Verifier().decide(request, principal=people["Kent"].public_key, evidence=evidence, at=at(0)))

    assert admitted("Met", "CCS")
    assert admitted("CCS", "PITO")
    assert not any(admitted(name) for name in votes)


def test_a_domain_joins_and_leaves_at_runtime(tmp_path):
    """Kent receives a delegable certificate: its broker connects where nothing was restarted; withdrawn, it is out."""
    pito = Force(str(tmp_path / "store.db"), connected=True)
    pito.service = pito.open(signer=pito.network.people["PITO"])
    people = People("Kent", "KB")
    pito.service.apply("", at=pito.now)
    verifier = Verifier(statements=StatementBook())

    def connects(evidence):
        for raw in pito.book().raw_statements():
            if raw not in verifier.statements.raw_statements():
                verifier.statements.accept(verify_statement(parse_statement(raw)))
        request = pito.network.connect()
        return bool(verifier.decide(request, principal=people["KB"].public_key, evidence=evidence, at=pito.now))

    connect = network_right(pito.network.key("PITO"), NETWORK_NAME, [Action.CONNECT])
    to_broker = grant(people["Kent"], people["KB"], connect)
    assert not connects([to_broker.raw])
    handed = pito.join("kent", people["Kent"], kind=MemberKind.DOMAIN)
    evidence = [to_broker.raw, *handed.evidence]
    assert right_of(handed).body.delegate
    assert connects(evidence)
    assert pito.service.revoke(principal="kent", at=pito.now).members == ("kent",)
    assert not connects(evidence)
    pito.engine.dispose()


def test_the_owner_cannot_steer_the_inner_policy(met):
    """The Met grants Smith and refuses Jones by its own rule; PITO's certificate is the same in both cases."""
    before = met.network.certificates["Cap12"].raw
    smith = met.track()
    met.join("jones", "BO")
    with pytest.raises(DeniedError):
        met.service.activate(met.prove("BO"), PLATE, at=met.now)
    handed = met.service.capabilities(smith, at=met.now)
    others = met.service.capabilities(met.prove("BO"), at=met.now)
    assert met.subscribe(handed)
    assert not met.subscribe(others, who="BO")
    assert handed.chain == (before,)
    pito_right = [item.raw for item in met.home.certificates if item.body.issuer == met.network.key("PITO")]
    assert before in pito_right


def test_a_new_right_of_the_domain_reaches_all_brokers_without_a_request(tmp_path):
    """PITO gives the Met a further type: one message in the log, and every broker's blanket reaches it."""
    met = Force(str(tmp_path / "store.db"))
    log = tmp_path / "log"
    people = People("MB1", "MB2")
    homes = []
    for name in ("MB1", "MB2"):
        home = Home.create(tmp_path / name, HomeConfig(name=name, log=str(log), domain="met"), broker=people[name])
        home.add_public_key("met", met.network.key("Met"))
        home.add_public_key("pito", met.network.key("PITO"))
        homes.append(home)
    met.service = met.open(telling=HomeTelling(homes[0], met.network.people["Met"]))
    for name, home in zip(("MB1", "MB2"), homes, strict=True):
        handed = met.join(name.lower(), people[name], kind=MemberKind.BROKER)
        for raw in handed.evidence:
            home.certificates.add(acs_certificate(raw))
    new = grant(
        met.network.people["PITO"], met.network.people["Met"], type_right(met.network.key("PITO"), "T2"), delegate=True
    )
    journal = len(met.service.journal())
    met.service.gain(new.raw, at=met.now)
    for home in homes:
        assert new.certificate_id not in home.pool()
        moment = follow(home, at=met.now)
        assert new.certificate_id in home.pool()
        request = ask_type_subscribe(met, "T2")
        assert home.verifier().decide(request, principal=home.broker.public_key, evidence=home.pool(), at=moment)
    assert [line.action for line in met.service.journal()[journal:]] == ["gain"]
    key = met.network.key("Met").key_id
    assert len(NoticeLog(log).reader(NoticeKind.CERTIFICATE, key, key).since().records) == 1
    met.engine.dispose()


def acs_certificate(raw):
    """Verify what was handed over."""
    return verify_certificate(parse_certificate(raw))


def ask_type_subscribe(met, name):
    """Ask to subscribe to one of PITO's types."""
    return ask_type(Action.SUBSCRIBE, met.network.key("PITO"), name, None)


# ------------------------------------------------------------------ two organisations


PRESCRIPTION = "uk.nhs.Prescription"


def test_an_agreement_opens_exactly_the_attributes_of_its_table(tmp_path):
    """Pharmacists of the pharmacy read drug and dose; the diagnosis is null. A porter there reads nothing."""
    people = People("Clinic", "Pharmacy", "Ann", "Bob")
    clinic, pharmacy = people["Clinic"], people["Pharmacy"]
    kind = EventType(
        name=TypeName(clinic.public_key, PRESCRIPTION, parse_version("1")),
        attributes=tuple(attribute(name, uid, "string") for name, uid in (("drug", 1), ("dose", 2), ("diagnosis", 3))),
    )
    catalogue, now = TypeCatalogue([kind]), at("2026-06-01T09:00:00")
    table = "pharmacist |- subscribe Prescription(drug, dose)"
    plan = SignedAgreement(
        agreement=draft_agreement("dispensing", clinic.public_key, pharmacy.public_key, table, catalogue)
    )
    agreed = sign_agreement(sign_agreement(plan, clinic), pharmacy)

    def service(name, signer):
        engine = database.open_database(str(tmp_path / f"{name}.db"))
        database.migrate(engine)
        return AccessControl(
            signer=signer, engine=engine, holdings=Holdings(catalogue), settings=Settings(tests=()),
            named_roles=lambda *, at: agreed.agreement.roles,
        )  # fmt: skip

    giving, receiving = service("clinic", clinic), service("pharmacy", pharmacy)
    with pytest.raises(DeniedError):
        receiving.honour(agreed, at=now)
    given = giving.honour(agreed, at=now)
    receiving.apply("pharmacist(self) <- registered(self)*\nporter(self) <- hired(self)*", at=now)
    evidence = list(given.evidence)
    for name, role, fact in (("ann", "pharmacist(ann)", "registered(ann)"), ("bob", "porter(bob)", "hired(bob)")):
        who = prove_key(receiving, people[name.capitalize()], nonce=b"n" * 16, at=now)
        receiving.enrol(who, invitation=receiving.invite(name, at=now, appointments=[fact]), at=now)
        receiving.activate(who, role, at=now)
        evidence += receiving.capabilities(who, at=now).evidence
    sessions = Sessions(Verifier())
    sessions.install(verify_event_type(sign_event_type(kind, clinic), verifier=Verifier(), at=now))
    pool = CertificatePool(evidence)
    sessions.subscribe("ann", people["Ann"].public_key, kind.type_id, "1", "", pool, at=now)
    with pytest.raises(Exception, match=r"BROKEN_CHAIN|NOT_PERMITTED|NO_EVIDENCE|NAME_UNRESOLVED"):
        sessions.subscribe("bob", people["Bob"].public_key, kind.type_id, "1", "", pool, at=now)
    with pytest.raises(DeniedError):
        sessions.subscribe("ann-2", people["Ann"].public_key, kind.type_id, "1", "diagnosis = 'flu'", pool, at=now)
    batch = pa.RecordBatch.from_pydict({"1": ["aspirin"], "2": ["500 mg"], "3": ["flu"]})
    (delivery,) = sessions.plan(kind.type_id, pool, at=now).deliver(batch)
    assert delivery.batch.to_pylist() == [{"drug": "aspirin", "dose": "500 mg", "diagnosis": None}]


def test_children_extend_the_national_set_and_names_are_unique(met):
    """Five national roles and two local ones: the child sees seven, its sibling five; no second member of one name."""
    national = PolicySource(
        name="national", inherited=True, text="".join(f"role{n}(self) <- registered(self)*\n" for n in range(5))
    )
    local = PolicySource(name="local", text="porter(self) <- hired(self)*\nward-clerk(self) <- hired(self)*\n")
    assert len(parse_policy(combine_sources([national, local])).roles) == 7
    assert len(parse_policy(combine_sources([national])).roles) == 5
    met.service.apply(combine_sources([national, local]), at=met.now)
    met.join("addenbrookes", KeySigner(b"a" * 32))
    with pytest.raises(UsageError) as refusal:
        met.join("addenbrookes", KeySigner(b"b" * 32))
    assert refusal.value.code == "MEMBER_NAME_TAKEN"
    with pytest.raises(ChainError) as kind:
        met.join("papworth", KeySigner(b"c" * 32), kind=MemberKind.DOMAIN)
    assert kind.value.code == "DOMAIN_KIND"


def test_a_withdrawal_during_a_session_reaches_subscription_and_keys_within_its_window(tmp_path):
    """With timed lists the printed window is kept: nothing is delivered after it, though the plain list is lost."""
    rhythm = Rhythm(period=10 * SECOND, lead=2 * SECOND)
    met = Force(str(tmp_path / "store.db"), settings=Settings(rhythm=rhythm))
    smith = met.track()
    handed = met.service.capabilities(smith, at=met.now)
    sessions = broker_of(met)
    subscribe(sessions, met, handed)
    assert deliveries(sessions, met, handed, met.now + SECOND)
    done = met.service.revoke(role=PLATE, at=met.now + 2 * SECOND)
    (ended,) = done.certificates
    assert ended.exposure.window is not None
    assert ended.exposure.window <= rhythm.window
    met.telling.heard = [item for item in met.telling.heard if item[1] != done.statement]
    assert deliveries(sessions, met, handed, met.now + 3 * SECOND)
    assert deliveries(sessions, met, handed, met.now + 2 * SECOND + ended.exposure.window) == []
    assert [kind for kind, _ in met.telling.heard][-1] == "withdrawn"
    met.engine.dispose()
