"""JSON with more than one reading is refused, whoever reads it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import MalformedError
from maia.wire import read_json

AMBIGUOUS = {
    "a name twice": b'{"a":1,"a":2}',
    "a name twice, deeper": b'[{"b":{"a":1,"a":1}}]',
    "a name twice by escapes": b'{"a":1,"\\u0061":2}',
    "NaN": b'{"a":NaN}',
    "Infinity": b"[Infinity]",
    "-Infinity": b"[-Infinity]",
    "out of range": b"[1e400]",
    "far below": b"[-1e400]",
    "2^53": b"[9007199254740992]",
    "2^53+1": b"[9007199254740993]",
    "-2^53-1": b"[-9007199254740993]",
    "thousands of digits": b"[" + b"9" * 5000 + b"]",
    "half a character": b'["\\ud800"]',
    "half a character in a name": b'{"\\udfff":1}',
    "another encoding": '["é"]'.encode("latin-1"),
    "UTF-16": '["a"]'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf[]",
    "too deep": b"[" * 33 + b"]" * 33,
    "very deep": b"[" * 100_000,
    "too deep behind strings with backslashes": b'["\\\\",' + b"[" * 32 + b"]" * 33,
    "too deep behind escaped quotes": b'["\\\\\\"","[",' + b"[" * 32 + b"]" * 33,
    "two values": b"{} {}",
    "nothing": b"",
    "a comma too many": b"[1,]",
    "single quotes": b"{'a':1}",
    "a control character": b'["\n"]',
}


@pytest.mark.threat("T25")
@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_json_with_no_reading_or_several_is_refused(data: bytes) -> None:
    """Two readers must not disagree about what was asked."""
    with pytest.raises(MalformedError) as refusal:
        read_json(data)
    assert refusal.value.code == "JSON"


PLAIN = {
    "nesting up to the limit": b"[" * 32 + b"]" * 32,
    "brackets inside a string": b'["' + b"[" * 100 + b'"]',
    "an escaped quote": b'["\\"[[[", "\\\\"]',
    "brackets between escaped quotes": b'["\\\\\\"' + b"[" * 100 + b'\\"' + b"{" * 100 + b'\\\\"]',
    "many lists beside each other": b"[" + b",".join([b"[]"] * 100) + b"]",
    "the largest integer": b"[9007199254740991]",
    "a whole character in two halves": b'["\\ud83d\\ude00"]',
}


@pytest.mark.parametrize("data", PLAIN.values(), ids=PLAIN)
def test_plain_json_is_read_as_everybody_reads_it(data: bytes) -> None:
    """What has one reading is read so."""
    assert read_json(data) == json.loads(data)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner),
    max_leaves=12,
)  # fmt: skip


@given(value=VALUES)
def test_what_is_written_is_read(value: object) -> None:
    """Every value that JSON can hold comes back."""
    assert read_json(json.dumps(value).encode()) == value


@given(data=st.binary(max_size=200))
def test_any_octets_raise_only_maias_errors(data: bytes) -> None:
    """The standard reader is the oracle for what is JSON at all."""
    try:
        value = read_json(data)
    except MalformedError:
        return
    assert json.loads(data) == value
