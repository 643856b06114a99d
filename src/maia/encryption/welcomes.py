"""Welcomes: the current key alone, for a newcomer who was authorised when the epoch began (rule 16.04).

    (signed (welcome (group <type> <label>) (number n) (start ms) (member <name>) (salt <16>) (key <48>))
            <public key> <signature>)

A welcome opens only under the key that the newcomer shares with the manager, and holds no secret of the tree: who has
it can read this epoch and nothing before or after.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.encryption.epochs import EpochId
from maia.encryption.keyring import KeyGroupId
from maia.encryption.tree_keys import TreeNode, WrapKind, binding_of, group_context, unwrap, wrap
from maia.errors import EncodingError, SignatureError
from maia.events import TypeId
from maia.principals import SIGNATURE_LENGTH, Kind, PublicKey, Signer, public_key, verify_signature

WELCOME_LIMITS = SexpLimits(max_bytes=8192, max_depth=4, max_atom=4096)
_SALT = 16
_DIGITS = 16
_PLACE = TreeNode(255, 0)  # no node of any tree, so a welcome's wrapping key is nobody else's


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochKey:
    """One epoch's key of a group. Shows its number and start only."""

    number: int
    start: EpochId
    key: bytes

    def __repr__(self) -> str:
        """Name the epoch, never show the key."""
        return f"EpochKey(number={self.number}, start={self.start})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: keys never travel in a pickle."""
        raise TypeError("an epoch's key cannot be pickled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """A welcome as it travels. Nothing about it was checked."""

    group: KeyGroupId
    number: int
    start: int
    member: bytes
    salt: bytes
    sealed: bytes
    signer: PublicKey
    signature: bytes

    def body(self) -> bytes:
        """Write what is signed."""
        return _body(self.group, self.number, self.start, self.member, self.salt, self.sealed)

    def to_bytes(self) -> bytes:
        """Write the welcome."""
        return encode((b"signed", self.body(), self.signer.raw, self.signature))


def _body(group: KeyGroupId, number: int, start: int, member: bytes, salt: bytes, sealed: bytes) -> bytes:
    return encode(
        (
            b"welcome",
            (b"group", group.type_id, group.label),
            (b"number", b"%d" % number),
            (b"start", b"%d" % start),
            (b"member", member),
            (b"salt", salt),
            (b"key", sealed),
        )
    )


def make_welcome(
    group: KeyGroupId, member: bytes, individual: bytes, *, number: int, start: int, key: bytes, signer: Signer
) -> Welcome:
    """Wrap the current key for one newcomer and sign it."""
    salt = secrets.token_bytes(_SALT)
    sealed = wrap(individual, key, WrapKind.LEAF, _PLACE, binding_of(group_context(group), number, salt))
    signature = signer.sign(Kind.REKEY, _body(group, number, start, member, salt, sealed))
    return Welcome(
        group=group, number=number, start=start, member=member, salt=salt, sealed=sealed,
        signer=signer.public_key, signature=signature,
    )  # fmt: skip


def parse_welcome(data: bytes) -> Welcome:
    """Read a welcome, believing nothing.

    Raises:
        EncodingError: The bytes are no welcome.
        KeyFormatError: Its key is refused.

    >>> parse_welcome(b"(7:welcome)")
    Traceback (most recent call last):
    ...
    maia.errors.EncodingError: [WELCOME_SHAPE] not a welcome
    """
    match parse_canonical(data, limits=WELCOME_LIMITS):
        case (b"signed", bytes(body), bytes(signer), bytes(signature)) if len(signature) == SIGNATURE_LENGTH:
            pass
        case _:
            raise EncodingError("not a welcome", code="WELCOME_SHAPE")
    match parse_canonical(body, limits=WELCOME_LIMITS):
        case (
            b"welcome",
            (b"group", bytes(type_id), bytes(label)),
            (b"number", bytes(number)),
            (b"start", bytes(start)),
            (b"member", bytes(member)),
            (b"salt", bytes(salt)),
            (b"key", bytes(sealed)),
        ) if len(type_id) == 32 and label and member and len(salt) == _SALT:
            pass
        case _:
            raise EncodingError("not a welcome", code="WELCOME_SHAPE")
    read = Welcome(
        group=KeyGroupId(TypeId(type_id), label), number=_number(number), start=_number(start), member=member,
        salt=salt, sealed=sealed, signer=public_key(signer), signature=signature,
    )  # fmt: skip
    if read.body() != body:
        raise EncodingError("not a welcome", code="WELCOME_SHAPE")
    return read


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _DIGITS:
        raise EncodingError("not a welcome", code="WELCOME_SHAPE")
    return int(text)


def open_welcome(welcome: Welcome, individual: bytes, manager: PublicKey) -> EpochKey:
    """Check who wrote a welcome and open it.

    Raises:
        SignatureError: The group's manager did not sign exactly this.
        SealError: It is for somebody else.

    >>> from maia.principals import KeySigner
    >>> manager, group = KeySigner(bytes(32)), KeyGroupId(TypeId(bytes(32)), b"3265")
    >>> made = make_welcome(group, b"ann", b"A" * 32, number=7, start=100, key=b"K" * 32, signer=manager)
    >>> opened = open_welcome(parse_welcome(made.to_bytes()), b"A" * 32, manager.public_key)
    >>> opened, opened.key == b"K" * 32
    (EpochKey(number=7, start=100), True)
    """
    if welcome.signer != manager:
        raise SignatureError("a welcome that the group's manager did not sign", code="WELCOME_SIGNER")
    verify_signature(Kind.REKEY, welcome.body(), welcome.signature, manager)
    binding = binding_of(group_context(welcome.group), welcome.number, welcome.salt)
    key = unwrap(individual, welcome.sealed, WrapKind.LEAF, _PLACE, binding)
    return EpochKey(number=welcome.number, start=EpochId(welcome.start), key=key)
