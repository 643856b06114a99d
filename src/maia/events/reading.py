"""Reading signed definitions of event types from bytes, believing nothing."""

from __future__ import annotations

from maia.encoding import Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError
from maia.events.attributes import MAX_ATTRIBUTES, Attribute, check_uid
from maia.events.definition import (
    EVENT_TYPE_LIMITS,
    FORMAT,
    MAX_CREDENTIALS,
    MAX_LINEAGE,
    EventType,
    EventTypeId,
    Previous,
    UnverifiedEventType,
)
from maia.events.names import TypeName, parse_type_name
from maia.events.options import parse_options
from maia.events.value_types import parse_attribute_type
from maia.principals import (
    SIGNATURE_LENGTH,
    PublicKey,
    UnverifiedCertificate,
    decode_text,
    parse_certificate,
    public_key,
)

_HASH_LENGTH = 32


def parse_event_type(raw: bytes, *, limits: SexpLimits = EVENT_TYPE_LIMITS) -> UnverifiedEventType:
    """Read a signed definition from its canonical bytes.

    Raises:
        MalformedError: The bytes are not a definition of this format in canonical form, or break one of its rules.
    """
    return _parse_signed(parse_canonical(raw, limits=limits), bytes(raw), MAX_LINEAGE)


def parse_compatible_event_type(raw: bytes, *, limits: SexpLimits = EVENT_TYPE_LIMITS) -> UnverifiedEventType:
    """Read a definition whose signature covers name and attributes but not the credentials.

    That is the scope of the healthcare chapter: ``(signed "1" <body> (credentials …) (signature …))``. Credentials can
    then be stripped or exchanged under way, so what comes out stays marked as ``compatible``, and a verifier accepts it
    only when told to.

    Raises:
        MalformedError: The bytes have another shape, the fully signed one included.
    """
    match parse_canonical(raw, limits=limits):
        case (b"signed", version, (b"event-type", *fields), (b"credentials", *credentials), mark) if credentials:
            _check_format(version)
            signer, signature = _parse_signature(mark)
        case _:
            raise EncodingError("not a definition with its credentials outside the signature", code="TYPE_SHAPE")
    body = _parse_body(fields, MAX_LINEAGE)
    if body.credentials:
        raise EncodingError("credentials inside and outside the signature", code="TYPE_SHAPE")
    outside = EventType(
        name=body.name, attributes=body.attributes, options=body.options, extends=body.extends,
        previous=body.previous, credentials=_parse_credentials(tuple(credentials)),
    )  # fmt: skip
    return UnverifiedEventType(outside, signer, signature, bytes(raw), compatible=True)


def _parse_signed(expression: Sexp, raw: bytes, lineage: int) -> UnverifiedEventType:
    match expression:
        case (b"signed", version, (b"event-type", *fields), mark):
            _check_format(version)
            signer, signature = _parse_signature(mark)
            return UnverifiedEventType(_parse_body(fields, lineage), signer, signature, raw)
        case _:
            raise EncodingError("not a signed definition of an event type", code="TYPE_SHAPE")


def _check_format(version: Sexp) -> None:
    if version != FORMAT:
        raise EncodingError("a definition of an unknown format", code="TYPE_FORMAT")


def _parse_signature(expression: Sexp) -> tuple[PublicKey, bytes]:
    match expression:
        case (b"signature", (b"public-key", (b"ed25519", bytes() as key)), bytes() as mark) if (
            len(mark) == SIGNATURE_LENGTH
        ):
            return public_key(key), mark
        case _:
            raise EncodingError("not a signature", code="TYPE_SHAPE")


def _parse_body(fields: list[Sexp], lineage: int) -> EventType:
    match fields[:3]:
        case [(b"name", *name), (b"attributes", *attributes), (b"options", *_) as options]:
            rest = fields[3:]
        case _:
            raise EncodingError("a definition starts with name, attributes and options", code="TYPE_SHAPE")
    if len(attributes) > MAX_ATTRIBUTES:
        raise EncodingError(f"a type has at most {MAX_ATTRIBUTES} attributes", code="TOO_MANY_ATTRIBUTES")
    extends: TypeName | None = None
    previous: Previous | None = None
    credentials: tuple[UnverifiedCertificate, ...] = ()
    match rest[:1]:
        case [(b"extends", *parent)]:
            extends, rest = parse_type_name(tuple(parent)), rest[1:]
    match rest[:1]:
        case [(b"previous", expression)]:
            previous, rest = _parse_previous(expression, lineage), rest[1:]
    match rest[:1]:
        case [(b"credentials", *items)] if items:
            credentials, rest = _parse_credentials(tuple(items)), rest[1:]
    # SECURITY: a field we do not know may be one that narrows; ignoring it would widen.
    if rest:
        raise EncodingError("an unknown field in a definition", code="UNKNOWN_FIELD")
    return EventType(
        name=parse_type_name(tuple(name)),
        attributes=tuple(_parse_attribute(item) for item in attributes),
        options=parse_options(options),
        extends=extends,
        previous=previous,
        credentials=credentials,
    )


def _parse_attribute(expression: Sexp) -> Attribute:
    match expression:
        case (b"attribute", name, uid, kind):
            return Attribute(
                name=decode_text(name, "an attribute name"),
                uid=check_uid(decode_text(uid, "a uid")),
                type=parse_attribute_type(decode_text(kind, "an attribute type")),
            )
        case _:
            raise EncodingError("an attribute is name, uid and type", code="TYPE_SHAPE")


def _parse_previous(expression: Sexp, lineage: int) -> Previous:
    match expression:
        case (b"hash", b"sha256", bytes() as digest) if len(digest) == _HASH_LENGTH:
            return EventTypeId(digest)
        case (b"signed", *_):
            if lineage <= 0:
                raise EncodingError(f"more than {MAX_LINEAGE} versions are embedded", code="LINEAGE_TOO_LONG")
            return _parse_signed(expression, encode(expression), lineage - 1)
        case _:
            raise EncodingError("a previous version is embedded or named by its hash", code="TYPE_SHAPE")


def _parse_credentials(expressions: tuple[Sexp, ...]) -> tuple[UnverifiedCertificate, ...]:
    if len(expressions) > MAX_CREDENTIALS:
        raise EncodingError(f"a type carries at most {MAX_CREDENTIALS} credentials", code="TOO_MANY_CREDENTIALS")
    return tuple(parse_certificate(encode(expression)) for expression in expressions)
