"""Event types: signed definitions whose names cannot be forged.

    (signed "1"
      (event-type
        (name <owner> <name> <version>)
        (attributes (attribute <name> <uid> <type>) …)
        (options (encryption …) (closed …) (release …) (padding …) (compression off)? (topic)?)
        (extends <owner> <name> <version>)?
        (previous <signed definition> | (hash sha256 <32 octets>))?
        (credentials <signed certificate> …)?)
      (signature <public-key> <64 octets>))

Rules kept here:

- the version of the format stands in the envelope, as with certificates, and in the prefix that is signed along;
- fields stand in this order, each at most once; an unknown, missing or empty field refuses the whole definition;
- the signature covers everything, credentials included, so that none can be taken away or exchanged;
- the key in the signature may be any key: whether it is the owner or holds the owner's `manage` right is decided from
  the credentials, on the floor of authority, at each point in time;
- the identity of a definition is the hash of its unsigned body;
- `UnverifiedEventType` is what reading gives, `SignedEventType` what a good signature gives. Neither says that the
  signer had the right to speak for the owner.
"""

from __future__ import annotations

import hashlib
from dataclasses import InitVar, dataclass, field, replace
from typing import NewType, TypeAlias

from maia.encoding import Sexp, SexpLimits, encode, html_table, parse_canonical
from maia.errors import MalformedError, UsageError
from maia.events.attributes import Attribute, Uid, check_attributes
from maia.events.names import TypeId, TypeName
from maia.events.options import Options
from maia.events.topics import check_topic
from maia.principals import CERTIFICATE_LIMITS, Kind, PublicKey, Signer, UnverifiedCertificate, verify_signature

EventTypeId = NewType("EventTypeId", bytes)
"""SHA-256 over the canonical bytes of an unsigned definition."""

FORMAT = b"1"
EVENT_TYPE_LIMITS = SexpLimits(max_bytes=1 << 20, max_depth=192, max_atom=1 << 15)
MAX_CREDENTIALS = 512
MAX_LINEAGE = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """The unsigned body of a definition: one version of a type.

    Attributes:
        name: Owner, readable name and version.
        attributes: In the order in which columns stand.
        options: How events of this version travel.
        extends: The version of another type whose attributes this one inherits; ``attributes`` lists the own ones.
        previous: The version this one came from, embedded or by its identity.
        credentials: Certificates that show the signer's right, as they were read.
    """

    name: TypeName
    attributes: tuple[Attribute, ...]
    options: Options = field(default_factory=Options)
    extends: TypeName | None = None
    previous: Previous | None = None
    credentials: tuple[UnverifiedCertificate, ...] = ()

    def __post_init__(self) -> None:
        """Refuse doubled names and uids, and more evidence than anybody will read."""
        check_attributes(self.attributes)
        if len(self.credentials) > MAX_CREDENTIALS:
            raise MalformedError(f"a type carries at most {MAX_CREDENTIALS} credentials", code="TOO_MANY_CREDENTIALS")
        if self.extends is not None and self.extends.type_id == self.name.type_id:
            raise MalformedError("a type cannot extend itself", code="TYPE_EXTENDS")
        if self.options.topic:
            alone = self.extends is None and self.previous is None
            check_topic(self.name, self.attributes, self.options, alone=alone)
        if isinstance(self.previous, UnverifiedEventType):
            _check_previous(self)

    @property
    def type_id(self) -> TypeId:
        """The identity of the type over all versions."""
        return self.name.type_id

    @property
    def uids(self) -> frozenset[Uid]:
        """The uids of this version."""
        return frozenset(item.uid for item in self.attributes)

    @property
    def definition_id(self) -> EventTypeId:
        """The hash of the unsigned body."""
        return EventTypeId(hashlib.sha256(encode(self.to_sexp())).digest())

    @property
    def meaning(self) -> bytes:
        """The hash of what it says, whoever signed it and on what credentials; one for each version, see `Registry`."""
        return hashlib.sha256(encode(replace(self, previous=None, credentials=()).to_sexp())).digest()

    def by_name(self, name: str) -> Attribute:
        """Find an attribute by its name in this version.

        Raises:
            MalformedError: There is none of this name.
        """
        for item in self.attributes:
            if item.name == name:
                return item
        raise MalformedError(f"version {self.name.version} has no attribute `{name}`", code="NO_ATTRIBUTE")

    def by_uid(self, uid: Uid) -> Attribute | None:
        """Find an attribute by its uid, or ``None``."""
        return next((item for item in self.attributes if item.uid == uid), None)

    def _repr_html_(self) -> str:
        """Show the version in a notebook."""
        rows = [(item.name, item.uid, item.type.value) for item in self.attributes]
        return html_table(f"event type {self.name}", ("attribute", "uid", "type"), rows)

    def to_sexp(self) -> Sexp:
        """Write the unsigned body."""
        attributes = tuple(
            (b"attribute", item.name.encode(), item.uid.encode(), item.type.value.encode()) for item in self.attributes
        )
        fields: list[Sexp] = [
            self.name.to_sexp(),
            (b"attributes", *attributes),
            self.options.to_sexp(),
        ]
        if self.extends is not None:
            name = self.extends.to_sexp()
            fields.append((b"extends", *name[1:]))  # type: ignore[index]
        if isinstance(self.previous, UnverifiedEventType):
            fields.append((b"previous", self.previous.to_sexp()))
        elif self.previous is not None:
            fields.append((b"previous", (b"hash", b"sha256", self.previous)))
        if self.credentials:
            fields.append((b"credentials", *(certificate_sexp(item) for item in self.credentials)))
        return (b"event-type", *fields)


