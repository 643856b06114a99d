"""Hashes, names and thresholds."""

from __future__ import annotations

import pytest

from maia.encoding import Sexp
from maia.errors import EncodingError, KeyFormatError, MalformedError
from maia.principals import (
    KeyHash,
    Name,
    ObjectHash,
    Threshold,
    check_name_part,
    decode_text,
    encode_text,
    parse_principal,
    parse_subject,
    principal_id,
    threshold_leaves,
)
from maia.testing import People

PEOPLE = People("a", "b", "c")
A, B, C = (PEOPLE[name].public_key for name in "abc")
PRINCIPALS = {
    "key": A,
    "hash": KeyHash(A.key_id),
    "name": Name(A, ("brokers", "löndon")),
    "name of a hash": Name(KeyHash(A.key_id), ("x",)),
    "threshold": Threshold(2, (A, KeyHash(B.key_id), Name(C, ("x",)))),
    "nested threshold": Threshold(1, (A, Threshold(2, (B, C)))),
}


@pytest.mark.parametrize("principal", PRINCIPALS.values(), ids=PRINCIPALS.keys())
def test_principals_read_back(principal: object):
    """Written and read again, a principal is the same, and so is its identity."""
    again = parse_principal(principal.to_sexp())
    assert again == principal
    assert principal_id(again) == principal_id(principal)
    assert parse_subject(principal.to_sexp()) == principal


def test_an_identity_does_not_depend_on_how_keys_are_spelled():
    """Keys and their hashes give one identity, in names and thresholds too."""
    spelled = Threshold(1, (KeyHash(A.key_id), Threshold(1, (Name(KeyHash(B.key_id), ("x",)), C))))
    plain = Threshold(1, (A, Threshold(1, (Name(B, ("x",)), KeyHash(C.key_id)))))
    assert principal_id(spelled) == principal_id(plain)
    assert len({principal_id(principal) for principal in PRINCIPALS.values()}) == len(PRINCIPALS) - 1


def test_leaves_are_listed_in_order_with_repetitions():
    """A threshold's leaves, whatever its nesting."""
    assert threshold_leaves(Threshold(1, (A, Threshold(1, (B, A)), C))) == [A, B, A, C]


SHAPES: dict[str, Sexp] = {
    "a string": b"Self",
    "an empty list": (),
    "an unknown word": (b"person", b"x"),
    "another algorithm": (b"public-key", (b"rsa", bytes(32))),
    "a name without parts": (b"name", A.to_sexp()),
    "a name of a name": (b"name", (b"name", A.to_sexp(), b"x"), b"y"),
    "a name of a threshold": (b"name", Threshold(1, (A,)).to_sexp(), b"y"),
    "a name with a list": (b"name", A.to_sexp(), (b"x",)),
    "a name that is no text": (b"name", A.to_sexp(), b"\xff"),
    "an empty name": (b"name", A.to_sexp(), b""),
    "a name with a control character": (b"name", A.to_sexp(), b"a\nb"),
    "an overlong name": (b"name", A.to_sexp(), b"x" * 257),
    "too many parts": (b"name", A.to_sexp(), *(b"x",) * 17),
    "an object as a member": (b"k-of-n", b"1", b"1", ObjectHash(bytes(32)).to_sexp()),
    "a threshold without members": (b"k-of-n", b"1", b"0"),
    "a threshold of a string": (b"k-of-n", b"1", b"1", b"Self"),
}


@pytest.mark.parametrize("expression", SHAPES.values(), ids=SHAPES.keys())
def test_what_is_no_principal_is_refused(expression: Sexp):
    """Only keys, hashes, names and thresholds are principals."""
    with pytest.raises(MalformedError):
        parse_principal(expression)


def test_thresholds_are_bounded():
    """Nesting and leaves have a limit, in memory as in bytes."""
    nested = Threshold(1, (A,))
    for _ in range(7):
        nested = Threshold(1, (nested,))
    assert parse_principal(nested.to_sexp()) == nested
    with pytest.raises(EncodingError, match="deeper"):
        Threshold(1, (nested,))
    with pytest.raises(EncodingError, match="PRINCIPAL_SHAPE"):
        parse_principal((b"k-of-n", b"1", b"1", nested.to_sexp()))
    assert len(threshold_leaves(Threshold(1, (A,) * 64))) == 64
    with pytest.raises(EncodingError, match="leaves"):
        Threshold(1, (A,) * 65)


@pytest.mark.parametrize("k", [0, 3, -1, True, 1.0, "1"], ids=repr)
def test_a_threshold_takes_a_plain_number(k: object):
    """K is an int between 1 and n, never something that merely compares like one."""
    with pytest.raises(EncodingError, match="THRESHOLD_RANGE"):
        Threshold(k, (A, B))


def test_an_object_is_no_member_and_no_short_hash():
    """An object hash is whole, and joins no threshold."""
    with pytest.raises(EncodingError, match="THRESHOLD_MEMBER"):
        Threshold(1, (A, ObjectHash(bytes(32))))
    with pytest.raises(KeyFormatError):
        ObjectHash(bytes(31))
    with pytest.raises(KeyFormatError):
        KeyHash(bytes(20))


@pytest.mark.parametrize("part", ["", "a\x00", "\ud800", "x" * 257], ids=ascii)
def test_a_name_part_is_short_printable_text(part: str):
    """Empty, overlong and unprintable parts are refused."""
    with pytest.raises(EncodingError):
        check_name_part(part)
    with pytest.raises(EncodingError):
        Name(A, (part,))


def test_a_name_has_parts():
    """No parts, or too many, make no name."""
    for parts in ((), ("x",) * 17):
        with pytest.raises(EncodingError, match="NAME_LENGTH"):
            Name(A, parts)


def test_text_is_utf8():
    """Reading and writing text names what was wrong."""
    assert decode_text("é".encode(), "a note") == "é"
    assert encode_text("é", "a note") == "é".encode()
    with pytest.raises(EncodingError, match="a note is not UTF-8"):
        encode_text("\ud800", "a note")
    with pytest.raises(EncodingError, match="expected a string for a note"):
        decode_text((b"x",), "a note")
