"""Proving that one holds a key."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from maia.errors import SignatureError, UncheckedError, UsageError, VerificationError
from maia.principals import (
    Authenticated,
    Kind,
    StampChecker,
    StampedProof,
    check_nonce_proof,
    prove_by_nonce,
    prove_by_stamp,
)
from maia.testing import People, at

PEOPLE = People("a", "b")
AUDIENCE = PEOPLE.b.public_key.key_id


def checker(**options: object) -> StampChecker:
    """Serve B with a window of 30 seconds."""
    return StampChecker(AUDIENCE, window=timedelta(seconds=30), **options)


def test_a_stamp_from_the_future_counts_as_much_as_an_old_one():
    """The window lies on both sides of the clock."""
    assert checker().check(prove_by_stamp(PEOPLE.a, audience=AUDIENCE, at=at(1030)), at=at(1000))
    with pytest.raises(VerificationError, match="STALE_PROOF"):
        checker().check(prove_by_stamp(PEOPLE.a, audience=AUDIENCE, at=at(1031)), at=at(1000))


def test_a_stamp_and_its_key_are_signed():
    """Another stamp, or another key, under the same signature is refused."""
    proof = prove_by_stamp(PEOPLE.a, audience=AUDIENCE, at=at(1000))
    for changed in (replace(proof, stamp=at(1001)), replace(proof, key=PEOPLE.b.public_key)):
        with pytest.raises(SignatureError):
            checker().check(changed, at=at(1000))


def test_a_stamp_has_a_time_zone():
    """A proof without one is not made."""
    with pytest.raises(UsageError):
        StampedProof(PEOPLE.a.public_key, datetime(2026, 6, 1), AUDIENCE, bytes(64))  # noqa: DTZ001 - that is the point
    with pytest.raises(UsageError):
        prove_by_stamp(PEOPLE.a, audience=AUDIENCE, at=datetime(2026, 6, 1))  # noqa: DTZ001


def test_proofs_are_remembered_while_they_are_fresh_and_no_longer():
    """Memory is bounded: when it is full, more proofs are not accepted until older ones are stale."""
    one = checker(capacity=2)
    for second in (1000, 1001):
        one.check(prove_by_stamp(PEOPLE.a, audience=AUDIENCE, at=at(second)), at=at(1001))
    with pytest.raises(UncheckedError, match="LIMIT_EXCEEDED"):
        one.check(prove_by_stamp(PEOPLE.a, audience=AUDIENCE, at=at(1002)), at=at(1002))
    assert one.check(prove_by_stamp(PEOPLE.a, audience=AUDIENCE, at=at(1032)), at=at(1032))
    with pytest.raises(VerificationError, match="REPLAY"):
        one.check(prove_by_stamp(PEOPLE.a, audience=AUDIENCE, at=at(1032)), at=at(1033))


@pytest.mark.parametrize("lengths", [(15, 16), (16, 15), (0, 0)])
def test_random_numbers_are_long(lengths: tuple[int, int]):
    """Short ones are neither signed nor accepted."""
    challenge, own = (b"n" * length for length in lengths)
    with pytest.raises(UsageError):
        prove_by_nonce(PEOPLE.a, audience=AUDIENCE, challenge=challenge, own_nonce=own)
    good = prove_by_nonce(PEOPLE.a, audience=AUDIENCE, challenge=b"c" * 16, own_nonce=b"o" * 16)
    with pytest.raises(SignatureError, match="WEAK_NONCE"):
        check_nonce_proof(replace(good, own_nonce=own), audience=AUDIENCE, challenge=challenge)


def test_a_stamped_message_is_no_answer_to_a_challenge():
    """The two protocols sign different things, so one cannot stand in for the other."""
    stamped = prove_by_stamp(PEOPLE.a, audience=AUDIENCE, at=at(1000))
    answer = prove_by_nonce(PEOPLE.a, audience=AUDIENCE, challenge=b"c" * 16, own_nonce=b"o" * 16)
    with pytest.raises(SignatureError):
        check_nonce_proof(replace(answer, signature=stamped.signature), audience=AUDIENCE, challenge=b"c" * 16)
    with pytest.raises(SignatureError):
        checker().check(replace(stamped, signature=answer.signature), at=at(1000))
    assert Kind.AUTHENTICATION.value not in {Kind.CERTIFICATE.value, Kind.REQUEST.value}


def test_authenticated_is_made_by_a_protocol_only():
    """Neither by hand nor by copying."""
    with pytest.raises(UsageError):
        Authenticated(PEOPLE.a.public_key, object())
    proof = prove_by_nonce(PEOPLE.a, audience=AUDIENCE, challenge=b"c" * 16, own_nonce=b"o" * 16)
    proven = check_nonce_proof(proof, audience=AUDIENCE, challenge=b"c" * 16)
    with pytest.raises((ValueError, TypeError)):
        replace(proven, key=PEOPLE.b.public_key)
