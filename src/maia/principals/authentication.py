"""Proving that one holds a key: unilateral authentication after ISO 9798-3.

Two protocols, both signed with a prefix of their own:

- with a time stamp: ``(t_A, B, S_A(t_A, B))``. The verifier checks that the stamp is fresh, that it is meant itself,
  the signature, and that it has not seen the message before;
- with random numbers: B sends ``r_B``; A answers ``(r_A, S_A(r_A, r_B, B))``. A's own random number keeps A from
  signing something that B chose alone.

`Authenticated` is made here only, so a function that takes one knows that a key was proven.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import InitVar, dataclass
from datetime import UTC, datetime, timedelta

from maia.encoding import encode
from maia.errors import ExpiredError, SignatureError, UncheckedError, UsageError, VerificationError
from maia.principals.keys import KeyId, PublicKey
from maia.principals.signing import Kind, Signer, verify_signature
from maia.principals.times import check_aware

DEFAULT_WINDOW = timedelta(seconds=30)
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
class StampedProof:
    """The message of the protocol with a time stamp."""

    key: PublicKey
    stamp: datetime
    audience: KeyId
    signature: bytes

    def __post_init__(self) -> None:
        """Refuse a stamp without a time zone."""
        check_aware(self.stamp)


@dataclass(frozen=True, slots=True)
class NonceProof:
    """The answer of the protocol with random numbers."""

    key: PublicKey
    own_nonce: bytes
    signature: bytes


def prove_by_stamp(signer: Signer, *, audience: KeyId, at: datetime) -> StampedProof:
    """Prove one's key to one audience, now."""
    body = _stamped_body(at, audience)
    return StampedProof(signer.public_key, at, audience, signer.sign(Kind.AUTHENTICATION, body))


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


class StampChecker:
    """Checks stamped proofs for one audience, and remembers them while they are fresh."""

    def __init__(self, audience: KeyId, *, window: timedelta = DEFAULT_WINDOW, capacity: int = 100_000) -> None:
        """Serve one audience with a window of freshness on both sides of the clock."""
        self._audience = audience
        self._window = window
        self._capacity = capacity
        self._seen: OrderedDict[bytes, datetime] = OrderedDict()

    def check(self, proof: StampedProof, *, at: datetime) -> Authenticated:
        """Accept a proof that is fresh, meant for us, signed, and new.

        Raises:
            ExpiredError: The stamp lies outside the window.
            VerificationError: It is meant for another audience, or was used before.
            SignatureError: The signature does not verify.
            UncheckedError: Too many proofs arrived within one window to remember them all.
        """
        check_aware(at)
        if abs(at - proof.stamp) > self._window:
            raise ExpiredError("the proof is not fresh", code="STALE_PROOF")
        if proof.audience != self._audience:
            raise VerificationError("the proof is meant for another verifier", code="WRONG_AUDIENCE")
        body = _stamped_body(proof.stamp, proof.audience)
        verify_signature(Kind.AUTHENTICATION, body, proof.signature, proof.key)
        self._remember(hashlib.sha256(proof.key.raw + body).digest(), proof.stamp, at)
        return Authenticated(proof.key, _PROOF)

    def _remember(self, digest: bytes, stamp: datetime, at: datetime) -> None:
        for old in [seen for seen, when in self._seen.items() if at - when > self._window]:
            del self._seen[old]
        if digest in self._seen:
            raise VerificationError("the proof was used before", code="REPLAY")
        if len(self._seen) >= self._capacity:
            # SECURITY: forgetting one to make room would let it be replayed.
            raise UncheckedError("too many proofs within one window", code="LIMIT_EXCEEDED")
        self._seen[digest] = stamp


def _stamped_body(stamp: datetime, audience: KeyId) -> bytes:
    text = stamp.astimezone(UTC).isoformat(timespec="microseconds")
    return encode((b"stamped", text.encode(), audience))


def _nonce_body(own_nonce: bytes, challenge: bytes, audience: KeyId) -> bytes:
    return encode((b"nonces", own_nonce, challenge, audience))
