"""Proving that one holds a key: unilateral authentication after ISO 9798-3.

The protocol with random numbers, signed with a prefix of its own: B sends ``r_B``; A answers
``(r_A, S_A(r_A, r_B, B))``. A's own random number keeps A from signing something that B chose alone.

`Authenticated` is made here only, so a function that takes one knows that a key was proven.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass

from maia.encoding import encode
from maia.errors import SignatureError, UsageError
from maia.principals.keys import KeyId, PublicKey
from maia.principals.signing import Kind, Signer, verify_signature

MIN_NONCE = 16


class _Proof:
    """Held by this module alone."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class Authenticated:
    """A key whose possession was proven to this verifier."""

    key: PublicKey
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but a successful run of a protocol."""
        if _proof is not _PROOF:
            raise UsageError("only authentication makes an Authenticated")


@dataclass(frozen=True, slots=True)
class NonceProof:
    """The answer of the protocol with random numbers."""

    key: PublicKey
    own_nonce: bytes
    signature: bytes


def prove_by_nonce(signer: Signer, *, audience: KeyId, challenge: bytes, own_nonce: bytes) -> NonceProof:
    """Answer an audience's challenge."""
    if min(len(challenge), len(own_nonce)) < MIN_NONCE:
        raise UsageError(f"random numbers have at least {MIN_NONCE} octets")
    signature = signer.sign(Kind.AUTHENTICATION, _nonce_body(own_nonce, challenge, audience))
    return NonceProof(signer.public_key, own_nonce, signature)


def check_nonce_proof(proof: NonceProof, *, audience: KeyId, challenge: bytes) -> Authenticated:
    """Check an answer to the challenge that was just sent.

    Raises:
        SignatureError: It does not answer this challenge of this audience.
    """
    if min(len(challenge), len(proof.own_nonce)) < MIN_NONCE:
        raise SignatureError("an answer without a random number of its own", code="WEAK_NONCE")
    verify_signature(Kind.AUTHENTICATION, _nonce_body(proof.own_nonce, challenge, audience), proof.signature, proof.key)
    return Authenticated(proof.key, _PROOF)


def _nonce_body(own_nonce: bytes, challenge: bytes, audience: KeyId) -> bytes:
    return encode((b"nonces", own_nonce, challenge, audience))
