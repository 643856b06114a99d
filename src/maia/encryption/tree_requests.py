"""What a broker asks of a key manager: to join a type's key groups, to leave them, to count what it sealed.

    (signed (key-group-request (manager <key id>) (type <type id>) (stamp ms) <what>) <public key> <signature>)

    <what>:  (join <X25519 public key>)   (leave <label> …)   (use (<label> <number> <count>) …)

Rules kept here:

- a request is meant for one manager and about one type, and is signed by the broker itself, whatever carries it;
- it has a stamp. The manager takes only a fresh one, later than the last of this broker, or the very same again;
- a join brings a key made for it alone: what the manager seals to it opens for whoever asked, and for nobody later.

Who signed a request has no right by that; see `maia.kernel.admit_broker`.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.encryption.keyring import KEY_LENGTH
from maia.errors import EncodingError, UsageError, VerificationError
from maia.events import TypeId
from maia.principals import SIGNATURE_LENGTH, KeyId, Kind, PublicKey, Signer, public_key, verify_signature

MAX_REQUEST = 1 << 20
REQUEST_LIMITS = SexpLimits(max_bytes=MAX_REQUEST, max_depth=5, max_atom=MAX_REQUEST)
_DIGITS = 16
_ID_LENGTH = 32
_MAX_LABEL = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroups:
    """Join all groups of the type that the evidence opens, with a key made for this."""

    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroups:
    """Leave groups of the type, all of them when none is named."""

    labels: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountUse:
    """Tell how many blocks were sealed so far: by label and number of the epoch."""

    uses: tuple[tuple[bytes, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRequest:
    """One request. Nothing about it was checked."""

    manager: KeyId
    type_id: TypeId
    stamp: int
    what: JoinGroups | LeaveGroups | CountUse

    def encoded(self) -> bytes:
        """Write the body that is signed."""
        return encode(
            (
                b"key-group-request",
                (b"manager", self.manager),
                (b"type", self.type_id),
                (b"stamp", b"%d" % self.stamp),
                _write(self.what),
            )
        )


class _Proof:
    """Held by `verify_group_request` alone."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class VerifiedGroupRequest:
    """A request that its sender signed exactly so, for this manager."""

    request: GroupRequest
    sender: PublicKey
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_group_request`."""
        # INVARIANT: a VerifiedGroupRequest's signature was verified in this process.
        if _proof is not _PROOF:
            raise UsageError("only verify_group_request makes a VerifiedGroupRequest")


def sign_group_request(request: GroupRequest, signer: Signer) -> bytes:
    """Sign a request as the broker it is about.

    >>> from maia.principals import KeySigner
    >>> broker, manager = KeySigner(bytes(32)), KeySigner(bytes([1]) * 32).public_key.key_id
    >>> leave = GroupRequest(manager=manager, type_id=TypeId(bytes(32)), stamp=100, what=LeaveGroups(labels=(b"3265",)))
    >>> verify_group_request(sign_group_request(leave, broker), manager).request == leave
    True
    """
    body = request.encoded()
    return encode((b"signed", body, signer.public_key.raw, signer.sign(Kind.REQUEST, body)))


def verify_group_request(data: bytes, manager: KeyId) -> VerifiedGroupRequest:
    """Read a request and check who signed it and for whom. Its freshness is the manager's question.

    Raises:
        EncodingError: The bytes are no request, or not in their one spelling.
        KeyFormatError: Its key is refused.
        SignatureError: The signature does not verify.
        VerificationError: It is meant for another manager: ``WRONG_AUDIENCE``.

    >>> verify_group_request(b"(6:signed)", KeyId(bytes(32)))
    Traceback (most recent call last):
    ...
    maia.errors.EncodingError: [GROUP_REQUEST_SHAPE] not a request to a key manager
    """
    match parse_canonical(data, limits=REQUEST_LIMITS):
        case (b"signed", bytes(body), bytes(key), bytes(signature)) if len(signature) == SIGNATURE_LENGTH:
            sender = public_key(key)
        case _:
            raise _wrong()
    match parse_canonical(body, limits=REQUEST_LIMITS):
        case (
            b"key-group-request",
            (b"manager", bytes(meant)),
            (b"type", bytes(type_id)),
            (b"stamp", bytes(stamp)),
            what,
        ) if len(meant) == len(type_id) == _ID_LENGTH:
            request = GroupRequest(
                manager=KeyId(meant), type_id=TypeId(type_id), stamp=_number(stamp), what=_read(what)
            )
        case _:
            raise _wrong()
    verify_signature(Kind.REQUEST, body, signature, sender)
    if request.manager != manager:
        raise VerificationError("the request is meant for another key manager", code="WRONG_AUDIENCE")
    return VerifiedGroupRequest(request, sender, _PROOF)


def new_join_key() -> bytes:
    """Make the private key of one join; it is kept until the answer was opened, and erased then.

    >>> len(join_public_key(new_join_key()))
    32
    """
    return X25519PrivateKey.generate().private_bytes_raw()


def join_public_key(private: bytes) -> bytes:
    """Return the public half, which the request carries.

    >>> join_public_key(bytes(31) + b"1").hex()[:8]
    '7d6fcfa6'
    """
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def _write(what: JoinGroups | LeaveGroups | CountUse) -> Sexp:
    if isinstance(what, JoinGroups):
        return (b"join", what.key)
    if isinstance(what, LeaveGroups):
        return (b"leave", *what.labels)
    return (b"use", *((label, b"%d" % number, b"%d" % count) for label, number, count in what.uses))


def _read(item: Sexp) -> JoinGroups | LeaveGroups | CountUse:
    match item:
        case (b"join", bytes(key)) if len(key) == KEY_LENGTH:
            return JoinGroups(key=key)
        case (b"leave", *labels):
            return LeaveGroups(labels=tuple(_label(label) for label in labels))
        case (b"use", *uses):
            return CountUse(uses=tuple(_use(use) for use in uses))
        case _:
            raise _wrong()


def _use(item: Sexp) -> tuple[bytes, int, int]:
    match item:
        case (label, bytes(number), bytes(count)):
            return _label(label), _number(number), _number(count)
        case _:
            raise _wrong()


def _label(item: Sexp) -> bytes:
    if not isinstance(item, bytes) or not 0 < len(item) <= _MAX_LABEL:
        raise _wrong()
    return item


def _number(text: bytes) -> int:
    if not text.isdigit() or len(text) > _DIGITS or (text[0] == 48 and len(text) > 1):
        raise _wrong()
    return int(text)


def _wrong() -> EncodingError:
    return EncodingError("not a request to a key manager", code="GROUP_REQUEST_SHAPE")
