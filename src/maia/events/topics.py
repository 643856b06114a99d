"""Topics: names that events are published under, on the same engine as event types.

A topic belongs to an owner like a type does, ``[owner, Stocks.Nokia]``, and has a signed definition that carries the
credentials for creating it:

    (signed "1" (topic (name <owner> <name>) (credentials <signed certificate> …)?)
                (signature <public-key> <64 octets>))

Rules kept here:

- fields stand in this order; an unknown or empty field refuses the whole definition; the signature covers everything;
- the identity of a definition is the hash of its unsigned body;
- ``Stocks`` is the super-topic of ``Stocks.Nokia``. Whoever publishes under a topic needs the right on it and on all
  its super-topics; whoever subscribes needs it on that topic or one above, and receives the sub-topics too;
- ``*`` as a whole component of a pattern stands for exactly one component of a topic.

How topics become filters on the attribute `topic` is in `topic_events`.
"""

from __future__ import annotations

import hashlib
from dataclasses import InitVar, dataclass

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, MalformedError, UsageError
from maia.events.attributes import check_printable
from maia.events.definition import FORMAT, MAX_CREDENTIALS, certificate_sexp, signed_sexp
from maia.events.names import Owner, TypeId, check_hierarchical, check_owner, parse_owner
from maia.events.names import type_id as hash_name
from maia.events.reading import parse_credentials
from maia.principals import (
    SIGNATURE_LENGTH,
    KeyId,
    Kind,
    PublicKey,
    Signer,
    UnverifiedCertificate,
    decode_text,
    fingerprint,
    principal_id,
    public_key,
    verify_signature,
)

