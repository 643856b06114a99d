"""Public keys: the only identities that take part in a decision.

Rules kept here:

- a key is Ed25519 and 32 octets long;
- its encoding is canonical: the y coordinate is below the field prime;
- it is none of the eight points of small order, under which one signature fits every message;
- a key that a person brings in (`PublicKey.import_`) must also be a point of the main subgroup.

The identity of a key is `key_id`, the SHA-256 of its canonical expression. A key and its hash therefore meet in the
same identity, whichever of the two a certificate happens to name.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import NewType

from nacl.bindings import crypto_core_ed25519_is_valid_point

from maia.encoding import Sexp, encode
from maia.errors import KeyFormatError

KeyId = NewType("KeyId", bytes)
"""SHA-256 over the canonical expression of a public key."""

_LENGTH = 32
_PRIME = 2**255 - 19
_Y_MASK = (1 << 255) - 1
# y coordinates of the points whose order divides 8; with either sign bit. Non-canonical spellings fail the prime test.
_SMALL_ORDER_Y = frozenset(
    (
        0,
        1,
        _PRIME - 1,
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
        0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
    )
)
ALGORITHM = b"ed25519"


class PublicKey:
    """An Ed25519 public key that passed Maia's tests.

    Instances are immutable, hashable, and equal when their octets are equal.
    """

    __slots__ = ("key_id", "raw")
    raw: bytes
    key_id: KeyId

    def __init__(self, raw: bytes) -> None:
        """Accept 32 octets that encode a usable point.

        Raises:
            KeyFormatError: The length is wrong, the encoding is not canonical, or the point has small order.
        """
        if len(raw) != _LENGTH:
            raise KeyFormatError(f"an ed25519 key has {_LENGTH} octets, not {len(raw)}", code="KEY_LENGTH")
        y = int.from_bytes(raw, "little") & _Y_MASK
        if y >= _PRIME:
            raise KeyFormatError("the key is not a canonical point", code="KEY_NOT_CANONICAL")
        # SECURITY: under these points one forged signature verifies for every message.
        if y in _SMALL_ORDER_Y:
            raise KeyFormatError("the key is a point of small order", code="KEY_SMALL_ORDER")
        object.__setattr__(self, "raw", bytes(raw))
        object.__setattr__(self, "key_id", KeyId(hashlib.sha256(encode(self.to_sexp())).digest()))

    @classmethod
    def import_(cls, raw: bytes) -> PublicKey:
        """Accept a key from outside after the full test of its point.

        Certificates are read with the quick tests alone: a key that is off the curve or off the main subgroup can sign
        nothing there. Where a key enters by hand, the slow test catches typing errors and crafted keys at once.
        """
        key = cls(raw)
        if not crypto_core_ed25519_is_valid_point(key.raw):
            raise KeyFormatError("the key is not a point of the main subgroup", code="KEY_NOT_ON_CURVE")
        return key

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a key never changes."""
        raise AttributeError(f"cannot set {name}: a public key is immutable")

    def __eq__(self, other: object) -> bool:
        """Compare by octets."""
        return isinstance(other, PublicKey) and self.raw == other.raw

    def __hash__(self) -> int:
        """Hash by octets."""
        return hash(self.raw)

    def __repr__(self) -> str:
        """Show the fingerprint, which is enough to tell keys apart."""
        return f"PublicKey({self.fingerprint})"

    def __reduce__(self) -> tuple[type[PublicKey], tuple[bytes]]:
        """Travel as octets and be tested again on arrival."""
        return (PublicKey, (self.raw,))

    @property
    def fingerprint(self) -> str:
        """A short text for people; decisions never use it."""
        return fingerprint(self.key_id)

    def to_sexp(self) -> Sexp:
        """Write ``(public-key (ed25519 <octets>))``."""
        return (b"public-key", (ALGORITHM, self.raw))


def fingerprint(key_id: KeyId) -> str:
    """Shorten a key identity to four readable groups (80 bits).

    >>> fingerprint(KeyId(bytes(32)))
    'aaaa-aaaa-aaaa-aaaa'
    """
    text = base64.b32encode(key_id[:10]).decode("ascii").lower()
    return "-".join(text[i : i + 4] for i in range(0, 16, 4))


@lru_cache(maxsize=65536)
def public_key(raw: bytes) -> PublicKey:
    """Return the key with these octets, made once per process."""
    return PublicKey(raw)
