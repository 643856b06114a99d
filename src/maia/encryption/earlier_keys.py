"""Keys of earlier epochs, sealed for a newcomer whom the owner of the events lets read what was before.

    ((<start> <key>) …)
    (earlier-keys <sealed> <signature of the key manager>)

The first is sealed (HPKE, as the places in key groups are) to the key of a join, and bound to group, member and
manager; the manager signs what was sealed, with all that it is bound to. Whoever knows the key of a join can seal to
it, so without that signature whoever carries a welcome could choose the keys of its receiver.

A place in a group opens what comes; this opens what was, as far as somebody who holds the keys gives them away. Who may
have them is not decided here: they are sealed for members of their group only.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.encryption.epochs import EpochId
from maia.encryption.keyring import KEY_LENGTH, KeyGroupId
from maia.errors import EncodingError, SealError, UsageError
from maia.principals import KeyId, Kind, PublicKey, Signer, verify_signature

MAX_EARLIER = 10_000
"""So many epochs of a group are handed over at most, the newest."""
_DIGITS = 16
_LIMITS = SexpLimits(max_bytes=4 << 20, max_depth=3, max_atom=64)
_SEALED = SexpLimits(max_bytes=5 << 20, max_depth=2, max_atom=5 << 20)
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


def seal_earlier_keys(
    keys: Sequence[tuple[EpochId, bytes]], join_key: bytes, *, group: KeyGroupId, member: KeyId, manager: Signer
) -> bytes:
    """Seal the keys of epochs to the key of a join, and sign that as their manager.

    >>> from maia.encryption import join_public_key
    >>> from maia.events import TypeId
    >>> from maia.principals import KeySigner
    >>> bound = {"group": KeyGroupId(TypeId(bytes(32)), b"1"), "member": KeyId(bytes(32))}
    >>> manager = KeySigner(bytes(32))
    >>> sealed = seal_earlier_keys([(EpochId(7), b"K" * 32)], join_public_key(b"p" * 32), manager=manager, **bound)
    >>> open_earlier_keys(sealed, b"p" * 32, manager=manager.public_key, **bound) == ((7, b"K" * 32),)
    True

    Raises:
        UsageError: The key of the join is no usable point.
    """
    plain = encode(tuple((b"%d" % start, key) for start, key in keys[-MAX_EARLIER:]))
    info = _info(group, member, manager.public_key)
    try:
        sealed = _SUITE.encrypt(plain, X25519PublicKey.from_public_bytes(join_key), info=info)
    except ValueError as error:
        raise UsageError("the key of the join cannot be used", code="JOIN_KEY") from error
    return encode((b"earlier-keys", sealed, manager.sign(Kind.EARLIER_KEYS, encode((info, sealed)))))


def open_earlier_keys(
    data: bytes, private: bytes, *, group: KeyGroupId, member: KeyId, manager: PublicKey
) -> tuple[tuple[EpochId, bytes], ...]:
    """Open the keys of epochs with the private key of a join.

    Raises:
        SealError: They are for another join, group or member.
        SignatureError: The manager did not sign them.
        EncodingError: They are no keys.
    """
    info = _info(group, member, manager)
    match parse_canonical(data, limits=_SEALED):
        case (b"earlier-keys", bytes(sealed), bytes(signature)):
            # SECURITY: only the manager of a group says what its keys were.
            verify_signature(Kind.EARLIER_KEYS, encode((info, sealed)), signature, manager)
        case _:
            raise _wrong()
    try:
        plain = _SUITE.decrypt(sealed, X25519PrivateKey.from_private_bytes(private), info=info)
    except (InvalidTag, ValueError) as error:
        raise SealError("the keys of earlier epochs cannot be opened") from error
    match parse_canonical(plain, limits=_LIMITS):
        case tuple(items):
            return tuple(_key(item) for item in items)
        case _:
            raise _wrong()


def _key(item: Sexp) -> tuple[EpochId, bytes]:
    match item:
        case (bytes(start), bytes(key)) if start.isdigit() and len(start) <= _DIGITS and len(key) == KEY_LENGTH:
            return EpochId(int(start)), key
        case _:
            raise _wrong()


def _info(group: KeyGroupId, member: KeyId, manager: PublicKey) -> bytes:
    return encode((b"maia/1 earlier keys", group.type_id, group.label, member, manager.raw))


def _wrong() -> EncodingError:
    return EncodingError("no keys of earlier epochs", code="EARLIER_KEYS_SHAPE")
