"""Sessions: rights proven once, no state without proof, and views that end with the right behind them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from maia.authority import Action, CertificatePool, Verifier, network_right, type_right, verify_event_type
from maia.errors import ChainError, DeniedError, ExpiredError, MaiaError, NotFoundError, VerificationError
from maia.events import EventType, TypeName, Version, attribute, batch_to_transit, check_batch, sign_event_type
from maia.kernel import Sessions, enforce_publication
from maia.principals import TestKind as Kind
from maia.testing import People, at, grant, listing, online

PEOPLE = People("pito", "cam", "smith", "eve")
TYPE = EventType(
    name=TypeName(PEOPLE.pito.public_key, "uk.gov.pito.Numberplate", Version("8516")),
    attributes=(attribute("numberplate", 3265, "string"), attribute("location", 3467, "string")),
)
NOW = at(100)
PITO, CAM, SMITH, EVE = (PEOPLE[name].public_key for name in ("pito", "cam", "smith", "eve"))


def right(*actions, attributes=None, conditions=()):
    """A right on the type."""
    return type_right(PITO, "uk.gov.pito.Numberplate", actions=actions, attributes=attributes)


PUBLISHES = grant(PEOPLE.pito, PEOPLE.cam, right(Action.PUBLISH))
READS = grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE))


def sessions(*, installed=True, **options):
    """A broker that knows the type."""
    made = Sessions(Verifier(), **options)
    if installed:
        made.install(verify_event_type(sign_event_type(TYPE, PEOPLE.pito), verifier=made.verifier, at=NOW))
    return made


def subscribe(made, pool, *, who=SMITH, identity="s", text="", version="8516", when=NOW):
    """Subscribe to the type."""
    return made.subscribe(identity, who, TYPE.type_id, version, text, pool, at=when)


def batch(*plates):
    """Sightings in transit form."""
    given = pa.RecordBatch.from_pydict({"numberplate": list(plates), "location": ["Victoria"] * len(plates)})
    return batch_to_transit(TYPE, check_batch(TYPE, given))


def test_by_name_calls_need_the_definition():
    """A fresh broker does not know the type; after it was installed once, naming it is enough."""
    made, pool = sessions(installed=False), CertificatePool([READS, PUBLISHES])
    for call in (lambda: subscribe(made, pool), lambda: made.advertise(CAM, TYPE.type_id, "8516", pool, at=NOW)):
        with pytest.raises(NotFoundError) as caught:
            call()
        assert caught.value.code == "UNKNOWN_TYPE"
    made.install(verify_event_type(sign_event_type(TYPE, PEOPLE.pito), verifier=made.verifier, at=NOW))
    assert subscribe(made, pool).identity == "s"
    with pytest.raises(NotFoundError):
        subscribe(made, pool, version="9999")


def test_an_advertisement_names_principal_and_chain():
    """The one that is made says who, and by which certificates."""
    made, pool = sessions(), CertificatePool([PUBLISHES])
    found = made.advertise(CAM, TYPE.type_id, "8516", pool, at=NOW)
    assert found.principal == CAM
    assert found.chains == ((PUBLISHES.certificate_id,),)


def test_one_advertisement_verifies_one_chain_for_a_hundred_thousand_publications(monkeypatch):
    """The right is proven at advertise time; 100,000 publications later the chain was verified once."""
    made, pool = sessions(), CertificatePool([PUBLISHES])
    calls = []
    real = Verifier.clauses

    def counted(self, *args, **named):
        calls.append(args)
        return real(self, *args, **named)

    monkeypatch.setattr(Verifier, "clauses", counted)
    made.advertise(CAM, TYPE.type_id, "8516", pool, at=NOW)
    rows = pa.RecordBatch.from_pydict({"numberplate": ["A"] * 1_000})
    published = 0
    for _ in range(100):
        clauses = made.clauses(CAM, Action.PUBLISH, TYPE, pool, at=NOW)
        published += len(enforce_publication(TYPE, rows, clauses).rows)
    assert published == 100_000
    assert len(calls) == 1


def test_an_unauthorised_session_leaves_no_state():
    """Refused with a reason; the broker is as it was, and nothing is sent."""
    made, pool = sessions(), CertificatePool([PUBLISHES, READS])
    for call in (
        lambda: made.advertise(EVE, TYPE.type_id, "8516", pool, at=NOW),
        lambda: made.advertise(SMITH, TYPE.type_id, "8516", pool, at=NOW),
        lambda: subscribe(made, pool, who=EVE),
        lambda: subscribe(made, pool, who=CAM),
        lambda: subscribe(made, pool, text="numberplate = 42"),
        lambda: subscribe(made, pool, text="colour = 'red'"),
        lambda: subscribe(made, pool, text="((("),
    ):
        with pytest.raises(MaiaError) as caught:
            call()
        assert caught.value.code.isupper()
    assert made.subscriptions() == ()
    assert len(made.plan(TYPE.type_id, pool, at=NOW)) == 0


def test_a_filter_over_a_closed_attribute_leaves_no_state():
    """The billing office may not read places: its filter over them is refused, its plain subscription is not."""
    plates = grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE, attributes=["3265"]))
    made, pool = sessions(), CertificatePool([plates])
    with pytest.raises(DeniedError) as caught:
        subscribe(made, pool, text="location = 'Victoria'")
    assert caught.value.code == "FILTER_NOT_AUTHORISED"
    assert made.subscriptions() == ()
    assert subscribe(made, pool, text="numberplate = 'A'").chains == ((plates.certificate_id,),)


def test_a_subscription_belongs_to_its_principal():
    """Another client cannot take over an identity; its owner may subscribe again under it."""
    made = sessions()
    pool = CertificatePool([READS, grant(PEOPLE.pito, PEOPLE.eve, right(Action.SUBSCRIBE))])
    subscribe(made, pool)
    with pytest.raises(DeniedError) as caught:
        subscribe(made, pool, who=EVE)
    assert caught.value.code == "NOT_YOUR_SUBSCRIPTION"
    subscribe(made, pool, text="numberplate = 'B'")
    assert [item.principal for item in made.subscriptions(TYPE.type_id)] == [SMITH]
    made.unsubscribe("s")
    made.unsubscribe("s")
    assert made.subscriptions() == ()


def views(made, pool, when):
    """How many rows each subscription gets of two sightings at an instant."""
    found = made.plan(TYPE.type_id, pool, at=when).deliver(batch("A", "B"))
    return {delivery.subscription: len(delivery.rows) for delivery in found}


def test_a_right_that_expires_ends_the_view_mid_stream():
    """From the moment after its last valid instant the subscription gets nothing; the session itself stays (C38)."""
    ends = grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE), valid=(110, 200))
    made, pool = sessions(), CertificatePool([ends])
    with pytest.raises(ExpiredError):
        subscribe(made, pool)
    subscribe(made, pool, when=at(110))
    assert [views(made, pool, at(when)) for when in (110, 200, 201)] == [{"s": 2}, {"s": 2}, {}]
    assert len(made.subscriptions()) == 1


def test_a_right_that_is_revoked_ends_the_view_mid_stream():
    """A statement that arrives between two batches takes effect at the next one; so does one that fails to come."""
    tests = [online(Kind.CRL, PEOPLE.pito)]
    reads = grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE), tests=tests)
    made, pool = sessions(), CertificatePool([reads])
    book = made.verifier.statements
    book.accept(listing(Kind.CRL, PEOPLE.pito, [], sequence=1, valid=(0, 120)))
    subscribe(made, pool)
    assert views(made, pool, NOW) == {"s": 2}
    assert views(made, pool, at(130)) == {}, "the next list is due and not there"
    book.accept(listing(Kind.CRL, PEOPLE.pito, [], sequence=2, valid=(120, 240)))
    assert views(made, pool, at(130)) == {"s": 2}
    book.accept(listing(Kind.CRL, PEOPLE.pito, [reads], sequence=3, valid=(240, 360)))
    assert [views(made, pool, at(when)) for when in (239, 240)] == [{"s": 2}, {}]


def test_new_certificates_count_at_the_next_batch():
    """What is added to the evidence widens the view without subscribing again."""
    plates = grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE, attributes=["3265"]))
    made, pool = sessions(), CertificatePool([plates])
    subscribe(made, pool)

    def places():
        [delivery] = made.plan(TYPE.type_id, pool, at=NOW).deliver(batch("A"))
        return delivery.batch.column("location").to_pylist()

    assert places() == [None]
    pool.add(READS)
    assert places() == ["Victoria"]


def test_conditions_count_only_while_they_hold():
    """A right with a condition is there while the condition holds, and the view of its session with it."""
    bound = grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE), conditions=["now < timestamp(200)"])
    pool = CertificatePool([bound])
    made = sessions()
    subscribe(made, pool)
    assert [views(made, pool, at(when)) for when in (100, 200)] == [{"s": 2}, {}]
    with pytest.raises(ChainError) as caught:
        subscribe(made, pool, identity="t", when=at(200))
    assert caught.value.code == "CONDITION_FALSE"


def test_a_connect_right_may_have_conditions_of_its_own():
    """Who may connect only in the morning is served only then; another chain without conditions opens the day."""
    network = (PITO, "UK Police Network")
    early = network_right(PITO, network[1], [Action.CONNECT])
    joins = grant(PEOPLE.pito, PEOPLE.smith, early, conditions=["now.hour('UTC') < 12"])
    made, pool = sessions(network=network), CertificatePool([READS, joins])
    subscribe(made, pool)
    morning, evening = at(100), at("1970-01-01T18:00")
    assert [views(made, pool, when) for when in (morning, evening)] == [{"s": 2}, {}]
    pool.add(grant(PEOPLE.pito, PEOPLE.smith, early))
    assert views(made, pool, evening) == {"s": 2}


def test_members_of_a_network_must_be_connected():
    """With a network everybody needs a connect chain, when the session is made and at every batch."""
    network = (PITO, "UK Police Network")
    joins = grant(PEOPLE.pito, PEOPLE.smith, network_right(PITO, network[1], [Action.CONNECT]), valid=(0, 200))
    with pytest.raises(VerificationError):
        subscribe(sessions(network=network), CertificatePool([READS]))
    made, pool = sessions(network=network), CertificatePool([READS, joins])
    subscribe(made, pool)
    assert [views(made, pool, at(when)) for when in (100, 201)] == [{"s": 2}, {}]


def test_a_type_that_expired_serves_nobody():
    """Sessions end with the credentials of their type."""
    manages = grant(PEOPLE.pito, PEOPLE.cam, right(Action.MANAGE), valid=(0, 200))
    by_cam = EventType(name=TYPE.name, attributes=TYPE.attributes, credentials=(manages,))
    made, pool = Sessions(Verifier()), CertificatePool([READS])
    made.install(verify_event_type(sign_event_type(by_cam, PEOPLE.cam), verifier=made.verifier, at=NOW))
    subscribe(made, pool)
    assert views(made, pool, NOW) == {"s": 2}
    assert views(made, pool, at(201)) == {}
    with pytest.raises(VerificationError) as caught:
        subscribe(made, pool, when=at(201))
    assert caught.value.code == "TYPE_EXPIRED"


def test_the_order_of_the_evidence_makes_no_difference():
    """Clauses, their order and the chains they name do not depend on which certificate came first."""
    some = [
        READS,
        grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE, attributes=["3265"])),
        grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE, attributes=["3467"])),
        grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE), valid=(0, 10_000)),
        grant(PEOPLE.pito, PEOPLE.cam, right(Action.SUBSCRIBE), delegate=True),
        grant(PEOPLE.cam, PEOPLE.smith, right(Action.SUBSCRIBE)),
    ]
    found = {
        sessions().clauses(SMITH, Action.SUBSCRIBE, TYPE, CertificatePool(order), at=NOW)
        for order in (some, some[::-1], some[3:] + some[:3])
    }
    assert len(found) == 1
    [clauses] = found
    assert len(clauses) == 3
    assert all(len(clause.chain) == 1 for clause in clauses)


def test_the_owner_needs_no_certificate():
    """The owner of the type publishes and reads by right of its name."""
    made, pool = sessions(), CertificatePool([])
    assert made.advertise(PITO, TYPE.type_id, "8516", pool, at=NOW).chains == ((),)
    subscribe(made, pool, who=PITO)
    assert views(made, pool, NOW) == {"s": 2}


def test_old_decisions_are_forgotten_when_there_are_many(monkeypatch):
    """What a broker remembers of rights is bounded."""
    made = sessions()
    made._clauses.update({(n,): () for n in range(10_001)})
    made.clauses(SMITH, Action.SUBSCRIBE, TYPE, CertificatePool([READS]), at=NOW)
    assert len(made._clauses) == 1


def test_more_clauses_than_a_plan_holds_are_left_out(monkeypatch):
    """A right in a thousand pieces opens as many of them as a plan holds."""
    monkeypatch.setattr("maia.kernel.clauses.MAX_CLAUSES", 1)
    pool = CertificatePool([
        grant(PEOPLE.pito, PEOPLE.smith, right(Action.SUBSCRIBE, attributes=[uid])) for uid in ("3265", "3467")
    ])  # fmt: skip
    assert len(sessions().clauses(PEOPLE.smith.public_key, Action.SUBSCRIBE, TYPE, pool, at=NOW)) == 1


def test_types_live_side_by_side():
    """The attribute types of one type are those of its own versions, whatever else is installed."""
    made = sessions()
    names = (TypeName(PITO, "uk.gov.pito.Theft", Version("1")), TypeName(PITO, TYPE.name.name, Version("9000")))
    other, newer = (EventType(name=name, attributes=(attribute("x", 777, "float"),)) for name in names)
    for definition in (other, newer):
        made.install(verify_event_type(sign_event_type(definition, PEOPLE.pito), verifier=made.verifier, at=NOW))
    assert set(made.kinds(other.type_id)) == {"777"}
    assert set(made.kinds(TYPE.type_id)) == {"3265", "3467", "777"}
