"""Definitions of event types: their bytes, their signature, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.encoding import Sexp, encode, parse_canonical
from maia.errors import EncodingError, MaiaError, MalformedError, SignatureError, UsageError
from maia.events import (
    EVENT_TYPE_LIMITS,
    FIRST,
    EventType,
    Options,
    Publication,
    SignedEventType,
    TypeName,
    UnverifiedEventType,
    Version,
    attribute,
    parse_compatible_event_type,
    parse_event_type,
    sign_event_type,
    type_id,
    verify_type_signature,
)
from maia.principals import (
    Authorisation,
    KeySigner,
    Kind,
    Name,
    issue,
    parse_certificate,
)

PITO, MET, EVIL = (KeySigner(bytes([n]) * 32) for n in (1, 2, 9))
NUMBERPLATE = EventType(
    name=TypeName(PITO.public_key, "uk.gov.pito.Numberplate", Version("8516")),
    attributes=(
        attribute("numberplate", 3265, "string"),
        attribute("timestamp", 9058, "timestamp"),
        attribute("location", 3467, "string"),
    ),
)
CREDENTIAL = parse_certificate(
    issue(Authorisation(issuer=PITO.public_key, subject=MET.public_key, delegate=True, tag=(b"maia-type",)), PITO).raw
)


def _rewrite(raw: bytes, change: object) -> bytes:
    """Replace the body of a signed definition and keep the signature."""
    signed = parse_canonical(raw, limits=EVENT_TYPE_LIMITS)
    assert isinstance(signed, tuple)
    return encode((*signed[:2], change(signed[2]), *signed[3:]))  # type: ignore[operator]


def _edit(position: int, value: Sexp | None) -> object:
    def change(body: tuple[Sexp, ...]) -> tuple[Sexp, ...]:
        items = list(body)
        items[position : position + 1] = [] if value is None else [value]
        return tuple(items)

    return change


def test_reading_gives_back_the_bytes() -> None:
    """Every field survives, and writing what was read gives the same bytes."""
    parent = TypeName(MET.public_key, "TestType1", FIRST)
    previous = sign_event_type(replace(NUMBERPLATE, name=replace(NUMBERPLATE.name, version=Version("7"))), PITO)
    rich = replace(
        NUMBERPLATE,
        options=Options(encryption="event", closed="omit", release="direct", padding=64),  # type: ignore[arg-type]
        extends=parent,
        previous=previous,
        credentials=(CREDENTIAL,),
    )
    signed = sign_event_type(rich, PITO)
    read = parse_event_type(signed.raw)
    assert read == signed
    assert encode(read.to_sexp()) == signed.raw
    assert read.definition.previous == previous
    named = sign_event_type(replace(rich, previous=previous.definition_id), PITO)
    assert parse_event_type(named.raw).definition.previous == previous.definition_id


@pytest.mark.parametrize("bit", range(8))
def test_one_bit_flipped_never_verifies(bit: int) -> None:
    """Any altered octet is refused, at reading or at the signature."""
    raw = sign_event_type(NUMBERPLATE, PITO).raw
    for position in range(len(raw)):
        octets = bytearray(raw)
        octets[position] ^= 1 << bit
        with pytest.raises(MaiaError):
            verify_type_signature(parse_event_type(bytes(octets)))


@pytest.mark.parametrize("name", ["", ".a", "a.", "a..b", "Test*", "a\u202eb", ".".join("a" * 33)])
def test_name_that_is_no_hierarchy_is_refused(name: str) -> None:
    """Parts joined by dots, none empty, no pattern signs."""
    with pytest.raises(MalformedError, match="NAME_FORM"):
        TypeName(PITO.public_key, name, FIRST)


def test_type_id_leaves_the_version_out() -> None:
    """All versions share the identity that travels; owner and name decide it."""
    assert NUMBERPLATE.type_id == type_id(PITO.public_key, "uk.gov.pito.Numberplate")
    assert replace(NUMBERPLATE.name, version=FIRST).type_id == NUMBERPLATE.type_id
    assert type_id(PITO.public_key, "Other") != NUMBERPLATE.type_id


MALFORMED = {
    "an unknown field at the end": lambda body: (*body, (b"comment", b"hello")),
    "no name": _edit(1, None),
    "no attributes field": _edit(2, None),
    "no options": _edit(3, None),
    "fields out of order": lambda body: (body[0], body[2], body[1], body[3]),
    "an empty list of credentials": lambda body: (*body, (b"credentials",)),
    "a credential that is none": lambda body: (*body, (b"credentials", (b"cert",))),
    "too many credentials": lambda body: (*body, (b"credentials", *[b"x"] * 513)),
    "a previous version that is none": lambda body: (*body, (b"previous", b"v1")),
    "a previous hash of another length": lambda body: (*body, (b"previous", (b"hash", b"sha256", b"short"))),
    "a previous hash of another kind": lambda body: (*body, (b"previous", (b"hash", b"md5", bytes(32)))),
    "extends after previous": lambda body: (
        *body, (b"previous", (b"hash", b"sha256", bytes(32))), (b"extends", *NUMBERPLATE.name.to_sexp()[1:]),
    ),
    "extends itself": lambda body: (*body, (b"extends", *NUMBERPLATE.name.to_sexp()[1:])),
    "a name of two": _edit(1, (b"name", PITO.public_key.to_sexp(), b"x")),
    "a local name as owner": _edit(1, (b"name", Name(PITO.public_key, ("x",)).to_sexp(), b"x", b"0")),
    "a version with a leading zero": _edit(1, (b"name", PITO.public_key.to_sexp(), b"x", b"01")),
    "a name that is no UTF-8": _edit(1, (b"name", PITO.public_key.to_sexp(), b"\xff", b"0")),
    "an attribute of two": _edit(2, (b"attributes", (b"attribute", b"a", b"1"))),
    "an attribute of unknown type": _edit(2, (b"attributes", (b"attribute", b"a", b"1", b"quaternion"))),
    "an attribute with a padded uid": _edit(2, (b"attributes", (b"attribute", b"a", b"01", b"string"))),
    "one uid twice": _edit(2, (b"attributes", *[(b"attribute", n, b"1", b"string") for n in (b"a", b"b")])),
    "too many attributes": _edit(2, (b"attributes", *[(b"attribute",)] * 1025)),
    "an option too few": _edit(3, (b"options", (b"encryption", b"attribute"))),
    "an unknown option value": _edit(
        3, (b"options", (b"encryption", b"rot13"), (b"closed", b"null"), (b"release", b"overlay"), (b"padding", b"0"))
    ),
    "padding with a second spelling": _edit(
        3, (b"options", (b"encryption", b"event"), (b"closed", b"null"), (b"release", b"overlay"), (b"padding", b"00"))
    ),
    "padding nobody can hold": _edit(
        3,
        (b"options", (b"encryption", b"event"), (b"closed", b"null"), (b"release", b"overlay"), (b"padding", b"99999")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", MALFORMED.values(), ids=MALFORMED)
def test_malformed_definition_is_refused_whole(change: object) -> None:
    """An unknown, missing, doubled or misplaced field refuses everything, whoever signed."""
    raw = _rewrite(sign_event_type(NUMBERPLATE, PITO).raw, change)
    with pytest.raises(MalformedError):
        parse_event_type(raw)


def test_other_shapes_are_refused() -> None:
    """A certificate is no definition, nor is one without a whole signature."""
    signed = parse_canonical(sign_event_type(NUMBERPLATE, PITO).raw)
    assert isinstance(signed, tuple)
    short = (b"signature", PITO.public_key.to_sexp(), bytes(63))
    for expression in (
        b"x",
        (b"signed",),
        signed[2],
        (*signed[:3], short),
        (*signed, b"more"),
        (signed[0], *signed[2:]),
    ):
        with pytest.raises(EncodingError, match="TYPE_SHAPE"):
            parse_event_type(encode(expression))
    with pytest.raises(EncodingError, match="TYPE_FORMAT"):
        parse_event_type(encode((b"signed", b"2", *signed[2:])))
    with pytest.raises(EncodingError, match="TYPE_SHAPE"):
        parse_event_type(CREDENTIAL.raw)


@given(st.binary(max_size=200))
def test_only_maia_errors_come_from_reading(data: bytes) -> None:
    """Any octets read or are refused."""
    for read in (parse_event_type, parse_compatible_event_type):
        with pytest.raises(MaiaError):
            read(data)


@given(st.data())
def test_mutated_definitions_read_or_are_refused(data: st.DataObject) -> None:
    """Cut, doubled and exchanged pieces of a real definition raise only Maia's errors."""
    raw = sign_event_type(replace(NUMBERPLATE, credentials=(CREDENTIAL,)), PITO).raw
    start = data.draw(st.integers(0, len(raw)))
    stop = data.draw(st.integers(start, len(raw)))
    mutated = raw[:start] + data.draw(st.binary(max_size=12)) + raw[stop:]
    try:
        read = parse_event_type(mutated)
    except MaiaError:
        return
    assert encode(read.to_sexp()) == mutated


