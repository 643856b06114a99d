"""Who a certificate may speak of: keys, key hashes, names, thresholds and object hashes.

Rules kept here:

- a hash is SHA-256 of 32 octets, nothing weaker and nothing shorter;
- a name starts at a key (or its hash), whose namespace it lives in, and has 1 to `MAX_NAME_PARTS` non-empty parts;
- a threshold has strict decimal integers ``1 <= k <= n``, ``n`` equal to the number of members, and nests at most
  `MAX_THRESHOLD_DEPTH` deep with at most `MAX_THRESHOLD_LEAVES` leaves. Equal members are allowed and never count
  twice: counting distinct keys is the verifier's work, after names are resolved.
"""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass
from typing import TypeAlias

from maia.encoding import Sexp, encode
from maia.errors import EncodingError, KeyFormatError
from maia.principals.keys import ALGORITHM, KeyId, PublicKey, fingerprint, public_key

RESERVED_NAMES = frozenset((
    "access-control", "acs", "broker", "brokers", "client", "clients", "domain", "domains", "key-manager", "lists",
    "log", "network", "networks", "owner", "self", "worker", "workers",
))  # fmt: skip
"""What names of a domain's namespace mean to Maia; nobody is given one of them by chance or on request."""

MAX_NAME_PARTS = 16
MAX_NAME_OCTETS = 256
MAX_THRESHOLD_DEPTH = 8
MAX_THRESHOLD_LEAVES = 64
_HASH_LENGTH = 32
_SHA256 = b"sha256"


@dataclass(frozen=True, slots=True)
class KeyHash:
    """A key known by its hash alone."""

    key_id: KeyId

    def __post_init__(self) -> None:
        """Refuse anything but a whole SHA-256."""
        if len(self.key_id) != _HASH_LENGTH:
            raise KeyFormatError("a key hash is a whole SHA-256", code="HASH_LENGTH")

    @property
    def fingerprint(self) -> str:
        """A short text for people; equal to that of the key."""
        return fingerprint(self.key_id)

    def to_sexp(self) -> Sexp:
        """Write ``(hash sha256 <octets>)``."""
        return (b"hash", _SHA256, self.key_id)


@dataclass(frozen=True, slots=True)
class ObjectHash:
    """A thing that is no key: a document, a piece of code. It can be a subject, never act."""

    digest: bytes

    def __post_init__(self) -> None:
        """Refuse anything but a whole SHA-256."""
        if len(self.digest) != _HASH_LENGTH:
            raise KeyFormatError("an object hash is a whole SHA-256", code="HASH_LENGTH")

    def to_sexp(self) -> Sexp:
        """Write ``(object-hash (hash sha256 <octets>))``."""
        return (b"object-hash", (b"hash", _SHA256, self.digest))


