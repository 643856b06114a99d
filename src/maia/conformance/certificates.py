"""Turns the JSON of conformance cases into real keys, rights and signed certificates.

Symbolic keys become Ed25519 keys derived from their name, so equal certificate objects give equal certificates. What
cannot be built, because a key or a threshold is refused, is evidence that proves nothing; it is reported as such.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from maia.authority import Action, Constraint, Tag, network_right, parse_tag, type_right
from maia.conformance.fields import Json, field, objects, optional_instant, wrong
from maia.conformance.shapes import principals_in
from maia.encoding import Sexp, encode, format_advanced, parse_advanced
from maia.errors import EncodingError, MaiaError, MalformedError
from maia.events import AttributeType, attribute, value_from_json
from maia.principals import (
    Authorisation,
    Body,
    CertificateId,
    KeyHash,
    KeySigner,
    Kind,
    Name,
    Naming,
    OnlineTest,
    Period,
    Principal,
    PublicKey,
    TestKind,
    Threshold,
    parse_certificate,
    unsafe_seal_certificate,
)

_WRITTEN = (AttributeType.TIMESTAMP, AttributeType.DATE, AttributeType.DECIMAL)
_ORDER = 2**252 + 27742317777372353535851937790883648493
_SYMBOL = re.compile(r'"(?:[^"\\]|\\.)*"|\$([A-Za-z0-9_-]+)')


@lru_cache(maxsize=4096)
def signer_of(name: str) -> KeySigner:
    """Return the key that a symbolic name stands for."""
    return KeySigner(hashlib.sha256(b"maia conformance key " + name.encode("utf-8", "surrogatepass")).digest())


def key_of(value: object) -> PublicKey:
    """Read a key: a symbolic name, or octets in hexadecimal."""
    if isinstance(value, str) and value:
        return signer_of(value).public_key
    if isinstance(value, dict) and set(value) == {"key"}:
        try:
            return PublicKey.import_(bytes.fromhex(field(value, "key", str)))
        except ValueError as error:
            raise wrong("key", "hexadecimal") from error
    raise wrong("key", "a key")


def principal_of(value: object) -> Principal:
    """Read S: a key, a hash, a name or a threshold."""
    if isinstance(value, str) or (isinstance(value, dict) and "key" in value):
        return key_of(value)
    if not isinstance(value, dict) or len(value) != 1:
        raise wrong("subject", "a key, a name, a hash or a threshold")
    [(kind, inner)] = value.items()
    if kind == "hash":
        return KeyHash(key_of(inner).key_id)
    if kind == "name":
        return _name_of(inner)
    if kind == "threshold" and isinstance(inner, dict):
        return _threshold_of(inner)
    raise wrong("subject", "a key, a name, a hash or a threshold")


def _name_of(value: object) -> Name:
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(part, str) for part in value[1:]):
        raise wrong("name", "a key followed by names")
    base = principal_of(value[0])
    if not isinstance(base, (PublicKey, KeyHash)):
        raise wrong("name", "a name that starts at a key")
    return Name(base, tuple(value[1:]))


def _threshold_of(value: Json) -> Threshold:
    members = value.get("of")
    if not isinstance(members, list):
        raise wrong("of", "a list of members")
    k = value.get("k")
    n = value.get("n", len(members))
    if type(k) is not int or type(n) is not int or n != len(members):
        raise EncodingError("a threshold with numbers that do not fit", code="THRESHOLD_RANGE")
    return Threshold(k, tuple(principal_of(member) for member in members))


def tag_of(value: object) -> Tag:
    """Read a tag from its advanced text."""
    if not isinstance(value, str):
        raise wrong("tag", "advanced text")
    return parse_tag(parse_advanced(value))


_KindsByUid = Mapping[str, tuple[AttributeType, ...]]
Kinds = Callable[[Tag], _KindsByUid]
"""Tells the attribute types, by uid, of the event types that a right is on; several where these do not agree."""


def _no_kinds(_right: Tag) -> _KindsByUid:
    return {}


def right_of(value: object, kinds: Kinds = _no_kinds) -> Tag:
    """Read a right on a network or an event type; known attribute types tell times from texts."""
    if not isinstance(value, dict):
        raise wrong("right", "an object")
    actions = _actions_of(value.get("actions"))
    if "network" in value:
        if set(value) & {"type", "attributes", "rows"}:
            raise wrong("right", "a right on a network or on a type")
        owner, name = _pair(value["network"], "network")
        return network_right(principal_of(owner), name, actions)
    owned, name, version = _triple(value.get("type"))
    owner = None if owned == "*" else principal_of(owned)
    known = kinds(type_right(owner, name, version))
    attributes, constraints = _attributes_of(value.get("attributes", "*"), known)
    rows = value.get("rows", [])
    if not isinstance(rows, list):
        raise wrong("rows", "a list of constraints")
    constraints += [_constraint_of(item, "rows", known) for item in rows]
    return type_right(owner, name, version, actions=actions, attributes=attributes, constraints=constraints)


def _actions_of(value: object) -> list[Action] | None:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise wrong("actions", "a list of words")
    return None if "*" in words else [Action.parse(word) for word in words]


def _attributes_of(value: object, kinds: _KindsByUid) -> tuple[list[str] | None, list[Constraint]]:
    if value == "*" or value is None:
        return None, []
    if not isinstance(value, list):
        raise wrong("attributes", "`*` or a list")
    uids: list[str] = []
    constraints: list[Constraint] = []
    everything = False
    for item in value:
        if isinstance(item, list):
            constraints.append(_constraint_of(item, "attributes", kinds))
            uids.append(constraints[-1].uid)
        elif item == "*":
            everything = True
        else:
            uids.append(uid_of(item))
    return None if everything else uids, constraints


def _constraint_of(item: object, name: str, kinds: _KindsByUid) -> Constraint:
    """Read a demand on a row: uid, operator and value."""
    if not isinstance(item, list) or len(item) != 3 or not isinstance(item[1], str):
        raise wrong(name, "a list of constraints")
    wanted = tuple(item[2]) if isinstance(item[2], list) else item[2]
    if wanted is None or isinstance(wanted, dict):
        raise wrong(name, "a list of constraints with values")
    uid = uid_of(item[0])
    return Constraint(uid, item[1], wanted if item[1] == "any" else _typed(uid, wanted, kinds.get(uid, ())))


def _typed(uid: str, value: object, kinds: tuple[AttributeType, ...]) -> Any:  # noqa: ANN401 - JSON values
    """Read a constraint's value by the type of its attribute, where that is known and JSON has no form of its own.

    Where types do not agree, the first counts that has such a value.
    """
    if isinstance(value, tuple):
        return tuple(_typed(uid, item, kinds) for item in value)
    refused: MalformedError | None = None
    for kind in kinds:
        try:
            read = value_from_json(attribute("constraint", uid, kind.value), value)
        except MalformedError as error:
            refused = refused or (error if kind in _WRITTEN else None)
        else:
            return read if kind in _WRITTEN else value
    if refused is not None:
        raise refused
    return value


def uid_of(value: object) -> str:
    """Read a uid, given as a number or as text."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise wrong("uid", "a uid")
    return str(value)


