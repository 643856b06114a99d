"""Whom a broker serves, and with what."""

from __future__ import annotations

import pytest

from maia.authority import Action, CertificatePool, Verifier, ask_type, network_right, type_blanket, type_right
from maia.errors import ChainError, DeniedError
from maia.events import EventType, TypeName, Version, attribute
from maia.kernel import BROKERS, CLIENTS, DOMAINS
from maia.kernel.clauses import clauses_from, versions_of
from maia.kernel.neighbourhood import Neighbourhood
from maia.kernel.serving import within_own
from maia.kernel.topics import requests_for
from maia.principals import Certificate, Name, Threshold
from maia.testing import People, at, grant, naming

PEOPLE = People("PITO", "Met", "CCS", "MB", "CB", "Smith", "Jones", "other")
PITO, MET, CCS, MB, CB, SMITH, JONES = (PEOPLE[name] for name in ("PITO", "Met", "CCS", "MB", "CB", "Smith", "Jones"))
NOW = at("2026-06-01T09:00:00")
EVENT = EventType(
    name=TypeName(PITO.public_key, "Sighting", Version("1")),
    attributes=(attribute("plate", 1, "string"), attribute("place", 2, "string")),
)
NETWORK = (PITO.public_key, "UKPN")


def reading(*uids: str) -> object:
    """Give the right to subscribe to some attributes."""
    return type_right(PITO.public_key, "Sighting", actions=[Action.SUBSCRIBE], attributes=list(uids) or None)


def connecting() -> object:
    """Give the right to connect."""
    return network_right(*NETWORK, [Action.CONNECT])


RIGHTS = (
    grant(PITO, MET, reading(), delegate=True),
    grant(PITO, CCS, reading(), delegate=True),
    grant(MET, MB, type_blanket()),
    grant(CCS, CB, type_blanket()),
    grant(MET, SMITH, reading(), delegate=True),
    grant(SMITH, JONES, reading()),
)
NAMED = (naming(MET, BROKERS, MB), naming(CCS, BROKERS, CB))
ON_NETWORK = (
    grant(PITO, MET, connecting(), delegate=True),
    grant(PITO, CCS, connecting(), delegate=True),
    *(grant(MET, who, connecting()) for who in (MB, SMITH, JONES)),
    grant(CCS, CB, connecting()),
)


def local(client: str, broker: str, *more: Certificate, network: bool = False) -> str:
    """Tell whether a broker serves a client, or why not."""
    pool, verifier = CertificatePool([*RIGHTS, *more]), Verifier()

    def chains(who: str) -> list[tuple[bytes, ...]]:
        (request,) = requests_for(Action.SUBSCRIBE, EVENT)
        found = verifier.clauses(request, principal=PEOPLE[who].public_key, evidence=pool, at=NOW)
        return [item.proof.certificate_ids() for item in found]

    places = Neighbourhood(pool, verifier=verifier, at=NOW, network=NETWORK if network else None)
    try:
        places.check_local(
            PEOPLE[client].public_key, PEOPLE[broker].public_key, PITO.public_key,
            client_chains=chains(client), broker_chains=chains(broker),
        )  # fmt: skip
    except (DeniedError, ChainError) as error:
        return error.code
    return "served"


PLACES = {
    "nobody is named: all belong to the owner": ("Smith", "CB", (), False, "served"),
    "brokers are named: the nearest domain on the chain counts": ("Smith", "CB", NAMED, False, "NOT_LOCAL"),
    "and the right one serves": ("Smith", "MB", NAMED, False, "served"),
    "also whom a client passed it on to": ("Jones", "MB", NAMED, False, "served"),
    "another domain that calls a client its own takes it away from nobody": (
        "Smith", "MB", (*NAMED, naming(CCS, CLIENTS, SMITH)), False, "served",
    ),
    "nor on a network": ("Smith", "MB", (*ON_NETWORK, naming(CCS, CLIENTS, SMITH)), True, "served"),
    "and may serve it": ("Smith", "CB", (*NAMED, naming(CCS, CLIENTS, SMITH)), False, "served"),
    "who names itself and a broker is not served by it": (
        "Smith", "CB", (*NAMED, naming(SMITH, CLIENTS, SMITH), naming(SMITH, BROKERS, CB)), False, "NOT_LOCAL",
    ),
    "nor whom it gave a right": (
        "Jones", "CB", (*NAMED, naming(SMITH, CLIENTS, JONES), naming(SMITH, BROKERS, CB)), False, "NOT_LOCAL",
    ),
    "nor with a right that it gives the broker and itself": (
        "Smith", "CB",
        (
            *NAMED, naming(SMITH, CLIENTS, SMITH), naming(SMITH, BROKERS, CB),
            grant(SMITH, CB, reading()), grant(SMITH, SMITH, reading()),
        ),
        False, "NOT_LOCAL",
    ),
    "nor does a domain of the network lend a broker of another": (
        "Smith", "CB", (*ON_NETWORK, naming(MET, CLIENTS, SMITH), naming(MET, BROKERS, CB)), True, "NOT_LOCAL",
    ),
    "a stranger's name for a broker takes it away from nobody": (
        "Smith", "MB", (naming(PEOPLE["other"], BROKERS, MB),), False, "served",
    ),
    "a client of two domains is served by both": (
        "Smith", "CB", (*NAMED, naming(CCS, CLIENTS, SMITH), naming(MET, CLIENTS, SMITH)), False, "served",
    ),
    "on a network the connection tells": ("Smith", "CB", ON_NETWORK, True, "NOT_LOCAL"),
    "and serves at home": ("Smith", "MB", ON_NETWORK, True, "served"),
    "a domain of both kinds serves nobody": ("Smith", "MB", (*NAMED, naming(MET, DOMAINS, CCS)), False, "DOMAIN_KIND"),
    "the owner may use its own": ("PITO", "CB", (), False, "served"),
}  # fmt: skip


