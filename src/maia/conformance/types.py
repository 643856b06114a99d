"""The verbs of event types: definitions as JSON, signed for real, verified and translated by the product's functions.

`version_type` is of use to every verb that takes a version: it signs the definition, damages it as the case asks, and
reads it back from its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from maia.authority import Verifier, verify_event_type
from maia.conformance.certificates import certificate_bytes, key_of, principal_of, signer_of, tampered_signature
from maia.conformance.fields import Json, field, instant, objects, wrong
from maia.encoding import encode
from maia.errors import MalformedError
from maia.events import (
    Attribute,
    AttributeType,
    EventType,
    Publication,
    TypeName,
    UnverifiedEventType,
    Value,
    attribute,
    check_owner,
    check_uids,
    parse_event_type,
    parse_version,
    sign_event_type,
    translate,
    value_from_json,
    value_to_json,
    verify_type_signature,
)
from maia.principals import Principal, parse_certificate

_MAX_VERSIONS = 256
_MAX_PREVIOUS = 64


def verify(request: Json) -> str:
    """``type.verify``: whether a definition speaks for its owner at an instant, and may be installed on a network."""
    definition = version_type(field(request, "type", dict))
    network = _network(request.get("network"))
    verify_event_type(definition, verifier=Verifier(), at=instant(request.get("at")), network=network)
    return "valid"


def translate_event(request: Json) -> dict[str, object]:
    """``type.translate``: an event of one version as another version sees it."""
    versions = objects(request, "versions")
    if len(versions) > _MAX_VERSIONS:
        raise wrong("versions", f"a list of at most {_MAX_VERSIONS} versions")
    types = [verify_type_signature(version_type(value)).definition for value in versions]
    if len({item.type_id for item in types}) > 1:
        raise MalformedError("the versions belong to more than one type", code="OTHER_TYPE")
    if len({item.name for item in types}) != len(types):
        raise MalformedError("two versions have one number", code="VERSION_TAKEN")
    check_uids(item.attributes for item in types)
    source, target = (_pick(types, request.get(end), end) for end in ("from", "to"))
    event = field(request, "event", dict)
    given = {name: read_value(source.by_name(name), value) for name, value in event.items()}
    seen = translate(Publication(source, given), target)
    forms = {item.uid: event.get(item.name) for item in source.attributes}
    return {item.name: write_value(item, seen.values[item.name], forms.get(item.uid)) for item in target.attributes}


def version_type(value: Json, *, depth: int = _MAX_PREVIOUS) -> UnverifiedEventType:
    """Make a signed definition from a version object, right or wrong as the case wants it.

    Raises:
        MalformedError: The object describes nothing that could be read.
    """
    signer = value.get("signer")
    key = signer_of(signer if isinstance(signer, str) and signer else "?")
    signed = sign_event_type(_definition(value, depth), key)
    claimed, mark = key_of(signer), signed.signature
    if "signature" in value:
        mark = tampered_signature(mark, value["signature"])
    body = signed.definition
    tamper = value.get("tamper")
    if tamper is not None:
        if not isinstance(tamper, dict):
            raise wrong("tamper", "an object")
        changed = {name: new for name, new in tamper.items() if name != "signature"}
        body = _definition({**value, **changed}, depth) if changed else body
        claimed = key_of(changed["signer"]) if "signer" in changed else claimed
        mark = tampered_signature(mark, tamper.get("signature"))
    damaged = UnverifiedEventType(body, claimed, mark, b"")
    return parse_event_type(encode(damaged.to_sexp()))


def _definition(value: Json, depth: int) -> EventType:
    if depth <= 0:
        raise wrong("previous", f"at most {_MAX_PREVIOUS} versions deep")
    previous = value.get("previous")
    if previous is not None and not isinstance(previous, dict):
        raise wrong("previous", "a version")
    return EventType(
        name=TypeName(
            check_owner(principal_of(value.get("owner"))),
            field(value, "name", str),
            parse_version(value.get("version")),  # type: ignore[arg-type]
        ),
        attributes=tuple(
            attribute(field(item, "name", str), item.get("uid"), field(item, "type", str))  # type: ignore[arg-type]
            for item in objects(value, "attributes")
        ),
        previous=None if previous is None else version_type(previous, depth=depth - 1),
        credentials=tuple(
            parse_certificate(certificate_bytes(item)) for item in objects(value, "credentials", required=False)
        ),
    )


def _network(value: object) -> tuple[Principal, str] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], str):
        raise wrong("network", "owner and name")
    return principal_of(value[0]), value[1]


def _pick(types: list[EventType], version: object, end: str) -> EventType:
    wanted = parse_version(version)  # type: ignore[arg-type]
    for item in types:
        if item.name.version == wanted:
            return item
    raise wrong(end, "one of the versions")


def read_value(item: Attribute, value: object) -> Value:
    """Read a value; in cases, binary is plain text."""
    if item.type is AttributeType.BINARY and isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise MalformedError(f"the value of `{item.name}` is no binary", code="VALUE_TYPE") from error
    return value_from_json(item, value)


def write_value(item: Attribute, value: Value, form: object = None) -> object:
    """Write a value in the form in which it was given: numbers for times and decimals stay numbers."""
    if isinstance(value, bytes):
        return value.decode()
    if item.type.base in (AttributeType.TIMESTAMP, AttributeType.DECIMAL) and isinstance(form, (int, float)):
        return form
    return value_to_json(value)


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {
    "type.verify": verify,
    "type.translate": translate_event,
}