def version_of(value: object) -> str:
    """Read a version, given as a number or as text."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise wrong("version", "a version")
    return str(value)


def _pair(value: object, name: str) -> tuple[object, str]:
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], str):
        raise wrong(name, "owner and name")
    return value[0], value[1]


def _triple(value: object) -> tuple[object, str, str]:
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[1], str):
        raise wrong("type", "owner, name and version")
    return value[0], value[1], version_of(value[2])


def certificate_bytes(value: Json, kinds: Kinds = _no_kinds) -> bytes:
    """Make the signed bytes of a certificate object, right or wrong as the case wants it.

    Raises:
        MalformedError: The object describes nothing that could be signed.
    """
    if "raw" in value:
        try:
            return base64.b64decode(field(value, "raw", str), validate=True)
        except (ValueError, binascii.Error) as error:
            raise wrong("raw", "base64") from error
    signer = _signer(value)
    expression = _body_expression(value, kinds)
    if "signature" in value:
        key = key_of(value["issuer"]) if "issuer" in value else signer.public_key
        return unsafe_seal_certificate(expression, key, _hex(value["signature"]))
    signature = signer.sign(Kind.CERTIFICATE, encode(expression))
    tamper = value.get("tamper")
    if tamper is not None:
        expression, signature = _tampered(value, tamper, expression, signature, kinds)
    return unsafe_seal_certificate(expression, signer.public_key, signature)


def certificate_id(value: Json) -> CertificateId:
    """Return the identity that statements use for a certificate object."""
    return parse_certificate(certificate_bytes(value)).certificate_id


def _body_expression(value: Json, kinds: Kinds = _no_kinds) -> Sexp:
    if "sexp" in value:
        return parse_advanced(_with_keys(field(value, "sexp", str)))
    return body_of(value, kinds).to_sexp()


def body_of(value: Json, kinds: Kinds = _no_kinds) -> Body:
    """Read the body of a certificate object."""
    issuer = principal_of(value.get("issuer"))
    if not isinstance(issuer, (PublicKey, KeyHash)):
        raise EncodingError("the issuer of a certificate is one key", code="CERT_ISSUER")
    try:
        period = Period(optional_instant(value, "not_before"), optional_instant(value, "not_after"))
    except ValueError as error:
        raise EncodingError("a period ends before it starts", code="PERIOD_EMPTY") from error
    tests = tuple(_test_of(test) for test in objects(value, "tests", required=False))
    subject = principal_of(value.get("subject"))
    if "name" in value:
        return Naming(issuer=issuer, name=field(value, "name", str), subject=subject, period=period, tests=tests)
    if "right" not in value and "tag" not in value:
        raise EncodingError("an authorisation without a tag", code="CERT_NO_TAG")
    tag = right_of(value["right"], kinds).to_sexp() if "right" in value else parse_advanced(field(value, "tag", str))
    return Authorisation(
        issuer=issuer,
        subject=subject,
        delegate=field(value, "delegate", bool, default=False),
        tag=tag,
        period=period,
        tests=tests,
        conditions=_conditions_of(value.get("conditions", [])),
    )


def _conditions_of(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise wrong("conditions", "a list of texts")
    return tuple(value)


def _test_of(value: Json) -> OnlineTest:
    try:
        kind = TestKind(value.get("kind"))
    except ValueError as error:
        raise wrong("kind", "crl, revalidation or one-time") from error
    return OnlineTest(kind, key_of(value.get("signer")))


def _signer(value: Json) -> KeySigner:
    """Pick the key that signs: the one named, else the issuer's."""
    named = value.get("signed_by", value.get("issuer"))
    if isinstance(named, dict) and set(named) == {"hash"}:
        named = named["hash"]
    # A key given by its octets has no private half here; the signature is then another's and must be refused.
    return signer_of(named if isinstance(named, str) and named else "?")


