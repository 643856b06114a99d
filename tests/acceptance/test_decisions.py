"""Rows 6.01 to 6.04 and 6.11: presenting a request, the stages of a decision, authentication, caches."""

from __future__ import annotations

import pytest

from maia.authority import STAGES, Root, Stage, Verifier, ask
from maia.encoding import Sexp
from maia.principals import (
    Certificate,
    Name,
    TestKind,
)
from maia.testing import People, at, grant, online

NOW = at("2026-06-01T09:00:00")


READ: Sexp = (b"read",)


def faulty(stage: Stage, people: People) -> tuple[list[bytes], Sexp]:
    """Build evidence whose first fault is at a stage, with faults of all later stages that allow it."""
    a, b, c, evil = people.a, people.b, people.c, people.evil
    first = grant(a, b, READ, delegate=True)
    evidence: dict[Stage, list[Certificate]] = {
        Stage.VALIDITY: [grant(a, b, READ, delegate=True, valid=(0, 1)), grant(b, c, READ)],
        Stage.TESTS: [grant(a, b, READ, delegate=True, tests=[online(TestKind.CRL, people.lister)]), grant(b, c, READ)],
        Stage.NAMES: [first, grant(b, Name(b.public_key, ("nobody",)), READ), grant(evil, c, READ)],
        Stage.REDUCTION: [grant(a, b, READ), grant(b, c, READ)],
        Stage.ROOT: [grant(evil, c, READ)],
        Stage.REQUEST: [first, grant(b, c, (b"write",))],
    }
    if stage is Stage.EVIDENCE:
        return [b"(4:cert)"], READ
    if stage is Stage.SIGNATURES:
        raw = first.raw
        return [raw[:-3] + bytes((raw[-3] ^ 1,)) + raw[-2:], grant(b, c, READ).raw], READ
    return [certificate.raw for certificate in evidence[stage]], READ


@pytest.mark.requirement("6.02")
@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage is not Stage.AUTHENTICATION])
def test_a_failure_stops_at_its_stage(stage: Stage):
    """The trace lists the stages in their order, all passed but the last."""
    people = People("a", "b", "c", "evil", "lister")
    evidence, wanted = faulty(stage, people)
    verifier = Verifier([Root(subject=people.a.public_key)])
    denial = verifier.decide(ask(wanted), principal=people.c.public_key, evidence=evidence, at=NOW)
    assert not denial
    assert denial.stage is stage
    passed = STAGES[: STAGES.index(stage)]
    assert denial.trace == (*((earlier, True) for earlier in passed), (stage, False))


@pytest.mark.requirement("6.02")
def test_the_stages_have_a_fixed_order():
    """Signatures, dates, on-line tests, names, reduction, root, request; a grant passed them all."""
    words = "authentication evidence signatures validity tests names reduction root request"
    assert [stage.value for stage in STAGES] == words.split()
    people = People("a", "b")
    verifier = Verifier([Root(subject=people.a.public_key)])
    granted = verifier.decide(
        ask(READ), principal=people.b.public_key, evidence=[grant(people.a, people.b, READ)], at=NOW
    )
    assert granted.trace == tuple((stage, True) for stage in STAGES)


@pytest.mark.requirement("6.02")
def test_an_earlier_fault_is_reported_before_a_later_one():
    """A chain that is forged, expired and unchecked at once is called forged; without the forgery, expired."""
    people = People("a", "b", "c", "d", "lister")
    expired = grant(people.a, people.b, READ, delegate=True, valid=(0, 1))
    unchecked = grant(people.b, people.c, READ, delegate=True, tests=[online(TestKind.CRL, people.lister)])
    last = grant(people.c, people.d, READ)
    forged = last.raw[:-3] + bytes((last.raw[-3] ^ 1,)) + last.raw[-2:]
    verifier = Verifier([Root(subject=people.a.public_key)])

    def stage(*evidence: bytes) -> Stage | None:
        return verifier.decide(ask(READ), principal=people.d.public_key, evidence=evidence, at=NOW).stage

    assert stage(expired.raw, unchecked.raw, forged) is Stage.SIGNATURES
    assert stage(expired.raw, unchecked.raw, last.raw) is Stage.VALIDITY
    valid = grant(people.a, people.b, READ, delegate=True)
    assert stage(valid.raw, unchecked.raw, last.raw) is Stage.TESTS
