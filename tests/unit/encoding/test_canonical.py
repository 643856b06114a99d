"""Canonical S-expressions: one value, one spelling."""

from __future__ import annotations

import pytest

from maia.encoding import Hinted, Sexp, SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, UsageError

PAIRS: dict[str, tuple[Sexp, bytes]] = {
    "empty string": (b"", b"0:"),
    "string": (b"abc", b"3:abc"),
    "string of delimiters": (b"():[]", b"5:():[]"),
    "string of nul": (b"\x00", b"1:\x00"),
    "ten octets": (b"x" * 10, b"10:" + b"x" * 10),
    "empty list": ((), b"()"),
    "list": ((b"a", (b"b",), b"c"), b"(1:a(1:b)1:c)"),
    "hint": (Hinted(b"text/plain", b"foo"), b"[10:text/plain]3:foo"),
    "empty hint": (Hinted(b"", b""), b"[0:]0:"),
    "hint in a list": ((Hinted(b"t", b"a"), b"b"), b"([1:t]1:a1:b)"),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_reader_and_writer_are_inverse(pair: tuple[Sexp, bytes]):
    """What is written is read, and what is read is written, octet for octet."""
    expression, data = pair
    assert encode(expression) == data
    assert parse_canonical(data) == expression
    assert parse_canonical(bytearray(data)) == expression


@pytest.mark.parametrize("thing", ["text", 5, None, [b"list"], (b"a", "text"), (b"a", [b"b"])], ids=repr)
def test_only_octets_hints_and_tuples_are_written(thing: object):
    """Anything else is the caller's mistake."""
    with pytest.raises(UsageError):
        encode(thing)


REFUSED = {
    b"(04:cert)": "leading zero at octet 1",
    b"4cert": "without a colon at octet 0",
    b"12345678901:x": "without a colon at octet 0",
    b"5:cert": "runs past the end at octet 2",
    b"(4:cert": "ends too early at octet 7",
    b"": "ends too early at octet 0",
    b")": "without an opening one at octet 0",
    b"4:certs": "after the expression at octet 6",
    b"~": "unexpected octet at octet 0",
    b"[1:a": "without `]` at octet 4",
    b"[x]1:a": "expected an octet string at octet 1",
    b"[1:a]x": "expected an octet string at octet 5",
    b"[01:a]1:a": "expected an octet string at octet 1",
    b"[1:a](1:b)": "expected an octet string at octet 5",
    b"[9:a]1:a": "runs past the end at octet 3",
}


@pytest.mark.parametrize("data", REFUSED, ids=repr)
def test_refusals_say_what_and_where(data: bytes):
    """A message names the fault and its position."""
    with pytest.raises(EncodingError) as caught:
        parse_canonical(data)
    assert caught.value.code == "SEXP_NOT_CANONICAL"
    assert REFUSED[data] in caught.value.message


LIMITS = SexpLimits(max_bytes=40, max_depth=2, max_atom=5)
BOUNDS = {
    "size, at the limit": (b"(" + b"1:a" * 12 + b"0:)", None),
    "size, above": (b"(" + b"1:a" * 13 + b"0:)", "SEXP_TOO_LARGE"),
    "depth, at the limit": (b"((1:a))", None),
    "depth, above": (b"(((1:a)))", "SEXP_TOO_DEEP"),
    "string, at the limit": (b"5:aaaaa", None),
    "string, above": (b"6:aaaaaa", "SEXP_TOO_LARGE"),
    "hint, above": (b"[6:aaaaaa]1:a", "SEXP_TOO_LARGE"),
    "hinted string, above": (b"[1:a]6:aaaaaa", "SEXP_TOO_LARGE"),
}


@pytest.mark.parametrize("case", BOUNDS.values(), ids=BOUNDS.keys())
def test_limits(case: tuple[bytes, str | None]):
    """Size, depth and length are bounded, each exactly at its limit."""
    data, code = case
    if code is None:
        assert encode(parse_canonical(data, limits=LIMITS)) == data
        return
    with pytest.raises(EncodingError) as caught:
        parse_canonical(data, limits=LIMITS)
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["max_bytes", "max_depth", "max_atom"])
def test_limits_that_admit_nothing_are_refused(name: str):
    """A limit is at least one."""
    with pytest.raises(UsageError):
        SexpLimits(**{name: 0})


def test_depth_is_bounded_by_limits_and_not_by_the_interpreter():
    """Fifty thousand levels are read and written without recursion."""
    depth = 50_000
    data = b"(" * depth + b")" * depth
    assert encode(parse_canonical(data, limits=SexpLimits(max_depth=depth))) == data