def _tampered(value: Json, tamper: object, expression: Sexp, signature: bytes, kinds: Kinds) -> tuple[Sexp, bytes]:
    if not isinstance(tamper, dict):
        raise wrong("tamper", "an object")
    changed = {name: new for name, new in tamper.items() if name != "signature"}
    if changed:
        merged = {key: old for key, old in value.items() if key != "tamper"}
        if "tag" in changed:
            merged.pop("right", None)
        expression = _body_expression({**merged, **changed}, kinds)
    return expression, tampered_signature(signature, tamper.get("signature"))


def tampered_signature(signature: bytes, how: object) -> bytes:
    """Damage a signature: ``flip`` turns one bit, ``+L`` adds the group order to S, hexadecimal replaces it."""
    if how is None:
        return signature
    if how == "flip":
        return bytes((signature[0] ^ 1,)) + signature[1:]
    if how == "+L":
        grown = int.from_bytes(signature[32:], "little") + _ORDER
        return signature[:32] + grown.to_bytes(32, "little")
    return _hex(how)


def _hex(value: object) -> bytes:
    try:
        octets = bytes.fromhex(value) if isinstance(value, str) else None
    except ValueError:
        octets = None
    if octets is None:
        raise wrong("signature", "hexadecimal")
    if len(octets) != 64:
        raise EncodingError("a signature has 64 octets", code="CERT_SHAPE")
    return octets


def _with_keys(text: str) -> str:
    """Put public-key expressions in the place of ``$name``, outside quoted strings."""

    def replace(match: re.Match[str]) -> str:
        return match[0] if match[1] is None else format_advanced(signer_of(match[1]).public_key.to_sexp())

    return _SYMBOL.sub(replace, text)


def evidence_of(
    values: list[Json], kinds: Kinds = _no_kinds
) -> tuple[list[bytes], list[CertificateId | None], list[MalformedError]]:
    """Make all certificates of a case: their bytes, their identities, and what could not be made."""
    evidence: list[bytes] = []
    identities: list[CertificateId | None] = []
    refused: list[MalformedError] = []
    for value in values:
        try:
            raw = certificate_bytes(value, kinds)
            identity: CertificateId | None = None
            try:
                identity = parse_certificate(raw).certificate_id
            except MalformedError as error:
                refused.append(error)
            evidence.append(raw)
        except MalformedError as error:
            if error.code == "REQUEST_FIELD":
                raise
            identity = None
            refused.append(error)
        identities.append(identity)
    return evidence, identities, refused


def names_of(verb: str, request: Json) -> dict[bytes, str]:
    """Map the identities of all keys that a request names back to their names: symbolic ones before octets."""
    found: dict[bytes, str] = {}
    given: dict[bytes, str] = {}
    for item in principals_in(verb, request):
        names: list[object] = [item]
        if isinstance(item, dict):
            names = _SYMBOL.findall(str(item.get("sexp", "")))
            if isinstance(item.get("key"), str):
                with contextlib.suppress(MaiaError):  # a key that is refused is nobody's
                    given[key_of(item).key_id] = str(item["key"])
        found.update({signer_of(name).public_key.key_id: name for name in names if isinstance(name, str) and name})
    return given | found
