"""Rows 6.01 to 6.04 and 6.11: presenting a request, the stages of a decision, authentication, caches."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from maia.authority import Presentation, Root, Stage, Verifier, ask, decide_presentation
from maia.encoding import Sexp
from maia.errors import ExpiredError, SignatureError, VerificationError
from maia.principals import (
    StampChecker,
    TestKind,
    check_nonce_proof,
    prove_by_nonce,
    prove_by_stamp,
)
from maia.testing import People, at, book, grant, listing, online

NOW = at("2026-06-01T09:00:00")
READ: Sexp = (b"read",)


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


def test_a_stamped_proof_is_fresh_meant_for_us_and_new():
    """Window 30 s: 29 is fresh, 31 is stale; a proof for B2 is none for B1; a second use is a replay."""
    people = People("a", "b1", "b2")
    to_b1, to_b2 = people.b1.public_key.key_id, people.b2.public_key.key_id
    proof = prove_by_stamp(people.a, audience=to_b1, at=at(1000))

    def checker() -> StampChecker:
        return StampChecker(to_b1, window=timedelta(seconds=30))

    assert checker().check(proof, at=at(1029)).key == people.a.public_key
    with pytest.raises(ExpiredError):
        checker().check(proof, at=at(1031))
    with pytest.raises(VerificationError, match="WRONG_AUDIENCE"):
        checker().check(prove_by_stamp(people.a, audience=to_b2, at=at(1000)), at=at(1001))
    redirected = replace(prove_by_stamp(people.a, audience=to_b2, at=at(1000)), audience=to_b1)
    with pytest.raises(SignatureError):
        checker().check(redirected, at=at(1001))
    one = checker()
    one.check(proof, at=at(1005))
    with pytest.raises(VerificationError, match="REPLAY"):
        one.check(proof, at=at(1010))


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


def test_a_cached_result_ends_with_expiry():
    """Cached at 10, expires at 20, used at 21: no; also when the clock then steps back before it was cached."""
    people = People("a", "b")
    evidence = [grant(people.a, people.b, READ, valid=(5, 20))]
    verifier = Verifier([Root(subject=people.a.public_key)])

    def allowed(when: int) -> bool:
        return bool(verifier.decide(ask(READ), principal=people.b.public_key, evidence=evidence, at=at(when)))

    assert [allowed(when) for when in (10, 15, 20, 21, 4, 10)] == [True, True, True, False, False, True]


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
