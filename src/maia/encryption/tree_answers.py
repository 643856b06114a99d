"""What a key manager answers to a join: a place in each group, for the one who asked.

    (signed (key-group-answer (member <key id>) (key <X25519 public key>)
             (places (<type> <label> <number> <sealed> <welcome>) …)) <public key> <signature>)

Rules kept here:

- ``sealed`` is the key that the member shares with the manager for this membership, sealed (HPKE, RFC 9180, with
  X25519, HKDF-SHA-256 and AES-256-GCM) to the key of the request, and bound to group, member and manager;
- ``welcome`` is the current epoch's key for one who was authorised when it began; it is empty where an epoch was begun
  for the newcomer, whose message is in the log, as all later ones are;
- the manager signs the whole, and the key of the request is in it, so an answer fits one request.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.encryption.keyring import KEY_LENGTH, KeyGroupId
from maia.encryption.tree_requests import join_public_key
from maia.encryption.welcomes import Welcome, open_welcome, parse_welcome
from maia.errors import EncodingError, SealError, SignatureError, UsageError, VerificationError
from maia.events import TypeId
from maia.principals import SIGNATURE_LENGTH, KeyId, Kind, PublicKey, Signer, public_key, verify_signature

ANSWER_LIMITS = SexpLimits(max_bytes=8 << 20, max_depth=5, max_atom=8 << 20)
_DIGITS = 16
_ID_LENGTH = 32
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlace:
    """A place in one group, as it travels. ``number`` is the newest epoch at the time of the answer."""

    group: KeyGroupId
    number: int
    sealed: bytes
    welcome: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPlace:
    """A place in one group, opened. Shows no key.

    Attributes:
        group: Which group.
        number: Its newest epoch at the time of the answer.
        individual: The key shared with the manager for this membership.
        welcome: The current epoch's key, wrapped under ``individual``, when it was given along; it opens.
    """

    group: KeyGroupId
    number: int
    individual: bytes
    welcome: Welcome | None

    def __repr__(self) -> str:
        """Name the place, never show the key."""
        return f"OpenedPlace(group={self.group!r}, number={self.number})"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: keys never travel in a pickle."""
        raise TypeError("a place in a key group cannot be pickled")


def seal_place(individual: bytes, join_key: bytes, *, group: KeyGroupId, member: KeyId, manager: PublicKey) -> bytes:
    """Seal the key of one membership to the key of a join.

    Raises:
        UsageError: The key of the join is no usable point.

    >>> from maia.principals import KeySigner
    >>> manager, group = KeySigner(bytes([1]) * 32).public_key, KeyGroupId(TypeId(bytes(32)), b"3265")
    >>> seal_place(b"I" * 32, bytes(32), group=group, member=KeyId(bytes(32)), manager=manager)
    Traceback (most recent call last):
    ...
    maia.errors.UsageError: [JOIN_KEY] the key of the join cannot be used
    """
    try:
        key = X25519PublicKey.from_public_bytes(join_key)
        return _SUITE.encrypt(individual, key, info=_info(group, member, manager))
    except ValueError as error:
        raise UsageError("the key of the join cannot be used", code="JOIN_KEY") from error


def sign_join_answer(places: Iterable[GroupPlace], join_key: bytes, *, member: KeyId, signer: Signer) -> bytes:
    """Write and sign an answer.

    >>> from maia.principals import KeySigner
    >>> manager, broker = KeySigner(bytes([1]) * 32), KeySigner(bytes(32)).public_key.key_id
    >>> private, group = bytes(31) + b"1", KeyGroupId(TypeId(bytes(32)), b"3265")
    >>> sealed = seal_place(
    ...     b"I" * 32, join_public_key(private), group=group, member=broker, manager=manager.public_key)
    >>> answer = sign_join_answer(
    ...     [GroupPlace(group=group, number=7, sealed=sealed)], join_public_key(private), member=broker, signer=manager)
    >>> [(place.group.label, place.number) for place in open_join_answer(
    ...     answer, private, member=broker, manager=manager.public_key)]
    [(b'3265', 7)]
    """
    items: list[Sexp] = [
        (place.group.type_id, place.group.label, b"%d" % place.number, place.sealed, place.welcome) for place in places
    ]
    body = encode((b"key-group-answer", (b"member", member), (b"key", join_key), (b"places", *items)))
    return encode((b"signed", body, signer.public_key.raw, signer.sign(Kind.REKEY, body)))


