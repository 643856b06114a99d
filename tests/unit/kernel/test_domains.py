"""A domain is a group of brokers or of domains, as its certificates say; clients use their own."""

from __future__ import annotations

import pytest

from maia.authority import Action, CertificatePool, Verifier, type_blanket, type_right
from maia.errors import ChainError, DeniedError, UncheckedError, UsageError, VerificationError
from maia.events import EventType, TypeName, Version, attribute
from maia.kernel import BROKERS, CLIENTS, DOMAINS, DomainTree, check_local, check_served, domains, read_domain
from maia.principals import Certificate, KeyId, Name
from maia.principals import TestKind as Kind
from maia.testing import People, at, book, grant, listing, naming, online

PEOPLE = People("PITO", "Met", "CCS", "Kent", "MB1", "MB2", "CB", "Smith", "Jones", "TM", "KB")
NOW = at("2026-06-01T09:00:00")


def key(who: str) -> KeyId:
    """Name somebody."""
    return PEOPLE[who].public_key.key_id


def read(who: str, *certificates: Certificate, verifier: Verifier | None = None) -> DomainTree:
    """Read a domain from certificates."""
    return read_domain(key(who), CertificatePool(certificates), verifier=verifier or Verifier(), at=NOW)


MET = (
    naming(PEOPLE["Met"], BROKERS, PEOPLE["MB1"]),
    naming(PEOPLE["Met"], BROKERS, PEOPLE["MB2"]),
    naming(PEOPLE["Met"], CLIENTS, PEOPLE["Smith"]),
)
CCS = (naming(PEOPLE["CCS"], BROKERS, PEOPLE["CB"]), naming(PEOPLE["CCS"], CLIENTS, PEOPLE["Jones"]))
POLICE = (
    naming(PEOPLE["PITO"], DOMAINS, PEOPLE["Met"]),
    naming(PEOPLE["PITO"], DOMAINS, PEOPLE["CCS"]),
    *MET,
    *CCS,
)


def test_domain_is_read_from_its_names() -> None:
    """Brokers, clients and sub-domains are those that the domains name."""
    pito = read("PITO", *POLICE)
    assert {domain.key for domain in pito.walk()} == {key("PITO"), key("Met"), key("CCS")}
    (met,) = pito.domains_of(key("Smith"))
    assert (met.key, met.brokers, met.clients) == (
        key("Met"), frozenset({key("MB1"), key("MB2")}), frozenset({key("Smith")}),
    )  # fmt: skip
    assert pito.domains_of(key("PITO")) == ()


BOTH = {
    "a broker in a domain that has a sub-domain": naming(PEOPLE["PITO"], BROKERS, PEOPLE["TM"]),
    "a client in a domain that has a sub-domain": naming(PEOPLE["PITO"], CLIENTS, PEOPLE["TM"]),
    "a sub-domain in a domain that has brokers": naming(PEOPLE["Met"], DOMAINS, PEOPLE["Kent"]),
    "one who is broker and client": naming(PEOPLE["Met"], CLIENTS, PEOPLE["MB1"]),
}


@pytest.mark.parametrize("wrong", BOTH.values(), ids=BOTH.keys())
def test_domain_that_is_both_is_refused_whole(wrong: Certificate) -> None:
    """Once a domain names both kinds, nothing of it is read."""
    assert read("PITO", *POLICE).domains
    with pytest.raises(ChainError, match="DOMAIN_KIND"):
        read("PITO", *POLICE, wrong)


def test_member_of_the_other_kind_is_refused_before_it_is_named() -> None:
    """What an access control service asks before it issues the name."""
    pito, met = read("PITO", *POLICE), read("Met", *MET)
    with pytest.raises(ChainError, match="DOMAIN_KIND"):
        pito.with_member(BROKERS, key("TM"))
    with pytest.raises(ChainError, match="DOMAIN_KIND"):
        met.with_member(DOMAINS, key("Kent"))
    assert len(pito.with_member(DOMAINS, key("Kent")).domains) == 3
    assert len(met.with_member(BROKERS, key("TM")).brokers) == 3
    assert len(met.with_member(CLIENTS, key("Jones")).clients) == 2
    with pytest.raises(ChainError, match="DOMAIN_LOOP"):
        pito.with_member(DOMAINS, key("PITO"))
    with pytest.raises(UsageError, match="DOMAIN_MEMBER"):
        met.with_member("friends", key("Jones"))


def test_names_that_do_not_verify_make_no_member() -> None:
    """An expired name, a revoked one, one that nobody vouches for, and another's forgery do not count."""
    expired = naming(PEOPLE["Met"], BROKERS, PEOPLE["TM"], valid=(None, "2026-05-31"))
    tested = naming(PEOPLE["Met"], BROKERS, PEOPLE["KB"], tests=[online(Kind.CRL, PEOPLE["Met"])])
    forged = naming(PEOPLE["Jones"], BROKERS, PEOPLE["Jones"])
    assert read("Met", *MET, expired, tested, forged).brokers == {key("MB1"), key("MB2")}
    fine = Verifier(statements=book(listing(Kind.CRL, PEOPLE["Met"])))
    assert key("KB") in read("Met", *MET, tested, verifier=fine).brokers
    gone = Verifier(statements=book(listing(Kind.CRL, PEOPLE["Met"], [tested])))
    assert key("KB") not in read("Met", *MET, tested, verifier=gone).brokers