@pytest.mark.parametrize("case", PLACES.values(), ids=PLACES.keys())
def test_a_client_uses_a_broker_of_its_own_domain(case: tuple[str, str, tuple[Certificate, ...], bool, str]) -> None:
    """By names where there are any, else by the nearest domain on the chain."""
    client, broker, more, network, expected = case
    assert local(client, broker, *more, network=network) == expected


def test_the_domain_of_the_home_names_its_own_broker() -> None:
    """The owner gives to broker and client itself; the domain that calls both its own counts in its own home alone."""
    pool = CertificatePool([naming(MET, BROKERS, MB), naming(MET, CLIENTS, SMITH), naming(CCS, BROKERS, MB)])

    def served(client: str, domain: str | None) -> bool:
        key = None if domain is None else PEOPLE[domain].public_key.key_id
        places = Neighbourhood(pool, verifier=Verifier(), at=NOW, domain=key)
        try:
            places.check_local(
                PEOPLE[client].public_key, MB.public_key, PITO.public_key, client_chains=[()], broker_chains=[()]
            )
        except DeniedError:
            return False
        return True

    assert (served("Smith", "Met"), served("Jones", "Met")) == (True, False)
    assert not served("Smith", "CCS")


def test_a_right_by_the_name_of_another_domain_places_its_holder_there() -> None:
    """PITO gives to `Met: detectives`: whoever the Met calls so is the Met's client."""
    detectives = Name(MET.public_key, ("detectives",))
    more = (*NAMED, grant(PITO, detectives, reading()), naming(MET, "detectives", PEOPLE["other"]))
    assert (local("other", "MB", *more), local("other", "CB", *more)) == ("served", "NOT_LOCAL")


def test_clauses_are_cut_down_to_what_the_broker_holds() -> None:
    """Two narrow rights of the broker add up; what none of them holds is closed; nothing in common is nothing."""

    def clauses(*tags: object) -> tuple[object, ...]:
        pool = CertificatePool([grant(PITO, SMITH, tag) for tag in tags])
        (request,) = requests_for(Action.SUBSCRIBE, EVENT)
        rights = Verifier().clauses(request, principal=SMITH.public_key, evidence=pool, at=NOW)
        return clauses_from(rights, versions_of((EVENT,)))

    uids = ("1", "2")

    def opened(client: tuple[object, ...], broker: tuple[object, ...]) -> list[list[str]]:
        return [[uid for uid in uids if item.opens(uid)] for item in within_own(client, broker, uids)]

    whole = clauses(reading())
    assert opened(whole, whole) == [["1", "2"]]
    assert opened(whole, clauses(reading("1"), reading("2"))) == [["1", "2"]]
    assert opened(whole, clauses(reading("2"))) == [["2"]]
    assert opened(clauses(reading("1")), clauses(reading("2"))) == []
    assert opened(whole, ()) == []


def test_founders_that_are_domains_are_apart_and_those_that_are_none_are_one() -> None:
    """Two keys own the type: without members of their own they are one domain; with brokers each is its own."""
    owner = Threshold(1, (MET.public_key, CCS.public_key))
    both = type_right(owner, "Sighting", actions=[Action.SUBSCRIBE])
    pool = [grant(MET, SMITH, both), grant(CCS, CB, both)]
    request = ask_type(Action.SUBSCRIBE, owner, "Sighting", "1")

    def served(*more: Certificate) -> bool:
        evidence, verifier = CertificatePool([*pool, *more]), Verifier()
        chains = [
            [one.proof.certificate_ids() for one in verifier.clauses(request, principal=who, evidence=evidence, at=NOW)]
            for who in (SMITH.public_key, CB.public_key)
        ]
        try:
            Neighbourhood(evidence, verifier=verifier, at=NOW).check_local(
                SMITH.public_key, CB.public_key, owner, client_chains=chains[0], broker_chains=chains[1]
            )
        except DeniedError:
            return False
        return True

    assert served()
    assert not served(naming(MET, BROKERS, MB))
    assert not served(*NAMED)