def test_lineage_has_a_stated_length() -> None:
    """Versions embed versions, but not without end."""
    current = sign_event_type(replace(NUMBERPLATE, name=replace(NUMBERPLATE.name, version=FIRST)), PITO)
    for number in range(1, 33):
        name = replace(NUMBERPLATE.name, version=Version(str(number)))
        current = sign_event_type(replace(NUMBERPLATE, name=name, previous=current), PITO)
    assert parse_event_type(current.raw) == current
    with pytest.raises(MalformedError, match="LINEAGE_TOO_LONG"):
        replace(NUMBERPLATE, previous=current)
    raw = _rewrite(current.raw, lambda body: (*body[:-1], (b"previous", current.to_sexp())))
    with pytest.raises(MalformedError, match="LINEAGE_TOO_LONG"):
        parse_event_type(raw)


def test_previous_version_of_another_type_is_refused() -> None:
    """A predecessor has the same owner and name."""
    other = sign_event_type(replace(NUMBERPLATE, name=TypeName(PITO.public_key, "Other", FIRST)), PITO)
    with pytest.raises(MalformedError, match="PREVIOUS_OTHER_TYPE"):
        replace(NUMBERPLATE, previous=other)


def test_credentials_cannot_be_taken_away_or_added() -> None:
    """C5: the signature covers the credentials."""
    with_one = sign_event_type(replace(NUMBERPLATE, credentials=(CREDENTIAL,)), MET)
    stripped = _rewrite(with_one.raw, lambda body: body[:-1])
    with pytest.raises(SignatureError):
        verify_type_signature(parse_event_type(stripped))
    added = _rewrite(
        sign_event_type(NUMBERPLATE, MET).raw,
        lambda body: (*body, (b"credentials", parse_canonical(CREDENTIAL.raw))),
    )
    with pytest.raises(SignatureError):
        verify_type_signature(parse_event_type(added))
    with pytest.raises(MalformedError, match="TOO_MANY_CREDENTIALS"):
        replace(NUMBERPLATE, credentials=(CREDENTIAL,) * 513)