def test_domain_below_itself_is_refused() -> None:
    """A loop of sub-domains, and a domain below two others, end the reading."""
    ring = [naming(PEOPLE[a], DOMAINS, PEOPLE[b]) for a, b in (("PITO", "Met"), ("Met", "CCS"), ("CCS", "PITO"))]
    with pytest.raises(ChainError, match="DOMAIN_LOOP"):
        read("PITO", *ring)
    shared = [
        naming(PEOPLE[a], DOMAINS, PEOPLE[b])
        for a, b in (("PITO", "Met"), ("PITO", "CCS"), ("Met", "Kent"), ("CCS", "Kent"))
    ]
    with pytest.raises(ChainError, match="DOMAIN_LOOP"):
        read("PITO", *shared)


def test_depth_is_not_bounded_but_size_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of 60 domains is read; more domains or members than are looked at are refused."""
    deep = People(*(f"d{number}" for number in range(61)))
    chain = [naming(deep[f"d{n}"], DOMAINS, deep[f"d{n + 1}"]) for n in range(60)]
    root = read_domain(deep["d0"].public_key.key_id, CertificatePool(chain), verifier=Verifier(), at=NOW)
    assert sum(1 for _ in root.walk()) == 61
    monkeypatch.setattr(domains, "MAX_DOMAINS", 60)
    with pytest.raises(UncheckedError, match="LIMIT_EXCEEDED"):
        read_domain(deep["d0"].public_key.key_id, CertificatePool(chain), verifier=Verifier(), at=NOW)
    monkeypatch.setattr(domains, "MAX_MEMBERS", 2)
    with pytest.raises(UncheckedError, match="LIMIT_EXCEEDED"):
        read("Met", *MET)


def test_client_uses_a_broker_of_its_own_domain() -> None:
    """Smith of the Met connects to any broker of the Met, and to none of the CCS."""
    pito = read("PITO", *POLICE)
    smith = PEOPLE["Smith"].public_key
    for broker in ("MB1", "MB2"):
        assert check_local(pito, smith, PEOPLE[broker].public_key).key == key("Met")
    for broker in ("CB", "TM", "Smith"):
        with pytest.raises(DeniedError, match="NOT_LOCAL"):
            check_local(pito, smith, PEOPLE[broker].public_key)
    with pytest.raises(DeniedError, match="NOT_LOCAL"):
        check_local(pito, PEOPLE["MB1"].public_key, PEOPLE["MB2"].public_key)


def test_domains_without_clients_and_with_customers_are_valid() -> None:
    """Infrastructure alone is a domain; so is a firm whose clients are its customers."""
    infrastructure = read("PITO", naming(PEOPLE["PITO"], BROKERS, PEOPLE["TM"]))
    assert (len(infrastructure.brokers), len(infrastructure.clients)) == (1, 0)
    people = People("firm", "floor", "ann", "bob", "cyd")
    names = [naming(people["firm"], CLIENTS, people[who]) for who in ("ann", "bob", "cyd")]
    pool = CertificatePool([naming(people["firm"], BROKERS, people["floor"]), *names])
    firm = read_domain(people["firm"].public_key.key_id, pool, verifier=Verifier(), at=NOW)
    assert (len(firm.brokers), len(firm.clients)) == (1, 3)
    for who in ("ann", "bob", "cyd"):
        assert check_local(firm, people[who].public_key, people["floor"].public_key) == firm


def test_brokers_may_be_named_through_another_name() -> None:
    """`brokers` may stand for what the domain calls otherwise, as the thesis does with `Met Brokers`."""
    met = PEOPLE["Met"]
    through = naming(met, BROKERS, Name(met.public_key, ("Met Brokers",)))
    assert read("Met", through, naming(met, "Met Brokers", PEOPLE["MB1"])).brokers == {key("MB1")}


EVENT = EventType(
    name=TypeName(PEOPLE["PITO"].public_key, "uk.gov.pito.Numberplate", Version("8516")),
    attributes=(attribute("numberplate", 3265, "string"), attribute("location", 3467, "string")),
)


def plate(*uids: str) -> object:
    """Give the right to subscribe to some attributes."""
    return type_right(
        PEOPLE["PITO"].public_key, EVENT.name.name, actions=[Action.SUBSCRIBE], attributes=list(uids) or None
    )


def test_broker_serves_what_its_own_right_covers() -> None:
    """With the domain's blanket it serves every client; lacking a right it refuses; none without a right is served."""
    pito, met = PEOPLE["PITO"], PEOPLE["Met"]
    evidence = [
        grant(pito, met, plate(), delegate=True),
        grant(met, PEOPLE["Smith"], plate("3265", "3467")),
        grant(met, PEOPLE["MB1"], type_blanket()),
        grant(met, PEOPLE["MB2"], plate("3265")),
    ]
    pool = CertificatePool(evidence)

    def served(client: str, broker: str) -> None:
        check_served(
            PEOPLE[client].public_key, PEOPLE[broker].public_key, Action.SUBSCRIBE, EVENT, pool,
            verifier=Verifier(), at=NOW,
        )  # fmt: skip

    served("Smith", "MB1")
    with pytest.raises(DeniedError, match="BROKER_LACKS_RIGHT"):
        served("Smith", "MB2")
    with pytest.raises(DeniedError, match="BROKER_LACKS_RIGHT"):
        served("Smith", "CB")
    with pytest.raises(VerificationError):
        served("Jones", "MB1")