def open_join_answer(data: bytes, private: bytes, *, member: KeyId, manager: PublicKey) -> tuple[OpenedPlace, ...]:
    """Check who wrote an answer, that it answers the join of this key, and open it.

    Args:
        data: The answer.
        private: The private key of the join.
        member: Who asked.
        manager: Who was asked.

    Raises:
        EncodingError: The bytes are no answer.
        SignatureError: The manager did not sign exactly this.
        VerificationError: It answers another request: ``WRONG_ANSWER``.
        SealError: A place does not open.

    >>> from maia.principals import KeySigner
    >>> open_join_answer(b"(6:signed)", bytes(32), member=KeyId(bytes(32)), manager=KeySigner(bytes(32)).public_key)
    Traceback (most recent call last):
    ...
    maia.errors.EncodingError: [GROUP_ANSWER_SHAPE] not the answer of a key manager
    """
    match parse_canonical(data, limits=ANSWER_LIMITS):
        case (b"signed", bytes(body), bytes(key), bytes(signature)) if len(signature) == SIGNATURE_LENGTH:
            if public_key(key) != manager:
                raise SignatureError("an answer that the key manager did not sign", code="GROUP_ANSWER_SIGNER")
            verify_signature(Kind.REKEY, body, signature, manager)
        case _:
            raise _wrong()
    match parse_canonical(body, limits=ANSWER_LIMITS):
        case (b"key-group-answer", (b"member", bytes(name)), (b"key", bytes(join_key)), (b"places", *places)):
            if name != member or join_key != join_public_key(private):
                raise VerificationError("the answer to another request", code="WRONG_ANSWER")
            return tuple(_open(_place(item), private, member, manager) for item in places)
        case _:
            raise _wrong()


def groups_answered(data: bytes) -> tuple[KeyGroupId, ...]:
    """List the groups in which an answer gives places. Nothing is checked, and nothing in it that is sealed is opened.

    Raises:
        EncodingError: The bytes are no answer.
    """
    match parse_canonical(data, limits=ANSWER_LIMITS):
        case (b"signed", bytes(body), bytes(), bytes()):
            match parse_canonical(body, limits=ANSWER_LIMITS):
                case (b"key-group-answer", _, _, (b"places", *places)):
                    return tuple(_place(item).group for item in places)
    raise _wrong()


def _place(item: Sexp) -> GroupPlace:
    match item:
        case (bytes(type_id), bytes(label), bytes(number), bytes(sealed), bytes(welcome)) if (
            len(type_id) == _ID_LENGTH and label and number.isdigit() and len(number) <= _DIGITS
        ):
            group = KeyGroupId(TypeId(type_id), label)
            return GroupPlace(group=group, number=int(number), sealed=sealed, welcome=welcome)
        case _:
            raise _wrong()


def _open(place: GroupPlace, private: bytes, member: KeyId, manager: PublicKey) -> OpenedPlace:
    try:
        individual = _SUITE.decrypt(
            place.sealed, X25519PrivateKey.from_private_bytes(private), info=_info(place.group, member, manager)
        )
    except (InvalidTag, ValueError) as error:
        raise SealError("the place in the key group cannot be opened") from error
    if len(individual) != KEY_LENGTH:
        raise SealError("the place in the key group cannot be opened")
    welcome = parse_welcome(place.welcome) if place.welcome else None
    if welcome is not None:
        if welcome.group != place.group or welcome.member != member:
            raise VerificationError("the answer to another request", code="WRONG_ANSWER")
        open_welcome(welcome, individual, manager)
    return OpenedPlace(group=place.group, number=place.number, individual=individual, welcome=welcome)


def _info(group: KeyGroupId, member: KeyId, manager: PublicKey) -> bytes:
    return encode((b"maia/1 key group place", group.type_id, group.label, member, manager.raw))


def _wrong() -> EncodingError:
    return EncodingError("not the answer of a key manager", code="GROUP_ANSWER_SHAPE")
