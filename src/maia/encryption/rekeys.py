"""Rekey messages: everything that changes with one epoch, in one signed object.

    (signed (rekey (group <type> <label>) (number n) (start ms) (previous <digest>) (salt <16>) (check <32>) (height h)
             (placed (<slot> <member>) …) (vacant (<level> <index>) …) (keys (<kind> <level> <index> <48>) …))
            <public key> <signature>)

Rules kept here:

- one message is one epoch: a member that read all of it has the epoch, whoever did not stays in the one before (T43);
- numbers count the epochs of a group and never repeat; ``previous`` is the digest of the message before, so two
  histories cannot be mixed;
- places and keys are in order and without repetition; there is one spelling of a message;
- `verify_rekey` makes a `VerifiedRekey`, and only that is ever applied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from itertools import pairwise

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.encryption.keyring import KEY_LENGTH, KeyGroupId
from maia.encryption.tree_keys import MAX_HEIGHT, TreeNode, WrapKind
from maia.errors import EncodingError, SignatureError, UsageError
from maia.events import TypeId
from maia.principals import SIGNATURE_LENGTH, Kind, PublicKey, Signer, public_key, verify_signature

REKEY_LIMITS = SexpLimits(max_bytes=64 << 20, max_depth=6, max_atom=1024)
SALT_LENGTH = 16
WRAPPED_LENGTH = KEY_LENGTH + 16
MAX_NAME = 256
_DIGITS = 16
_KINDS = {kind.value: kind for kind in WrapKind}


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """One wrapped key and the node it is about."""

    kind: WrapKind
    node: TreeNode
    sealed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekey:
    """What one epoch changes. Holds no key in the clear."""

    group: KeyGroupId
    number: int
    start: int
    previous: bytes
    salt: bytes
    check: bytes
    height: int
    placed: tuple[tuple[int, bytes], ...] = ()
    vacant: tuple[TreeNode, ...] = ()
    keys: tuple[WrappedKey, ...] = ()

    def encoded(self) -> bytes:
        """Write the body that is signed."""
        return encode(
            (
                b"rekey",
                (b"group", self.group.type_id, self.group.label),
                (b"number", b"%d" % self.number),
                (b"start", b"%d" % self.start),
                (b"previous", self.previous),
                (b"salt", self.salt),
                (b"check", self.check),
                (b"height", b"%d" % self.height),
                (b"placed", *((b"%d" % slot, member) for slot, member in self.placed)),
                (b"vacant", *((b"%d" % node.level, b"%d" % node.index) for node in self.vacant)),
                (b"keys", *((k.kind.value, b"%d" % k.node.level, b"%d" % k.node.index, k.sealed) for k in self.keys)),
            )
        )


@dataclass(frozen=True, slots=True)
class RekeyMessage:
    """A rekey as it travels. Nothing about it was checked."""

    rekey: Rekey
    signer: PublicKey
    signature: bytes

    def to_bytes(self) -> bytes:
        """Write the message."""
        return encode((b"signed", self.rekey.encoded(), self.signer.raw, self.signature))

    @property
    def digest(self) -> bytes:
        """What the next message calls the previous one."""
        return hashlib.sha256(self.rekey.encoded()).digest()


class _Proof:
    """Held by `verify_rekey` alone."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class VerifiedRekey:
    """A rekey that the group's manager signed exactly so."""

    message: RekeyMessage
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_rekey`."""
        # INVARIANT: a VerifiedRekey's signature was verified in this process.
        if _proof is not _PROOF:
            raise UsageError("only verify_rekey makes a VerifiedRekey")

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: a message travels as octets, and whoever reads it knows whose signature it must bear."""
        raise TypeError("a verified rekey message cannot be pickled")

    @property
    def rekey(self) -> Rekey:
        """The content, now known to be the manager's."""
        return self.message.rekey


def rekey_topic(group: KeyGroupId) -> bytes:
    """Name the topic of a log's notices under which a group's messages stand.

    >>> rekey_topic(KeyGroupId(TypeId(bytes([65]) * 32), b"3265"))[-6:]
    b'AA3265'
    """
    return bytes(group.type_id) + group.label


def sign_rekey(rekey: Rekey, signer: Signer) -> RekeyMessage:
    """Sign a rekey as the group's manager.

    >>> from maia.principals import KeySigner
    >>> manager = KeySigner(bytes(32))
    >>> group = KeyGroupId(TypeId(bytes(32)), b"3265")
    >>> rekey = Rekey(group=group, number=1, start=100, previous=bytes(32), salt=bytes(16), check=bytes(32), height=0)
    >>> verify_rekey(parse_rekey(sign_rekey(rekey, manager).to_bytes()), manager.public_key).rekey == rekey
    True
    """
    return RekeyMessage(rekey, signer.public_key, signer.sign(Kind.REKEY, rekey.encoded()))


def verify_rekey(message: RekeyMessage, manager: PublicKey) -> VerifiedRekey:
    """Check that the group's manager signed exactly this.

    Raises:
        SignatureError: Somebody else signed, or something was altered.

    >>> from maia.principals import KeySigner
    >>> manager, eve = KeySigner(bytes(32)), KeySigner(bytes([1]) * 32)
    >>> group = KeyGroupId(TypeId(bytes(32)), b"3265")
    >>> rekey = Rekey(group=group, number=1, start=100, previous=bytes(32), salt=bytes(16), check=bytes(32), height=0)
    >>> verify_rekey(sign_rekey(rekey, eve), manager.public_key)
    Traceback (most recent call last):
    ...
    maia.errors.SignatureError: [REKEY_SIGNER] a rekey message that the group's manager did not sign
    """
    if message.signer != manager:
        raise SignatureError("a rekey message that the group's manager did not sign", code="REKEY_SIGNER")
    verify_signature(Kind.REKEY, message.rekey.encoded(), message.signature, message.signer)
    return VerifiedRekey(message, _PROOF)


def parse_rekey(data: bytes) -> RekeyMessage:
    """Read a rekey message, believing nothing.

    Raises:
        EncodingError: The bytes are no rekey message, or not in their one spelling.
        KeyFormatError: Its key is refused.

    >>> parse_rekey(b"(6:signed)")
    Traceback (most recent call last):
    ...
    maia.errors.EncodingError: [REKEY_SHAPE] not a rekey message
    """
    match parse_canonical(data, limits=REKEY_OUTER):
        case (b"signed", bytes(body), bytes(key), bytes(signature)) if len(signature) == SIGNATURE_LENGTH:
            return RekeyMessage(_rekey(parse_canonical(body, limits=REKEY_LIMITS)), public_key(key), signature)
        case _:
            raise _wrong()


REKEY_OUTER = SexpLimits(max_bytes=(64 << 20) + 1024, max_depth=2, max_atom=64 << 20)


def _rekey(body: Sexp) -> Rekey:
    match body:
        case (
            b"rekey",
            (b"group", bytes(type_id), bytes(label)),
            (b"number", bytes(number)),
            (b"start", bytes(start)),
            (b"previous", bytes(previous)),
            (b"salt", bytes(salt)),
            (b"check", bytes(check)),
            (b"height", bytes(height)),
            (b"placed", *placed),
            (b"vacant", *vacant),
            (b"keys", *keys),
        ):
            pass
        case _:
            raise _wrong()
    if (len(type_id), len(previous), len(salt), len(check)) != (32, 32, SALT_LENGTH, 32) or not label:
        raise _wrong()
    read = Rekey(
        group=KeyGroupId(TypeId(type_id), label),
        number=_number(number),
        start=_number(start),
        previous=previous,
        salt=salt,
        check=check,
        height=_number(height),
        placed=tuple(_place(item) for item in placed),
        vacant=tuple(_vacant(item) for item in vacant),
        keys=tuple(_wrapped(item) for item in keys),
    )
    if read.height > MAX_HEIGHT:
        raise _wrong()
    _increasing([slot for slot, _ in read.placed])
    _increasing(read.vacant)
    _increasing([(key.kind.value, key.node) for key in read.keys])
    if len({member for _, member in read.placed}) != len(read.placed):
        raise _wrong()
    return read


def _place(item: Sexp) -> tuple[int, bytes]:
    match item:
        case (bytes(slot), bytes(member)) if 0 < len(member) <= MAX_NAME:
            return _node(b"0", slot).index, member
        case _:
            raise _wrong()


def _vacant(item: Sexp) -> TreeNode:
    match item:
        case (bytes(level), bytes(index)):
            return _node(level, index)
        case _:
            raise _wrong()


def _wrapped(item: Sexp) -> WrappedKey:
    match item:
        case (bytes(kind), bytes(level), bytes(index), bytes(sealed)) if (
            kind in _KINDS and len(sealed) == WRAPPED_LENGTH
        ):
            return WrappedKey(_KINDS[kind], _node(level, index), sealed)
        case _:
            raise _wrong()


def _node(level: bytes, index: bytes) -> TreeNode:
    node = TreeNode(_number(level), _number(index))
    if node.level > MAX_HEIGHT or node.index >> (MAX_HEIGHT - node.level):
        raise _wrong()
    return node


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _DIGITS or (text[0] == 48 and len(text) > 1):
        raise EncodingError("a rekey message with a number that is not a plain decimal", code="REKEY_SHAPE")
    return int(text)


def _increasing(items: Sequence[object]) -> None:
    if any(not first < second for first, second in pairwise(items)):  # type: ignore[operator]
        raise EncodingError("a rekey message whose parts are out of order", code="REKEY_ORDER")


def _wrong() -> EncodingError:
    return EncodingError("not a rekey message", code="REKEY_SHAPE")