def test_signature_of_another_kind_does_not_fit() -> None:
    """What was signed as a certificate or a parcel is no definition."""
    body = encode(NUMBERPLATE.to_sexp())
    signed = sign_event_type(NUMBERPLATE, PITO)
    for kind in (Kind.CERTIFICATE, Kind.PARCEL):
        with pytest.raises(SignatureError):
            verify_type_signature(replace(signed, signature=PITO.sign(kind, body)))


def _compatible_raw() -> bytes:
    body = NUMBERPLATE.to_sexp()
    mark = (b"signature", MET.public_key.to_sexp(), MET.sign(Kind.EVENT_TYPE, encode(body)))
    return encode((b"signed", b"1", body, (b"credentials", parse_canonical(CREDENTIAL.raw)), mark))


def test_healthcare_scope_is_read_only_when_asked_for_and_stays_marked() -> None:
    """The signature over name and attributes alone needs its own reader, and the mark survives."""
    raw = _compatible_raw()
    with pytest.raises(EncodingError, match="TYPE_SHAPE"):
        parse_event_type(raw)
    read = parse_compatible_event_type(raw)
    assert read.compatible
    assert read.definition.credentials == (CREDENTIAL,)
    assert verify_type_signature(read).compatible
    with pytest.raises(EncodingError, match="TYPE_SHAPE"):
        parse_compatible_event_type(sign_event_type(NUMBERPLATE, PITO).raw)
    inside = _rewrite(raw, lambda body: (*body, (b"credentials", parse_canonical(CREDENTIAL.raw))))
    with pytest.raises(EncodingError, match="TYPE_SHAPE"):
        parse_compatible_event_type(inside)


def test_verified_is_a_type_that_nobody_else_makes() -> None:
    """A signed definition comes from checking a signature and from nowhere else."""
    with pytest.raises(UsageError):
        SignedEventType(NUMBERPLATE, PITO.public_key, b"", False, object())  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError)):
        replace(verify_type_signature(sign_event_type(NUMBERPLATE, PITO)), signer=EVIL.public_key)


def test_definition_too_large_is_not_signed() -> None:
    """What no reader would accept is not written."""
    long_names = tuple(attribute(f"{n:04d}" + "x" * 250, n, "string") for n in range(1024))
    big = sign_event_type(replace(NUMBERPLATE, attributes=long_names), PITO)
    current: UnverifiedEventType = big
    for number in (1, 2):
        name = replace(NUMBERPLATE.name, version=Version(str(number)))
        current = sign_event_type(replace(NUMBERPLATE, name=name, attributes=long_names, previous=current), PITO)
    last = replace(NUMBERPLATE, attributes=long_names, previous=current)
    with pytest.raises(MalformedError, match="TYPE_TOO_LARGE"):
        sign_event_type(last, PITO)


def test_options_are_closed_words() -> None:
    """Unknown words and numbers are refused."""
    for bad in ({"encryption": "none"}, {"closed": "hide"}, {"release": "any"}, {"padding": -1}, {"padding": True}):
        with pytest.raises(MalformedError, match="TYPE_OPTION"):
            Options(**bad)  # type: ignore[arg-type]


def test_attributes_are_found_by_name_and_uid() -> None:
    """Names are for people, uids for the machine."""
    assert NUMBERPLATE.by_name("location").uid == "3467"
    found = NUMBERPLATE.by_uid(NUMBERPLATE.by_name("location").uid)
    assert found == NUMBERPLATE.attributes[2]
    assert NUMBERPLATE.by_uid("1") is None  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="NO_ATTRIBUTE"):
        NUMBERPLATE.by_name("Location")
    with pytest.raises(MalformedError, match="NO_ATTRIBUTE"):
        Publication(NUMBERPLATE, {"Location": "Victoria"})
