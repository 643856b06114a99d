"""Labels: the flow rule, joining, privileges, and the lattice they make."""

from __future__ import annotations

import pytest

from maia.labels import PUBLIC, Label, can_flow, join


def label(secrecy="", integrity=""):
    """A label of one-letter tags."""
    return Label(secrecy=frozenset(secrecy), integrity=frozenset(integrity))


FLOWS = {
    "up in secrecy, down in integrity": (label("x", "p"), label("xy"), True),
    "secrecy is not lost": (label("x"), label(), False),
    "integrity is not gained": (label(), label("", "p"), False),
    "the public label flows to itself": (PUBLIC, PUBLIC, True),
    "another tag is no cover": (label("x"), label("y"), False),
}


@pytest.mark.requirement("17.01")
@pytest.mark.parametrize(("source", "target", "expected"), FLOWS.values(), ids=FLOWS.keys())
def test_flow(source, target, expected):
    """Data flows when no secrecy is lost and no integrity is gained."""
    assert can_flow(source, target) is expected


@pytest.mark.requirement("17.02")
def test_joining_unites_secrecy_and_keeps_common_integrity():
    """Merging ({A},{p}) and ({B},{}) gives ({A,B},{})."""
    assert join([label("A", "p"), label("B")]) == label("AB")