@dataclass(frozen=True, slots=True)
class UnverifiedEventType:
    """A definition that was read but not checked. Nothing may be concluded from it.

    Attributes:
        definition: What it says.
        signer: The key it claims to be signed with.
        signature: 64 octets.
        raw: The bytes as they came.
        compatible: Read in the scope of the healthcare chapter, where the signature leaves the credentials out.
    """

    definition: EventType
    signer: PublicKey
    signature: bytes
    raw: bytes
    compatible: bool = False

    @property
    def definition_id(self) -> EventTypeId:
        """The hash of the unsigned body."""
        return self.definition.definition_id

    def to_sexp(self) -> Sexp:
        """Write the signed definition."""
        return signed_sexp(self.definition.to_sexp(), self.signer, self.signature)

    def signed_bytes(self) -> bytes:
        """Write what the signature has to cover."""
        body = replace(self.definition, credentials=()) if self.compatible else self.definition
        return encode(body.to_sexp())


Previous: TypeAlias = "UnverifiedEventType | EventTypeId"


class _Proof:
    """Held by `verify_type_signature` alone; without it no `SignedEventType` comes into being."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class SignedEventType:
    """A definition whose signature was checked: ``signer`` wrote it and it is unaltered.

    Whether the signer may speak for the owner is not decided here.
    """

    definition: EventType
    signer: PublicKey
    raw: bytes
    compatible: bool
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_type_signature`, by a copy too."""
        # INVARIANT: a SignedEventType's signature was verified in this process.
        if _proof is not _PROOF:
            raise UsageError("only verify_type_signature makes a SignedEventType")


def sign_event_type(definition: EventType, signer: Signer) -> UnverifiedEventType:
    """Sign a definition; any key can, and only the owner's or a manager's will convince.

    Returns:
        The signed definition in the shape in which it is stored and sent.
    """
    body = definition.to_sexp()
    mark = signer.sign(Kind.EVENT_TYPE, encode(body))
    raw = encode(signed_sexp(body, signer.public_key, mark))
    if len(raw) > EVENT_TYPE_LIMITS.max_bytes:
        raise MalformedError(f"a definition has at most {EVENT_TYPE_LIMITS.max_bytes} octets", code="TYPE_TOO_LARGE")
    return UnverifiedEventType(definition, signer.public_key, mark, raw)


def verify_type_signature(unverified: UnverifiedEventType) -> SignedEventType:
    """Check that the named key signed exactly this definition.

    Raises:
        SignatureError: It did not.
    """
    verify_signature(Kind.EVENT_TYPE, unverified.signed_bytes(), unverified.signature, unverified.signer)
    return SignedEventType(unverified.definition, unverified.signer, unverified.raw, unverified.compatible, _PROOF)


def signed_sexp(body: Sexp, signer: PublicKey, signature: bytes) -> Sexp:
    """Wrap a body and its signature."""
    return (b"signed", FORMAT, body, (b"signature", signer.to_sexp(), signature))


def certificate_sexp(certificate: UnverifiedCertificate) -> Sexp:
    """Write a certificate as part of another expression."""
    return parse_canonical(certificate.raw, limits=CERTIFICATE_LIMITS)


def _check_previous(definition: EventType) -> None:
    """Refuse an embedded previous version that is none, or a lineage longer than anybody will follow."""
    depth = 0
    current: Previous | None = definition.previous
    while isinstance(current, UnverifiedEventType):
        depth += 1
        if depth > MAX_LINEAGE:
            raise MalformedError(f"more than {MAX_LINEAGE} versions are embedded", code="LINEAGE_TOO_LONG")
        if current.definition.type_id != definition.type_id:
            raise MalformedError("the previous version belongs to another type", code="PREVIOUS_OTHER_TYPE")
        current = current.definition.previous
