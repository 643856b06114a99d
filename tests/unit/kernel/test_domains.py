"""A domain is a group of brokers or of domains, as its certificates say; clients use their own."""

from __future__ import annotations

import pytest

from maia.authority import CertificatePool, Verifier
from maia.errors import ChainError, UncheckedError, UsageError
from maia.kernel import BROKERS, CLIENTS, DOMAINS, DomainTree, domains, member_names, read_domain
from maia.principals import Certificate, KeyId, Name
from maia.principals import TestKind as Kind
from maia.testing import People, at, book, listing, naming, online

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
    (met,) = (domain for domain in pito.walk() if domain.clients == {key("Smith")})
    assert (met.key, met.brokers, met.clients) == (
        key("Met"), frozenset({key("MB1"), key("MB2")}), frozenset({key("Smith")}),
    )  # fmt: skip


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
    monkeypatch.setattr(member_names, "MAX_MEMBERS", 2)
    with pytest.raises(UncheckedError, match="LIMIT_EXCEEDED"):
        read("Met", *MET)


def test_domains_without_clients_and_with_customers_are_valid() -> None:
    """Infrastructure alone is a domain; so is a firm whose clients are its customers."""
    infrastructure = read("PITO", naming(PEOPLE["PITO"], BROKERS, PEOPLE["TM"]))
    assert (len(infrastructure.brokers), len(infrastructure.clients)) == (1, 0)
    people = People("firm", "floor", "ann", "bob", "cyd")
    names = [naming(people["firm"], CLIENTS, people[who]) for who in ("ann", "bob", "cyd")]
    pool = CertificatePool([naming(people["firm"], BROKERS, people["floor"]), *names])
    firm = read_domain(people["firm"].public_key.key_id, pool, verifier=Verifier(), at=NOW)
    assert (len(firm.brokers), len(firm.clients)) == (1, 3)


def test_brokers_may_be_named_through_another_name() -> None:
    """`brokers` may stand for what the domain calls otherwise, as the thesis does with `Met Brokers`."""
    met = PEOPLE["Met"]
    through = naming(met, BROKERS, Name(met.public_key, ("Met Brokers",)))
    assert read("Met", through, naming(met, "Met Brokers", PEOPLE["MB1"])).brokers == {key("MB1")}