TOPIC_LIMITS = SexpLimits(max_bytes=1 << 19, max_depth=80, max_atom=1 << 15)
MAX_TOPIC_PARTS = 16
WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic: its owner and its dotted name."""

    owner: Owner
    name: str

    def __post_init__(self) -> None:
        """Refuse a topic without an owner's key, or deeper than anybody will follow."""
        check_owner(self.owner)
        check_hierarchical(self.name, "a topic name")
        if len(self.parts) > MAX_TOPIC_PARTS:
            raise MalformedError(f"a topic has at most {MAX_TOPIC_PARTS} components", code="NAME_FORM")

    def __eq__(self, other: object) -> bool:
        """Compare by identity of the owner."""
        return isinstance(other, TopicName) and (self.owner_id, self.name) == (other.owner_id, other.name)

    def __hash__(self) -> int:
        """Hash by identity of the owner."""
        return hash((self.owner_id, self.name))

    @property
    def owner_id(self) -> KeyId:
        """The identity of the owner."""
        return principal_id(self.owner)

    @property
    def topic_id(self) -> TypeId:
        """The identity of the topic, in the same space as those of event types."""
        return hash_name(self.owner, self.name)

    @property
    def parts(self) -> tuple[str, ...]:
        """The components, from the top."""
        return tuple(self.name.split("."))

    @property
    def lineage(self) -> tuple[TopicName, ...]:
        """All super-topics from the top, and the topic itself at the end: what a publisher needs rights on."""
        parts = self.parts
        return tuple(TopicName(self.owner, ".".join(parts[:length])) for length in range(1, len(parts) + 1))

    def __str__(self) -> str:
        """Show the name and enough of the owner to tell two of them apart."""
        return f"{self.name} [{fingerprint(self.owner_id)}]"


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A topic to subscribe to, in which a component may be ``*``."""

    owner: Owner
    text: str

    def __post_init__(self) -> None:
        """Refuse ``*`` inside a component, and patterns deeper than any topic."""
        check_owner(self.owner)
        check_printable(self.text, "a topic pattern")
        if len(self.parts) > MAX_TOPIC_PARTS or not all(self.parts):
            raise MalformedError(
                f"a topic pattern is 1 to {MAX_TOPIC_PARTS} components joined by dots", code="NAME_FORM"
            )
        if any(WILDCARD in part and part != WILDCARD for part in self.parts):
            raise MalformedError("`*` stands for a whole component of a topic", code="NAME_FORM")

    @property
    def parts(self) -> tuple[str, ...]:
        """The components, from the top."""
        return tuple(self.text.split("."))

    @property
    def has_wildcard(self) -> bool:
        """Tell whether the pattern stands for more than one topic and its sub-topics."""
        return WILDCARD in self.parts

    @property
    def sufficient(self) -> tuple[str, ...]:
        """The names of which one suffices for subscribing: the pattern, or a topic above all it can match.

        A pattern in a certificate reaches over ``*`` as over any other text, so one that covers the pattern's text
        covers whatever the pattern matches.
        """
        parts = self.parts
        literal = parts.index(WILDCARD) if self.has_wildcard else len(parts) - 1
        above = tuple(".".join(parts[:length]) for length in range(1, literal + 1))
        return (self.text, *reversed(above))

    def matches(self, topic: TopicName) -> bool:
        """Tell whether the pattern names this very topic."""
        return len(topic.parts) == len(self.parts) and self.includes(topic)

    def includes(self, topic: TopicName) -> bool:
        """Tell whether a subscription to the pattern receives this topic: it is matched, or a sub-topic of a match."""
        if principal_id(self.owner) != topic.owner_id or len(topic.parts) < len(self.parts):
            return False
        return all(ours in (WILDCARD, theirs) for ours, theirs in zip(self.parts, topic.parts, strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """The unsigned body of a topic definition."""

    name: TopicName
    credentials: tuple[UnverifiedCertificate, ...] = ()

    def __post_init__(self) -> None:
        """Refuse more evidence than anybody will read."""
        if len(self.credentials) > MAX_CREDENTIALS:
            raise MalformedError(f"a topic carries at most {MAX_CREDENTIALS} credentials", code="TOO_MANY_CREDENTIALS")

    @property
    def definition_id(self) -> bytes:
        """The hash of the unsigned body."""
        return hashlib.sha256(encode(self.to_sexp())).digest()

    def to_sexp(self) -> Sexp:
        """Write the unsigned body."""
        fields: list[Sexp] = [(b"name", self.name.owner.to_sexp(), self.name.name.encode())]
        if self.credentials:
            fields.append((b"credentials", *(certificate_sexp(item) for item in self.credentials)))
        return (b"topic", *fields)


@dataclass(frozen=True, slots=True)
class UnverifiedTopic:
    """A topic definition that was read but not checked. Nothing may be concluded from it."""

    topic: Topic
    signer: PublicKey
    signature: bytes
    raw: bytes


class _Proof:
    """Held by `verify_topic_signature` alone."""


_PROOF = _Proof()


@dataclass(frozen=True, slots=True)
class SignedTopic:
    """A topic definition whose signature was checked; whether the signer had the right is not decided here."""

    topic: Topic
    signer: PublicKey
    raw: bytes
    _proof: InitVar[_Proof]

    def __post_init__(self, _proof: _Proof) -> None:
        """Refuse to be made by anything but `verify_topic_signature`, by a copy too."""
        # INVARIANT: a SignedTopic's signature was verified in this process.
        if _proof is not _PROOF:
            raise UsageError("only verify_topic_signature makes a SignedTopic")


def sign_topic(topic: Topic, signer: Signer) -> UnverifiedTopic:
    """Sign a topic definition."""
    body = topic.to_sexp()
    mark = signer.sign(Kind.TOPIC, encode(body))
    return UnverifiedTopic(topic, signer.public_key, mark, encode(signed_sexp(body, signer.public_key, mark)))


def verify_topic_signature(unverified: UnverifiedTopic) -> SignedTopic:
    """Check that the named key signed exactly this definition.

    Raises:
        SignatureError: It did not.
    """
    body = encode(unverified.topic.to_sexp())
    verify_signature(Kind.TOPIC, body, unverified.signature, unverified.signer)
    return SignedTopic(unverified.topic, unverified.signer, unverified.raw, _PROOF)


def parse_topic(raw: bytes, *, limits: SexpLimits = TOPIC_LIMITS) -> UnverifiedTopic:
    """Read a topic definition from its canonical bytes, believing nothing.

    Raises:
        MalformedError: The bytes are not a definition of this format in canonical form.
    """
    match parse_canonical(raw, limits=limits):
        case (
            b"signed",
            version,
            (b"topic", (b"name", owner, name), *rest),
            (b"signature", (b"public-key", (b"ed25519", bytes() as key)), bytes() as mark),
        ) if version == FORMAT and len(mark) == SIGNATURE_LENGTH:
            signer = public_key(key)
        case _:
            raise EncodingError("not a signed definition of a topic", code="TOPIC_SHAPE")
    credentials: tuple[UnverifiedCertificate, ...] = ()
    match rest:
        case []:
            pass
        case [(b"credentials", *items)] if items:
            credentials = parse_credentials(tuple(items))
        case _:
            # SECURITY: a field we do not know may be one that narrows; ignoring it would widen.
            raise EncodingError("an unknown field in a topic definition", code="UNKNOWN_FIELD")
    topic = Topic(name=TopicName(parse_owner(owner), decode_text(name, "a topic name")), credentials=credentials)
    return UnverifiedTopic(topic, signer, mark, bytes(raw))