@dataclass(frozen=True, slots=True)
class Name:
    """A local name, or a chain of them: ``[Met, brokers, london]`` is what Met's brokers call london."""

    base: PublicKey | KeyHash
    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse empty, overlong and unprintable parts."""
        if not 1 <= len(self.parts) <= MAX_NAME_PARTS:
            raise EncodingError(f"a name has 1 to {MAX_NAME_PARTS} parts, not {len(self.parts)}", code="NAME_LENGTH")
        for part in self.parts:
            check_name_part(part)

    def to_sexp(self) -> Sexp:
        """Write ``(name <key> <part> …)``."""
        return (b"name", self.base.to_sexp(), *(part.encode() for part in self.parts))


@dataclass(frozen=True, slots=True)
class Threshold:
    """``k`` of these members together."""

    k: int
    members: tuple[Principal, ...]

    def __post_init__(self) -> None:
        """Refuse a threshold that anybody or nobody can meet."""
        if type(self.k) is not int or not 1 <= self.k <= len(self.members):
            raise EncodingError(f"threshold of {self.k!r} among {len(self.members)} members", code="THRESHOLD_RANGE")
        if any(isinstance(member, ObjectHash) for member in self.members):
            raise EncodingError("an object hash cannot be a member of a threshold", code="THRESHOLD_MEMBER")
        if threshold_depth(self) > MAX_THRESHOLD_DEPTH:
            raise EncodingError(f"thresholds nested deeper than {MAX_THRESHOLD_DEPTH}", code="THRESHOLD_RANGE")
        if sum(1 for _ in threshold_leaves(self)) > MAX_THRESHOLD_LEAVES:
            raise EncodingError(f"threshold with more than {MAX_THRESHOLD_LEAVES} leaves", code="THRESHOLD_RANGE")

    def to_sexp(self) -> Sexp:
        """Write ``(k-of-n "<k>" "<n>" <member> …)``."""
        count = (b"%d" % self.k, b"%d" % len(self.members))
        return (b"k-of-n", *count, *(member.to_sexp() for member in self.members))


Principal: TypeAlias = "PublicKey | KeyHash | Name | Threshold"
Subject: TypeAlias = "Principal | ObjectHash"


def threshold_leaves(threshold: Threshold) -> list[PublicKey | KeyHash | Name]:
    """List the members that are no thresholds, in order, with repetitions."""
    leaves: list[PublicKey | KeyHash | Name] = []
    stack: list[Principal] = [threshold]
    while stack:
        member = stack.pop()
        if isinstance(member, Threshold):
            stack.extend(reversed(member.members))
        else:
            leaves.append(member)
    return leaves


def threshold_depth(threshold: Threshold) -> int:
    """Count the levels of nesting; a flat threshold has depth 1."""
    inner = [threshold_depth(member) for member in threshold.members if isinstance(member, Threshold)]
    return 1 + max(inner, default=0)


def principal_id(principal: Principal) -> KeyId:
    """Name a principal by one hash: a key and its hash give the same, whatever else hashes its expression.

    >>> key = public_key(bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"))
    >>> principal_id(key) == principal_id(KeyHash(key.key_id))
    True
    """
    if isinstance(principal, (PublicKey, KeyHash)):
        return principal.key_id
    return KeyId(hashlib.sha256(encode(_with_hashes(principal).to_sexp())).digest())


def _with_hashes(principal: Principal) -> Principal:
    """Replace keys by their hashes so that both spellings of a principal give one identity."""
    if isinstance(principal, PublicKey):
        return KeyHash(principal.key_id)
    if isinstance(principal, Name):
        return Name(KeyHash(principal.base.key_id), principal.parts)
    if isinstance(principal, Threshold):
        return Threshold(principal.k, tuple(_with_hashes(member) for member in principal.members))
    return principal


def parse_principal(expression: Sexp, *, depth: int = MAX_THRESHOLD_DEPTH) -> Principal:
    """Read a key, a key hash, a name or a threshold.

    Raises:
        EncodingError: The expression is none of these.
        KeyFormatError: A key or hash inside it is refused.
    """
    match expression:
        case (b"public-key", (algorithm, bytes() as raw)) if algorithm == ALGORITHM:
            return public_key(raw)
        case (b"hash", b"sha256", bytes() as digest):
            return KeyHash(KeyId(digest))
        case (b"hash", *_):
            raise KeyFormatError("a key hash must be sha256", code="HASH_ALGORITHM")
        case (b"name", base, *parts) if parts:
            return _parse_name(base, parts)
        case (b"k-of-n", bytes() as k, bytes() as n, *members) if depth > 0:
            read = tuple(parse_principal(member, depth=depth - 1) for member in members)
            if _strict_integer(n) != len(read):
                raise EncodingError("threshold whose n differs from its members", code="THRESHOLD_RANGE")
            return Threshold(_strict_integer(k), read)
        case _:
            raise EncodingError("expected a key, a hash, a name or a threshold", code="PRINCIPAL_SHAPE")


def parse_subject(expression: Sexp) -> Subject:
    """Read what a certificate may be about: a principal, or the hash of an object."""
    match expression:
        case (b"object-hash", (b"hash", b"sha256", bytes() as digest)):
            return ObjectHash(digest)
        case _:
            return parse_principal(expression)


def check_name_part(part: str) -> None:
    """Refuse a name part that is empty, overlong, or holds control characters."""
    if not part or len(part.encode("utf-8", "surrogatepass")) > MAX_NAME_OCTETS:
        raise EncodingError(f"a name part has 1 to {MAX_NAME_OCTETS} octets", code="NAME_LENGTH")
    if any(ord(character) < 32 or 0xD800 <= ord(character) <= 0xDFFF for character in part):
        raise EncodingError("a name part holds a control character", code="NAME_CHARACTER")


def encode_text(text: str, what: str) -> bytes:
    """Write a string as UTF-8, or say what cannot be written."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise EncodingError(f"{what} is not UTF-8", code="NOT_UTF8") from error


def decode_text(octets: Sexp, what: str) -> str:
    """Read a UTF-8 string from an expression, or say what was expected."""
    if not isinstance(octets, bytes):
        raise EncodingError(f"expected a string for {what}", code="EXPECTED_STRING")
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError as error:
        raise EncodingError(f"{what} is not UTF-8", code="NOT_UTF8") from error


def _parse_name(base: Sexp, parts: list[Sexp]) -> Name:
    root = parse_principal(base, depth=0)
    if not isinstance(root, (PublicKey, KeyHash)):
        raise EncodingError("a name starts at a key", code="NAME_BASE")
    return Name(root, tuple(decode_text(part, "a name part") for part in parts))


def _strict_integer(text: bytes) -> int:
    """Read a decimal integer with exactly one spelling."""
    if not text.isdigit() or len(text) > 4 or (text[0] == 48 and len(text) > 1):
        raise EncodingError("threshold with a number that is not a plain decimal", code="THRESHOLD_RANGE")
    return int(text)


def is_reserved_name(name: str) -> bool:
    """Tell whether a name means something to Maia, in whatever case and dress it is written.

    >>> is_reserved_name("BROKERS"), is_reserved_name("bro\u212aers"), is_reserved_name("smith")
    (True, True, False)
    """
    return unicodedata.normalize("NFKC", name).casefold().replace("_", "-") in RESERVED_NAMES
