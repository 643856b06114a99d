"""Rows 6.01, 6.02, 6.04 and 6.11: presenting a request, the stages of a decision, authentication, caches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maia.authority import STAGES, Presentation, Root, Stage, Verifier, ask, decide_presentation
from maia.encoding import Sexp
from maia.errors import SignatureError
from maia.principals import (
    Certificate,
    Name,
    TestKind,
    check_nonce_proof,
    prove_by_nonce,
)
from maia.testing import People, at, book, grant, listing, naming, online

NOW = at("2026-06-01T09:00:00")
READ: Sexp = (b"read",)


@pytest.mark.requirement("6.01")
@pytest.mark.parametrize(
    "missing, stage, code",
    [
        ("authenticated", Stage.AUTHENTICATION, "NOT_AUTHENTICATED"),
        ("evidence", Stage.EVIDENCE, "NO_EVIDENCE"),
        ("request", Stage.REQUEST, "NO_REQUEST"),
    ],
)
def test_a_request_is_a_key_evidence_and_one_operation(missing: str, stage: Stage, code: str):
    """Without any of the three the answer is no, and says which is missing."""
    people = People("met", "smith", "broker")
    audience = people.broker.public_key.key_id
    proof = prove_by_nonce(people.smith, audience=audience, challenge=b"c" * 16, own_nonce=b"s" * 16)
    proven = check_nonce_proof(proof, audience=audience, challenge=b"c" * 16)
    whole = Presentation(authenticated=proven, evidence=[grant(people.met, people.smith, READ).raw], request=ask(READ))
    verifier = Verifier([Root(subject=people.met.public_key)])
    assert decide_presentation(whole, verifier, at=NOW)
    denial = decide_presentation(replace(whole, **{missing: None}), verifier, at=NOW)
    assert (denial.allowed, denial.stage, denial.reason) == (False, stage, code)


def faulty(stage: Stage, people: People) -> tuple[list[bytes], Sexp]:
    """Build evidence whose first fault is at a stage, with faults of all later stages that allow it."""
    a, b, c, evil = people.a, people.b, people.c, people.evil
    first = grant(a, b, READ, delegate=True)
    evidence: dict[Stage, list[Certificate]] = {
        Stage.VALIDITY: [grant(a, b, READ, delegate=True, valid=(0, 1)), grant(b, c, READ)],
        Stage.TESTS: [grant(a, b, READ, delegate=True, tests=[online(TestKind.CRL, people.lister)]), grant(b, c, READ)],
        Stage.NAMES: [first, grant(b, Name(b.public_key, ("nobody",)), READ), naming(b, "else", c)],
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


@pytest.mark.requirement("6.04")
def test_an_answer_covers_both_random_numbers_and_the_audience():
    """An answer to r_B verifies; one to an older r_B, for another audience, or without r_A does not."""
    people = People("a", "b", "b2")
    audience = people.b.public_key.key_id
    proof = prove_by_nonce(people.a, audience=audience, challenge=b"r_B " * 4, own_nonce=b"r_A " * 4)
    assert check_nonce_proof(proof, audience=audience, challenge=b"r_B " * 4).key == people.a.public_key
    wrong = (
        (proof, audience, b"old " * 4),
        (proof, people.b2.public_key.key_id, b"r_B " * 4),
        (replace(proof, own_nonce=b"x" * 16), audience, b"r_B " * 4),
        (replace(proof, own_nonce=b""), audience, b"r_B " * 4),
    )
    for shown, asked_by, challenge in wrong:
        with pytest.raises(SignatureError):
            check_nonce_proof(shown, audience=asked_by, challenge=challenge)


@pytest.mark.requirement("6.11")
def test_the_second_decision_verifies_no_signature():
    """The certificates of a chain are verified once, whoever asks afterwards and for what."""
    people = People("a", "b", "c", "d")
    evidence = [
        grant(people.a, people.b, "(* set (read) (write))", delegate=True),
        grant(people.b, people.c, READ),
        grant(people.b, people.d, (b"write",)),
    ]
    verifier = Verifier([Root(subject=people.a.public_key)])
    assert verifier.decide(ask(READ), principal=people.c.public_key, evidence=evidence, at=NOW)
    assert verifier.signatures.verifications == 2
    assert verifier.decide(ask(READ), principal=people.c.public_key, evidence=evidence, at=NOW)
    assert verifier.signatures.verifications == 2
    # Another subject of the same domain: only its own certificate is new.
    assert verifier.decide(
        ask((b"write",)), principal=people.d.public_key, evidence=evidence[:1] + evidence[2:], at=NOW
    )
    assert verifier.signatures.verifications == 3


@pytest.mark.requirement("6.11")
def test_a_cached_result_ends_with_expiry():
    """Cached at 10, expires at 20, used at 21: no; also when the clock then steps back before it was cached."""
    people = People("a", "b")
    evidence = [grant(people.a, people.b, READ, valid=(5, 20))]
    verifier = Verifier([Root(subject=people.a.public_key)])

    def allowed(when: int) -> bool:
        return bool(verifier.decide(ask(READ), principal=people.b.public_key, evidence=evidence, at=at(when)))

    assert [allowed(when) for when in (10, 15, 20, 21, 4, 10)] == [True, True, True, False, False, True]


@pytest.mark.requirement("6.11")
def test_a_cached_result_ends_with_revocation():
    """A list that arrives after a grant was remembered takes it back; so does the end of the list relied upon."""
    people = People("a", "b", "lister")
    evidence = [grant(people.a, people.b, READ, tests=[online(TestKind.CRL, people.lister)])]
    known = book(listing(TestKind.CRL, people.lister, sequence=1))
    verifier = Verifier([Root(subject=people.a.public_key)], statements=known)

    def allowed(when: int) -> bool:
        return bool(verifier.decide(ask(READ), principal=people.b.public_key, evidence=evidence, at=at(when)))

    assert allowed(10)
    known.accept(listing(TestKind.CRL, people.lister, evidence, sequence=2))
    assert not allowed(10)
    timed = book(listing(TestKind.CRL, people.lister, valid=(0, 60)))
    verifier = Verifier([Root(subject=people.a.public_key)], statements=timed)
    assert [allowed(when) for when in (10, 59, 60)] == [True, True, False]
