"""Signatures, and the separation of one kind of signed object from another.

Rules kept here:

- what is signed is the kind's prefix followed by the canonical bytes of the body, so an object of one kind never
  verifies as another;
- the signature names the key that made it; whether that key is the right one is the reader's question;
- libsodium verifies: it refuses S >= L (no second signature for one message) and points of small order.

`Signer` is the port: a key in memory today, a token or a hardware module tomorrow.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol, runtime_checkable

from nacl.bindings import crypto_sign, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError
from nacl.utils import random as random_octets

from maia.errors import KeyFormatError, SignatureError
from maia.principals.keys import PublicKey, public_key

SIGNATURE_LENGTH = 64
_SEED_LENGTH = 32


class Kind(Enum):
    """What a signature may be about. The value is the prefix that is signed along.

    Of a checkpoint and a cosignature it is how the texts begin that C2SP's notes have signed.
    """

    CERTIFICATE = b"maia/1 certificate\x00"
    STATEMENT = b"maia/1 statement\x00"
    EVENT_TYPE = b"maia/1 event-type\x00"
    PARCEL = b"maia/1 parcel\x00"
    REKEY = b"maia/1 rekey\x00"
    AUTHENTICATION = b"maia/1 authentication\x00"
    REQUEST = b"maia/1 request\x00"
    LANE_RECORD = b"maia/1 lane-record\x00"
    LANE_HEAD = b"maia/1 lane-head\x00"
    AUDIT_HEAD = b"maia/1 audit-head\x00"
    EVENT_NAME = b"maia/1 event-name\x00"
    PEER_INVITATION = b"maia/1 peer-invitation\x00"
    PEER_ANSWER = b"maia/1 peer-answer\x00"
    EARLIER_KEYS = b"maia/1 earlier-keys\x00"
    EMERGENCY = b"maia/1 emergency\x00"
    LABELLED_READ = b"maia/1 labelled-read\x00"
    WORK = b"maia/1 work\x00"
    CHECKPOINT = b"maia.audit/"
    COSIGNATURE = b"cosignature/v1\n"


@runtime_checkable
class Signer(Protocol):
    """Something that can sign with one key without showing it."""

    @property
    def public_key(self) -> PublicKey:
        """The key under which the signatures verify."""
        ...

    def sign(self, kind: Kind, body: bytes) -> bytes:
        """Return 64 octets that sign ``body`` as an object of this kind."""
        ...


class KeySigner:
    """A signer whose private key is in this process's memory."""

    __slots__ = ("_public", "_secret")

    def __init__(self, seed: bytes) -> None:
        """Derive the key pair from a 32-octet seed."""
        if len(seed) != _SEED_LENGTH:
            raise KeyFormatError(f"a private key has {_SEED_LENGTH} octets", code="KEY_LENGTH")
        public, self._secret = crypto_sign_seed_keypair(bytes(seed))
        self._public = public_key(public)

    @classmethod
    def generate(cls) -> KeySigner:
        """Make a fresh key from the system's random source."""
        return cls(random_octets(_SEED_LENGTH))

    @property
    def public_key(self) -> PublicKey:
        """The key under which the signatures verify."""
        return self._public

    def sign(self, kind: Kind, body: bytes) -> bytes:
        """Sign ``body`` as an object of this kind."""
        return bytes(crypto_sign(kind.value + body, self._secret)[:SIGNATURE_LENGTH])

    def export_seed(self) -> bytes:
        """Return the private seed. Only the sealing of key files asks for it."""
        return bytes(self._secret[:_SEED_LENGTH])

    def __repr__(self) -> str:
        """Show the public half only."""
        return f"KeySigner({self._public.fingerprint})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: a private key never travels in a pickle."""
        raise TypeError("a private key cannot be pickled")


def verify_signature(kind: Kind, body: bytes, signature: bytes, key: PublicKey) -> None:
    """Check a signature over ``body`` as an object of this kind.

    Raises:
        SignatureError: It does not verify. The message does not depend on why.
    """
    if len(signature) != SIGNATURE_LENGTH:
        raise SignatureError(f"signature of `{key.fingerprint}` does not verify")
    try:
        crypto_sign_open(signature + kind.value + body, key.raw)
    except (BadSignatureError, ValueError) as error:
        raise SignatureError(f"signature of `{key.fingerprint}` does not verify") from error
