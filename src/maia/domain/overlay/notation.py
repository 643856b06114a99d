"""Credentials as people and other programs exchange them: in JSON and in XML.

    <credential xmlns="urn:maia:credential:1">
      <issuer key="…"/> <object kind="channel" owner="…" instance="met.CameraA" version="1"/>
      <client kind="person" key="…"/> <general-right name="transfer"/> <right name="route"/>
      <valid from="…" until="…"/> <test kind="crl" signer="…"/> <condition name="…"/>
      <digest sha256="…"/> <signature ed25519="…"/>
    </credential>

Rules kept here:

- the two notations say the same, member for element, and hold nothing but what is signed: reading builds the body anew,
  compares its digest, and checks the signature. There is no second copy of a field that a reader could look at;
- what is read must be exactly what would be written: a member that is unknown, missing, twice or spelled otherwise is
  refused;
- XML has no DOCTYPE, no entities but the five, no processing instructions and no text; sizes and numbers are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NoReturn
from xml.parsers import expat  # nothing of it but well-formedness is used; see the last rule
from xml.sax.saxutils import quoteattr

from maia.authority import ClientDescriptor, ClientKind, ObjectDescriptor, ObjectKind, OverlayCredential
from maia.errors import EncodingError, MaiaError, SignatureError
from maia.principals import (
    Certificate,
    KeyHash,
    KeyId,
    OnlineTest,
    Period,
    PublicKey,
    TestKind,
    UnverifiedCertificate,
    public_key,
    rejoin_certificate,
    verify_certificate,
)

NAMESPACE = "urn:maia:credential:1"
MAX_OCTETS = 1 << 17
_MAX_ELEMENTS = 256
_BLANKS = " \t\r\n"
_LISTED = ("general-right", "right", "condition")
_REPEATED = (*_LISTED, "test")
_SECONDS = "%Y-%m-%dT%H:%M:%SZ"
_Fields = dict[str, object]


def credential_to_json(certificate: UnverifiedCertificate | Certificate) -> str:
    """Write a certificate as a credential in JSON.

    Raises:
        TagError: It is none: ``NOT_A_CREDENTIAL``.
    """
    return json.dumps(_fields(certificate), indent=2, ensure_ascii=False) + "\n"


def credential_to_xml(certificate: UnverifiedCertificate | Certificate) -> str:
    """Write a certificate as a credential in XML.

    Raises:
        TagError: It is none: ``NOT_A_CREDENTIAL``.
    """
    lines = [f'<credential xmlns="{NAMESPACE}">']
    for name, value in _fields(certificate).items():
        for item in value if isinstance(value, list) else [value]:
            values = {"name": str(item)} if isinstance(item, str) else _map(item)
            lines.append(f"  <{name}{''.join(f' {key}={quoteattr(text)}' for key, text in values.items())}/>")
    return "\n".join([*lines, "</credential>", ""])


def read_credential(data: bytes) -> Certificate:
    """Read a credential in either notation, and check that its issuer signed exactly this.

    Raises:
        EncodingError: It is no credential, or not spelled as one is: ``CREDENTIAL_FORM``.
        SignatureError: A field is not what was signed: ``CREDENTIAL_DIGEST``; or the signature does not verify.
    """
    if len(data) > MAX_OCTETS:
        _wrong(f"a credential has at most {MAX_OCTETS} octets")
    given = _XmlReader().read(data) if data.lstrip()[:1] == b"<" else _read_json(data)
    try:
        body = _credential(given).body()
        signature = bytes.fromhex(_one(given, "signature", "ed25519"))
        found = rejoin_certificate(body, signature)
        told = _one(given, "digest", "sha256")
    except (MaiaError, KeyError, TypeError, ValueError) as error:
        raise EncodingError(f"no credential: {error}", code="CREDENTIAL_FORM") from error
    # SECURITY: first the digest, so that a changed field is told from a wrong key; the signature decides either way.
    if told != found.certificate_id.hex():
        raise SignatureError("a field of the credential is not what was signed", code="CREDENTIAL_DIGEST")
    checked = verify_certificate(found)
    if _fields(checked) != given:
        _wrong("something in it is not signed, or is spelled otherwise than it is written")
    return checked


def _fields(certificate: UnverifiedCertificate | Certificate) -> _Fields:
    """Take a certificate apart; what stands in neither notation is not there."""
    view, body = OverlayCredential.of(certificate.body), certificate.body
    named, client = view.object, view.client
    version = {} if named.version is None else {"version": named.version}
    period = {"from": body.period.not_before, "until": body.period.not_after}
    found: _Fields = {
        "issuer": {"key": view.issuer.raw.hex()},
        "object": {"kind": named.kind.value, "owner": named.owner.hex(), "instance": named.name, **version},
        "client": {
            "kind": client.kind.value, "key": _key_text(client.key),
            **({} if client.name is None else {"name": client.name}),
        },
        "general-right": sorted(view.general), "right": sorted(view.rights),
        "valid": {word: at.strftime(_SECONDS) for word, at in period.items() if at is not None},
        "test": [
            {"kind": test.kind.value, "signer": _key_text(test.signer), "at": " ".join(test.uris)}
            for test in view.tests
        ],
        "condition": list(view.conditions), "renew": {} if view.renew is None else {"at": view.renew},
        "digest": {"sha256": certificate.certificate_id.hex()}, "signature": {"ed25519": _signature(certificate)},
    }  # fmt: skip
    return {name: value for name, value in found.items() if value}


def _credential(given: _Fields) -> OverlayCredential:
    named, client = _map(given["object"]), _map(given["client"])
    valid, renew = _map(given.get("valid", {})), _map(given.get("renew", {}))
    return OverlayCredential(
        issuer=public_key(bytes.fromhex(_one(given, "issuer", "key"))),
        object=ObjectDescriptor(
            kind=ObjectKind(named["kind"]), owner=KeyId(bytes.fromhex(named["owner"])), name=named["instance"],
            version=named.get("version"),
        ),
        client=ClientDescriptor(
            kind=ClientKind(client["kind"]), key=_key(client["key"]), name=client.get("name")
        ),
        general=frozenset(_words(given, "general-right")), rights=frozenset(_words(given, "right")),
        period=Period(*(None if word not in valid else _instant(valid[word]) for word in ("from", "until"))),
        tests=tuple(_test(_map(item)) for item in _list(given, "test")), conditions=_words(given, "condition"),
        renew=renew.get("at"),
    )  # fmt: skip


def _signature(certificate: UnverifiedCertificate | Certificate) -> str:
    """Take the signature out of the octets, where it stands last."""
    return certificate.raw[-66:-2].hex()


def _test(item: Mapping[str, str]) -> OnlineTest:
    return OnlineTest(TestKind(item["kind"]), _key(item["signer"]), tuple(item["at"].split()))


def _key_text(key: PublicKey | KeyHash) -> str:
    return key.raw.hex() if isinstance(key, PublicKey) else f"hash:{key.key_id.hex()}"


def _key(text: str) -> PublicKey | KeyHash:
    digits = text.removeprefix("hash:")
    return public_key(bytes.fromhex(text)) if digits == text else KeyHash(KeyId(bytes.fromhex(digits)))


def _instant(text: str) -> datetime:
    return datetime.strptime(text, _SECONDS).replace(tzinfo=UTC)


def _one(given: _Fields, name: str, word: str) -> str:
    return _map(given[name])[word]


def _map(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise TypeError("a member is not what it should be")
    return value


def _list(given: _Fields, name: str) -> list[object]:
    value = given.get(name, [])
    if not isinstance(value, list):
        raise TypeError(f"`{name}` is a list")
    return value


def _words(given: _Fields, name: str) -> tuple[str, ...]:
    found = _list(given, name)
    if not all(isinstance(item, str) for item in found):
        raise TypeError(f"`{name}` is a list of words")
    return tuple(map(str, found))


def _wrong(message: str) -> NoReturn:
    raise EncodingError(message, code="CREDENTIAL_FORM")


def _read_json(data: bytes) -> _Fields:
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_members)
    except (ValueError, RecursionError) as error:
        raise EncodingError("no credential: neither JSON nor XML", code="CREDENTIAL_FORM") from error
    if not isinstance(value, dict):
        _wrong("a credential is one object")
    return value


def _members(pairs: list[tuple[str, object]]) -> _Fields:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a member stands there twice")
    return dict(pairs)


class _XmlReader:
    """Follows the events of one document; its elements become the members that JSON has."""

    def __init__(self) -> None:
        self._found: _Fields = {}
        self._depth = self._count = 0

    def read(self, data: bytes) -> _Fields:
        parser = expat.ParserCreate("utf-8", " ")
        # SECURITY: before anything of a DOCTYPE is read, so that no entity is ever declared.
        parser.StartDoctypeDeclHandler = _refuse("a DOCTYPE has no place in a credential")
        parser.ProcessingInstructionHandler = _refuse("a credential has no processing instructions")
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise EncodingError(f"not XML: {expat.ErrorString(error.code)}", code="CREDENTIAL_FORM") from error
        return self._found

    def _start(self, full: str, values: Mapping[str, str]) -> None:
        namespace, _, name = full.rpartition(" ")
        self._depth, self._count = self._depth + 1, self._count + 1
        root = self._depth == 1
        if namespace != NAMESPACE or self._depth > 2 or self._count > _MAX_ELEMENTS or root != (name == "credential"):
            _wrong("an element that no credential has there")
        if root:
            if values:
                _wrong("a credential has no attributes but those of its parts")
        elif name in _REPEATED:
            listed = self._found.setdefault(name, [])
            assert isinstance(listed, list)  # noqa: S101 - put there above
            if name in _LISTED and set(values) != {"name"}:
                _wrong(f"`{name}` has one attribute, `name`")
            listed.append(values["name"] if name in _LISTED else dict(values))
        elif name in self._found:
            _wrong(f"`{name}` stands there twice")
        else:
            self._found[name] = dict(values)

    def _end(self, _full: str) -> None:
        self._depth -= 1

    def _text(self, text: str) -> None:
        if text.strip(_BLANKS):
            _wrong("a credential has no text between its elements")


def _refuse(message: str) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        _wrong(message)

    return refuse
