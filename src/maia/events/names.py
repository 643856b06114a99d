"""Names of event types: ``[owner, name, version]``. The owner opens a namespace that only it can fill.

Rules kept here:

- an owner is a key, the hash of one, or a threshold of them; a local name is no owner, since it can be re-bound;
- the readable part is hierarchical, ``uk.gov.pito.Numberplate``: 1 to `MAX_PARTS` parts joined by dots, none empty.
  ``*`` is left to patterns, ``/`` and ``@`` to ``owner/name@version``;
- `type_id` names a type over all its versions; nothing the machine does depends on the readable part alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NewType, TypeAlias

from maia.encoding import Sexp, encode
from maia.errors import MalformedError, UsageError
from maia.events.attributes import check_printable
from maia.events.versions import Version, parse_version
from maia.principals import (
    KeyHash,
    KeyId,
    Name,
    Principal,
    PublicKey,
    Threshold,
    decode_text,
    fingerprint,
    parse_principal,
    threshold_leaves,
)
from maia.principals import principal_id as identify

TypeId = NewType("TypeId", bytes)
"""SHA-256 over owner and readable name; equal for all versions of a type."""

Owner: TypeAlias = "PublicKey | KeyHash | Threshold"

MAX_PARTS = 32
_RESERVED = "*/@"
"""What no name holds: patterns and ``owner/name@version`` are written with it."""


@dataclass(frozen=True, slots=True)
class TypeName:
    """The full name of one version of a type."""

    owner: Owner
    name: str
    version: Version

    def __post_init__(self) -> None:
        """Refuse a name without an owner's key, or one that no pattern could tell apart."""
        check_owner(self.owner)
        check_hierarchical(self.name, "a type name")
        if not isinstance(self.version, Version):
            raise UsageError("the version of a type name is a Version")

    def __eq__(self, other: object) -> bool:
        """Compare by identity of the owner: a key and its hash open the same namespace."""
        return isinstance(other, TypeName) and self._key() == other._key()

    def __hash__(self) -> int:
        """Hash by identity of the owner."""
        return hash(self._key())

    def _key(self) -> tuple[KeyId, str, str]:
        return (self.owner_id, self.name, self.version.text)

    @property
    def owner_id(self) -> KeyId:
        """The identity of the owner."""
        return identify(self.owner)

    @property
    def type_id(self) -> TypeId:
        """The identity of the type over all versions."""
        return type_id(self.owner, self.name)

    def to_sexp(self) -> Sexp:
        """Write ``(name <owner> <name> <version>)``."""
        return (b"name", self.owner.to_sexp(), self.name.encode(), self.version.text.encode())

    def __str__(self) -> str:
        """Show the readable part, the version, and enough of the owner to tell two of them apart."""
        return f"{self.name} {self.version} [{fingerprint(self.owner_id)}]"


def type_id(owner: Principal, name: str) -> TypeId:
    """Name a type by one hash over its owner and readable name; the version takes no part.

    >>> from maia.principals import KeySigner
    >>> pito, evil = (KeySigner(bytes([n]) * 32).public_key for n in (1, 2))
    >>> type_id(pito, "Location") == type_id(KeyHash(pito.key_id), "Location")
    True
    >>> type_id(pito, "Location") == type_id(evil, "Location")
    False
    """
    return TypeId(hashlib.sha256(encode((b"event-type", identify(owner), name.encode()))).digest())


def parse_type_name(fields: tuple[Sexp, ...]) -> TypeName:
    """Read the inside of ``(name …)``.

    Raises:
        MalformedError: It is not owner, name and version.
    """
    match fields:
        case (owner, name, version):
            return TypeName(
                parse_owner(owner),
                decode_text(name, "a type name"),
                parse_version(decode_text(version, "a version")),
            )
        case _:
            raise MalformedError("a type name is owner, name and version", code="TYPE_NAME")


def parse_owner(expression: Sexp) -> Owner:
    """Read who owns a type."""
    return check_owner(parse_principal(expression))


def check_owner(owner: object) -> Owner:
    """Give the owner back, or refuse what cannot be one.

    Raises:
        MalformedError: It is a local name, holds one, or is no principal at all.
    """
    if isinstance(owner, Threshold) and any(isinstance(leaf, Name) for leaf in threshold_leaves(owner)):
        raise MalformedError("a local name cannot own a type", code="TYPE_OWNER")
    if not isinstance(owner, (PublicKey, KeyHash, Threshold)):
        # SECURITY: a readable name without a key says nothing about who filled it (2.04).
        raise MalformedError("a type belongs to a key, the hash of one, or a threshold", code="TYPE_OWNER")
    return owner


def check_hierarchical(name: str, what: str) -> str:
    """Give the name back, or refuse one that is not parts joined by dots."""
    check_printable(name, what)
    parts = name.split(".")
    if len(parts) > MAX_PARTS or not all(parts):
        raise MalformedError(f"{what} is 1 to {MAX_PARTS} parts joined by dots", code="NAME_FORM")
    # SECURITY: people and doors write `owner/name@version`; a name that held those marks could pass for another's.
    mark = next((mark for mark in _RESERVED if mark in name), None)
    if mark is not None:
        what_for = "patterns" if mark == "*" else "`owner/name@version`"
        raise MalformedError(f"{what} holds no `{mark}`, which is for {what_for}", code="NAME_FORM")
    return name
