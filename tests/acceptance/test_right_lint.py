"""Warnings about rights that will not do what they seem to."""

from __future__ import annotations

import pytest

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
from maia.testing import People, at, grant

NOW = at("2026-06-01T09:00:00")
NAME = "uk.gov.pito.Numberplate"


@pytest.mark.requirement("5.13")
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
