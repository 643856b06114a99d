"""Proving that one holds a key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from maia.errors import SignatureError, UsageError
from maia.principals import (
    Authenticated,
    check_nonce_proof,
    prove_by_nonce,
)
from maia.testing import People

PEOPLE = People("a", "b")
AUDIENCE = PEOPLE.b.public_key.key_id


@pytest.mark.parametrize("lengths", [(15, 16), (16, 15), (0, 0)])
def test_random_numbers_are_long(lengths: tuple[int, int]):
    """Short ones are neither signed nor accepted."""
    challenge, own = (b"n" * length for length in lengths)
    with pytest.raises(UsageError):
        prove_by_nonce(PEOPLE.a, audience=AUDIENCE, challenge=challenge, own_nonce=own)
    good = prove_by_nonce(PEOPLE.a, audience=AUDIENCE, challenge=b"c" * 16, own_nonce=b"o" * 16)
    with pytest.raises(SignatureError, match="WEAK_NONCE"):
        check_nonce_proof(replace(good, own_nonce=own), audience=AUDIENCE, challenge=challenge)


def test_authenticated_is_made_by_a_protocol_only():
    """Neither by hand nor by copying."""
    with pytest.raises(UsageError):
        Authenticated(PEOPLE.a.public_key, object())
    proof = prove_by_nonce(PEOPLE.a, audience=AUDIENCE, challenge=b"c" * 16, own_nonce=b"o" * 16)
    proven = check_nonce_proof(proof, audience=AUDIENCE, challenge=b"c" * 16)
    with pytest.raises((ValueError, TypeError)):
        replace(proven, key=PEOPLE.b.public_key)
