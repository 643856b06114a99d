"""The advanced form: what people write, and what they read."""

from __future__ import annotations

import pytest

from maia.encoding import Hinted, Sexp, SexpLimits, format_advanced, parse_advanced
from maia.errors import EncodingError, UsageError

READ: dict[str, Sexp] = {
    "abc": b"abc",
    "  abc\n": b"abc",
    "(a b-c /d *e +f =g .h _i :j)": (b"a", b"b-c", b"/d", b"*e", b"+f", b"=g", b".h", b"_i", b":j"),
    '"with space"': b"with space",
    '""': b"",
    r'"\n\t\r\b\v\f\a\?\"\'\\"': b"\n\t\r\b\v\f\a?\"'\\",
    r'"\x41\101"': b"AA",
    '"a\\\nb\\\r\nc\\\n\rd\\\re"': b"abcde",
    "#616263#": b"abc",
    "# 61 62\n63 #": b"abc",
    "##": b"",
    "|YWJj|": b"abc",
    "|YW Jj|": b"abc",
    "|YWI|": b"ab",
    "|YWI=|": b"ab",
    "3:a b": b"a b",
    '3"abc"': b"abc",
    "3#616263#": b"abc",
    "3|YWJj|": b"abc",
    "0:": b"",
    "{MzphYmM=}": b"abc",
    "(a {KDE6YikK})": None,
    "(a {KDE6Yik=})": (b"a", (b"b",)),
    "[text/plain]foo": Hinted(b"text/plain", b"foo"),
    '[ "a b" ] #00#': Hinted(b"a b", b"\x00"),
    "()": (),
    "( ( ) )": ((),),
    "é": None,
    '"é"': "é".encode(),
}


@pytest.mark.parametrize("text", READ)
def test_reading(text: str):
    """Each form of a string, hints, transport, white space; what is no expression is refused."""
    if READ[text] is None:
        with pytest.raises(EncodingError):
            parse_advanced(text)
    else:
        assert parse_advanced(text) == READ[text]


REFUSED = {
    "": "ends too early at octet 0",
    "(": "ends too early at octet 1",
    "(a": "ends too early",
    ")": "without an opening one at octet 0",
    "a b": "after the expression at octet 2",
    "a)": "after the expression at octet 1",
    '"abc': "without an end at octet 0",
    "#616#": "odd number",
    "#61": "without an end at octet 0",
    "#6g#": "without an end at octet 0",
    "|YWJj": "without an end at octet 0",
    "|Y|": "not base64",
    "|YW=Jj|": "not base64",
    "{KDE6": "without `}` at octet 0",
    '4"abc"': "declared length differs",
    "4:abc": "runs past the end",
    "[a": "without `]`",
    "[a]": "expected a token",
    "[(a)]b": "expected a token",
    "[a](b)": "expected a token",
    "5": "expected a token",
    r'"\q"': "unknown escape",
    r'"\x4"': "unknown escape",
    r'"\12"': "unknown escape",
    r'"\400"': "beyond one octet",
    "\ud800": "lone surrogate",
}


@pytest.mark.parametrize("text", REFUSED, ids=ascii)
def test_refusals_say_what(text: str):
    """A message names the fault."""
    with pytest.raises(EncodingError) as caught:
        parse_advanced(text)
    assert caught.value.code == "SEXP_SYNTAX"
    assert REFUSED[text] in caught.value.message


WRITTEN: dict[str, Sexp] = {
    "(tag (* set read))": (b"tag", (b"*", b"set", b"read")),
    '"10"': b"10",
    r'"a \"b\" \\"': b'a "b" \\',
    "#00ff#": b"\x00\xff",
    "()": (),
    "(() a)": ((), b"a"),
    '["a b"]foo': Hinted(b"a b", b"foo"),
    '""': b"",
    "|" + "AA" * 27 + "AA|": bytes(42),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_writing(text: str):
    """Tokens stand bare, text is quoted, other octets are hexadecimal or base64; all of it reads back."""
    assert format_advanced(WRITTEN[text]) == text
    assert parse_advanced(text) == WRITTEN[text]


def test_only_expressions_are_written():
    """Anything else is the caller's mistake."""
    with pytest.raises(UsageError):
        format_advanced((b"a", "text"))


LIMITS = SexpLimits(max_bytes=30, max_depth=2, max_atom=4)


@pytest.mark.parametrize(
    "text, code",
    [
        ("((a))", None),
        ("(((a)))", "SEXP_TOO_DEEP"),
        ("a" * 31, "SEXP_TOO_LARGE"),
        ("abcde", "SEXP_TOO_LARGE"),
        ("5:abcde", "SEXP_TOO_LARGE"),
        ("#6162636465#", "SEXP_TOO_LARGE"),
        ("(({MTph}))", "SEXP_TOO_DEEP"),
        ("({KDE6YSk=})", None),
        ("({KCgxOmEpKQ==})", "SEXP_TOO_DEEP"),
        ("{KCgxOmEpKQ==}", None),
    ],
)
def test_limits_hold_for_every_form(text: str, code: str | None):
    """Size, depth and length are bounded, transport forms inside lists included."""
    if code is None:
        assert parse_advanced(text, limits=LIMITS) in {((b"a",),), (b"a",)}
        return
    with pytest.raises(EncodingError) as caught:
        parse_advanced(text, limits=LIMITS)
    assert caught.value.code == code
