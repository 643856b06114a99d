"""Columns of arrays, structs and decimals of their own size: sealed whole, nothing under a null, nothing believed."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from maia.encryption import MAX_VALUE, Compression, decode_column, encode_column, foreign_values
from maia.errors import SealError, UsageError
from maia.events import arrow_type, parse_attribute_type

PANEL = parse_attribute_type("array<struct<test:string,mmol:decimal(4,1),tags:array<string>,open:boolean>>")
ROWS = [
    [{"test": "glucose", "mmol": Decimal("5.4"), "tags": ["a", "bb", None], "open": True}, None],
    None,
    [],
    [{"test": None, "mmol": None, "tags": [], "open": None}],
]
COLUMN = pa.array(ROWS, type=arrow_type(PANEL))
PRICE = parse_attribute_type("decimal(10,2)")


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("start, count", [(0, 4), (1, 3), (0, 1), (3, 1), (2, 0)])
def test_what_is_written_is_read(start: int, count: int, compression: Compression) -> None:
    """Whole columns and parts of columns, packed or not."""
    part = COLUMN.slice(start, count)
    octets = encode_column(part, PANEL, compression=compression, padding=64)
    found = decode_column(octets, count=count)
    found.validate(full=True)
    assert (found.equals(part), len(octets) % 64) == (True, 0)


def test_the_layout_is_the_documented_one() -> None:
    """The head, the type's text, validity, offsets, the elements as a column."""
    kind = parse_attribute_type("array<string>")
    octets = encode_column(pa.array([["ab"], None]), kind)
    elements = b"\1" + np.array([0, 2], dtype="<i4").tobytes() + b"ab"
    body = b"\0\x0darray<string>" + b"\1" + np.array([0, 1, 1], dtype="<i4").tobytes() + elements
    head = bytes((32, 0)) + b"".join(number.to_bytes(4, "big") for number in (2, len(body), len(body)))
    assert octets == head + body


def test_nothing_under_a_null_travels() -> None:
    """Values under a null array, under a null struct and under a null in one are not in the octets."""
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.array(["secret", "x"]), mask=pa.array([True, False]))
    assert b"secret" not in encode_column(lists, parse_attribute_type("array<string>"))
    under = pa.StructArray.from_arrays([pa.array(["secret", "x"])], names=["a"], mask=pa.array([True, False]))
    assert b"secret" not in encode_column(under, parse_attribute_type("struct<a:string>"))
    numbers = pa.StructArray.from_arrays([pa.array([0x5EC2E7, 1])], names=["a"], mask=pa.array([True, False]))
    assert (0x5EC2E7).to_bytes(8, "little") not in encode_column(numbers, parse_attribute_type("struct<a:integer>"))


def test_octets_that_were_changed_are_refused_or_mean_what_they_say() -> None:
    """Twenty thousand damaged columns: one error for all, or a column of the type that is sound throughout."""
    chance, octets = random.Random("nested"), encode_column(COLUMN, PANEL)
    refused = 0
    for _ in range(20_000):
        damaged = bytearray(octets)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if chance.random() < 0.2:
            damaged = damaged[: chance.randrange(len(damaged))]
        try:
            found = decode_column(bytes(damaged), count=4)
        except SealError:
            refused += 1
            continue
        found.validate(full=True)
    assert refused > 10_000


def shaped(text: bytes, body: bytes, *, count: int) -> bytes:
    """Put a column together octet by octet."""
    whole = len(text).to_bytes(2, "big") + text + body
    return bytes((32, 0)) + b"".join(number.to_bytes(4, "big") for number in (count, len(whole), len(whole))) + whole


MANY = np.array([0, 1 << 30], dtype="<i4").tobytes()
DAMAGED = {
    "a plain type written out": shaped(b"integer", bytes(9), count=1),
    "no type": shaped(b"tuple<string>", bytes(9), count=1),
    "text that is no UTF-8": shaped(b"\xff", bytes(9), count=1),
    "a type past the end": bytes((32, 0)) + b"".join(n.to_bytes(4, "big") for n in (1, 4, 4)) + b"\x7f\xffab",
    "a digit too many": shaped(b"decimal(3,1)", b"\1" + (1000).to_bytes(16, "little"), count=1),
    "no offsets": shaped(b"array<string>", b"\1", count=1),
    "offsets that go back": shaped(b"array<boolean>", b"\1" + np.array([0, -1], "<i4").tobytes(), count=1),
    "elements that are not there": shaped(b"array<boolean>", b"\1" + MANY + bytes(16), count=1),
    "octets after the elements": shaped(b"array<boolean>", b"\1" + bytes(8) + b"x", count=1),
    "a field that is cut off": shaped(b"struct<a:boolean>", b"\1" + (9).to_bytes(4, "big") + b"\1\1", count=1),
    "octets after the fields": shaped(b"struct<a:boolean>", b"\1\0\0\0\2\1\1x", count=1),
    "no validity": shaped(b"struct<a:boolean>", b"", count=1),
}


@pytest.mark.parametrize("octets", DAMAGED.values(), ids=DAMAGED)
def test_octets_that_are_no_column_are_refused(octets: bytes) -> None:
    """Each length is compared with what is there; one error for all."""
    with pytest.raises(SealError):
        decode_column(octets, count=1)


def test_decimals_keep_to_their_digits() -> None:
    """What fits 128 bits and not the type is no value of it, however it came."""
    data = b"".join(number.to_bytes(16, "little", signed=True) for number in (10**10 - 1, 10**10, -(10**10)))
    column = pa.Array.from_buffers(arrow_type(PRICE), 3, [None, pa.py_buffer(data)])
    marks = foreign_values(column, PRICE)
    assert marks is not None
    assert marks.tolist() == [False, True, True]
    with pytest.raises(UsageError, match="BLOCK_VALUE"):
        encode_column(column, PRICE)
    assert [str(item) for item in decode_column(encode_column(column.slice(0, 1), PRICE), count=1).to_pylist()] == [
        "99999999.99"
    ]


def test_a_part_that_is_no_value_marks_the_row_that_holds_it() -> None:
    """A number that is none, deep inside, and a value larger than one may be."""
    kind = parse_attribute_type("struct<a:array<float>>")
    column = pa.array([{"a": [1.0]}, None, {"a": [1.0, float("inf")]}, {"a": None}], arrow_type(kind))
    marks = foreign_values(column, kind)
    assert marks is not None
    assert marks.tolist() == [False, False, True, False]
    large = parse_attribute_type("array<string>")
    long = pa.array([["x"], ["y" * (MAX_VALUE // 2)] * 3, None], arrow_type(large))
    marks = foreign_values(long, large)
    assert marks is not None
    assert marks.tolist() == [False, True, False]
    assert foreign_values(long.slice(0, 1), large) is None
