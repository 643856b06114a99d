"""Warnings about rights that will not do what they seem to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import maia
from maia.authority import (
    UNENFORCEABLE,
    Action,
    CertificatePool,
    Constraint,
    Verifier,
    ask_type,
    cell_rights,
    lint_right,
    network_right,
    type_right,
)
from maia.testing import Command, People, at, grant, publish_here, read_here

NOW = at("2026-06-01T09:00:00")
NAME = "uk.gov.pito.Numberplate"


TYPE = f"pito/{NAME}"
AT_VICTORIA = ("--attribute", "numberplate", "--attribute", "location=Victoria")
SIGHTINGS = [{"numberplate": "A", "location": "Kent"}, {"numberplate": "B", "location": "Victoria"}]


@pytest.fixture
def home(maia_command: Command) -> Command:
    """Give PITO's type, the broker that serves it, and clients: PITO's desk, and a camera and a clerk of the CCS."""
    made = maia_command
    made.do("domain", "init", str(made.home))
    made.keys("pito", "ccs", "desk", "camera", "clerk")
    attributes = ("--attribute", "numberplate:string:3265", "--attribute", "location:string:3467")
    made.do("type", "define", f"{TYPE}@8516", *attributes, "--encryption", "plain")
    for who in ("broker", "desk"):
        made.grant("--from", "pito", "--to", who, "--type", TYPE, "--action", "publish,subscribe")
    return made


@pytest.mark.requirement("5.13")
def test_the_command_warns_of_a_value_constraint_for_a_domain_and_the_domains_clients_are_bound_by_it(
    home: Command,
) -> None:
    """PITO->CCS with location=Victoria: nothing without a word, then a warning; what CCS passes on is as narrow."""
    both = ("--type", TYPE, "--action", "publish,subscribe")
    to_ccs = ("grant", "--from", "pito", "--to", "ccs", *both, "--delegate")
    assert home.refused(*to_ccs, *AT_VICTORIA) == (2, "CONFIRMATION_MISSING")
    made = home.do(*to_ccs, *AT_VICTORIA, "--yes")
    assert made["warnings"] == [UNENFORCEABLE]
    assert made["rights"][0]["constraints"], "it is issued all the same, with its demand"
    wider = ("grant", "--from", "ccs", "--to", "clerk", *both)
    assert home.refused(*wider)[1] == "ISSUER_LACKS_RIGHT"
    for who in ("camera", "clerk"):
        assert home.do("grant", "--from", "ccs", "--to", who, *both, "--blanket")["warnings"] == []
    opened = maia.open(home.home).home
    assert publish_here(opened, TYPE, SIGHTINGS, as_="desk", at=datetime.now(UTC)) == 2
    assert read_here(opened, TYPE, as_="desk") == SIGHTINGS
    assert read_here(opened, TYPE, as_="clerk") == SIGHTINGS[1:], "the link from PITO binds the clerk of the CCS"
    publish_here(opened, TYPE, [{"numberplate": "C", "location": "Kent"}], as_="camera", at=datetime.now(UTC))
    assert read_here(opened, TYPE, as_="desk")[2:] == [{"numberplate": "C", "location": "Victoria"}], "forced (C1)"


@pytest.mark.requirement("5.13")
def test_a_value_constraint_for_brokers_warns_and_one_for_a_client_does_not(home: Command) -> None:
    """`ccs: brokers` are brokers, whoever they are; a clerk's own broker holds it to the constraint."""
    give = ("grant", "--from", "pito", "--type", TYPE, "--action", "subscribe", "--to")
    for brokers in ("ccs: brokers", "ccs: domains"):
        assert home.refused(*give, brokers, *AT_VICTORIA) == (2, "CONFIRMATION_MISSING")
        assert home.do(*give, brokers, *AT_VICTORIA, "--yes")["warnings"] == [UNENFORCEABLE]
        assert home.do(*give, brokers)["warnings"] == []
    for client in ("clerk", "ccs: clerks"):
        assert home.do(*give, client, *AT_VICTORIA)["warnings"] == []


def test_a_value_constraint_for_a_domain_warns_and_still_binds_its_clients():
    """PITO constrains CCS to Victoria: a warning; CCS's client is restricted by reduction all the same."""
    people = People("PITO", "CCS", "CCTV")
    pito, ccs, cctv = people["PITO"], people["CCS"], people["CCTV"]
    constrained = type_right(
        pito.public_key, NAME, actions=[Action.PUBLISH], constraints=[Constraint("3467", "=", "Victoria")]
    )
    everything = type_right(pito.public_key, NAME, actions=[Action.PUBLISH])
    to_domain = grant(pito, ccs, constrained, delegate=True)
    assert [finding.code for finding in lint_right(to_domain.body, constrained)] == [UNENFORCEABLE]
    chain = CertificatePool([to_domain, grant(ccs, cctv, everything)])
    request = ask_type(Action.PUBLISH, pito.public_key, NAME, "8516")
    [clause] = Verifier().clauses(request, principal=cctv.public_key, evidence=chain, at=NOW)
    [cells] = cell_rights(clause.tag)
    assert [(uid, tag.to_sexp()) for uid, tag in cells.constraints] == [("3467", b"Victoria")]


def test_clients_and_plain_rights_raise_no_warning():
    """A constraint for a client is what constraints are for; a right without one has nothing to warn of."""
    people = People("PITO", "CCS")
    pito, ccs = people["PITO"], people["CCS"]
    constrained = type_right(
        pito.public_key, NAME, actions=[Action.SUBSCRIBE], constraints=[Constraint("3467", "=", "Victoria")]
    )
    plain = type_right(pito.public_key, NAME, actions=[Action.SUBSCRIBE])
    network = network_right(pito.public_key, "UK Police Network", [Action.CONNECT])
    assert lint_right(grant(pito, ccs, constrained).body, constrained) == ()
    assert lint_right(grant(pito, ccs, plain, delegate=True).body, plain) == ()
    assert lint_right(grant(pito, ccs, network, delegate=True).body, network) == ()
