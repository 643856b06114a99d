"""Members of an owner of several keys, exchanged by a quorum of those before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maia.authority import Action, StatementBook, Successions, Verifier, ask_network, exchange_of, network_right
from maia.principals import Certificate, Period, Threshold, issue
from maia.principals import TestKind as Kind
from maia.testing import People, at, grant, online

PEOPLE = People("a", "b", "c", "d", "e", "kent")
NOW = at("2026-06-01T09:00:00")


def group(names: str, k: int = 2) -> Threshold:
    """Make a threshold of people."""
    return Threshold(k, tuple(PEOPLE[name].public_key for name in names))


FOUNDERS = group("abc")


def said(known: list[Certificate], to: str, *by: str) -> list[Certificate]:
    """Let members say, by what is known, who the members shall be."""
    bodies = [(who, Successions(known).exchange(FOUNDERS, group(to), PEOPLE[who].public_key)) for who in by]
    return [*known, *(issue(body, PEOPLE[who]) for who, body in bodies)]


def members(known: list[Certificate]) -> object:
    """Tell who speaks for the founders."""
    return Successions(known).speaker(FOUNDERS)


def test_a_quorum_exchanges_members_step_by_step() -> None:
    """Two of the members of the moment; those who went have no say, and may come back by the word of the others."""
    first = said([], "abd", "a", "b")
    assert members(first) == group("abd")
    assert members(said([], "abd", "a")) == FOUNDERS
    assert members(said([], "abd", "a", "a")) == FOUNDERS
    assert members(said(first, "abe", "a", "c")) == group("abd"), "c is no member any more"
    second = said(first, "abc", "d", "a")
    assert members(second) == FOUNDERS
    assert members(said(second, "abe", "c", "b")) == group("abe"), "and counts again"
    assert members([*said([], "abd", "a", "b"), *said([], "abe", "c", "b")]) == FOUNDERS, "two quorums cancel out"


def test_what_ends_or_depends_on_lists_exchanges_nobody() -> None:
    """An owner is who it is, whenever somebody asks; and a stranger's word is nothing."""
    body = Successions().exchange(FOUNDERS, group("abd"), PEOPLE["a"].public_key)
    for other in (
        replace(body, period=Period(None, NOW)),
        replace(body, tests=(online(Kind.CRL, PEOPLE["a"]),)),
        replace(body, delegate=False),
    ):
        assert exchange_of(issue(other, PEOPLE["a"])) is None
    assert exchange_of(grant(PEOPLE["a"], group("abd"), "(read)")) is None
    assert members(said([], "abd", "d", "e")) == FOUNDERS


@pytest.mark.parametrize(("signers", "allowed"), [("ab", True), ("ad", True), ("ac", False), ("cd", False)])
def test_rights_come_from_those_who_speak_now(signers: str, allowed: bool) -> None:
    """C was exchanged for D: what C signed counts no longer, and the network is the same."""
    right = network_right(FOUNDERS, "UKPN", [Action.CONNECT])
    evidence = [grant(PEOPLE[who], PEOPLE["kent"], right) for who in signers]
    book = StatementBook(successions=Successions(said([], "abd", "a", "b")))
    decision = Verifier(statements=book).decide(
        ask_network(Action.CONNECT, FOUNDERS, "UKPN"), principal=PEOPLE["kent"].public_key, evidence=evidence, at=NOW
    )
    assert decision.allowed is allowed
