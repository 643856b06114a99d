"""Single columns: layout, limits, bombs, and values that no attribute has."""

from __future__ import annotations

import random
import resource
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from maia.encryption import MAX_VALUE, Compression, decode_column, encode_column, foreign_values
from maia.encryption.columns import MAX_PLAINTEXT
from maia.errors import SealError, UsageError
from maia.events import AttributeType, arrow_type


def by_hand(kind, body, *, count, size=None, stored=None, compression=0, tail=b""):
    """A column put together octet by octet."""
    code = list(AttributeType).index(kind) + 1
    numbers = (count, len(body) if size is None else size, len(body) if stored is None else stored)
    return bytes((code, compression)) + b"".join(n.to_bytes(4, "big") for n in numbers) + body + tail


def test_the_layout_is_the_documented_one():
    """Head, validity bits, offsets, text, zeros."""
    octets = encode_column(pa.array(["ab", None, "c"]), AttributeType.STRING, padding=48)
    body = bytes([0b101]) + np.array([0, 2, 2, 3], dtype="<i4").tobytes() + b"abc"
    assert octets == by_hand(AttributeType.STRING, body, count=3, tail=bytes(48 - 14 - len(body)))


DAMAGED = {
    "too short": b"\x01\x00",
    "an unknown type": b"\x63" + by_hand(AttributeType.INTEGER, bytes(9), count=1)[1:],
    "another count": by_hand(AttributeType.INTEGER, bytes(17), count=2),
    "a body past the end": by_hand(AttributeType.INTEGER, bytes(9), count=1, stored=10),
    "a body shorter than its size": by_hand(AttributeType.INTEGER, bytes(9), count=1, size=10),
    "a number too many": by_hand(AttributeType.INTEGER, bytes(17), count=1),
    "a number too few": by_hand(AttributeType.INTEGER, bytes(8), count=1),
    "a truth value too many": by_hand(AttributeType.BOOLEAN, bytes(3), count=1),
    "no offsets": by_hand(AttributeType.STRING, bytes(1), count=1),
    "text after the last offset": by_hand(AttributeType.STRING, bytes(9) + b"x", count=1),
    "offsets that do not start at 0": by_hand(AttributeType.BINARY, b"\1" + b"\1\0\0\0\1\0\0\0" + b"x", count=1),
    "text that is no UTF-8": by_hand(AttributeType.STRING, b"\1" + bytes(4) + b"\1\0\0\0" + b"\xff", count=1),
    "padding that is not zero": by_hand(AttributeType.INTEGER, bytes(9), count=1, tail=b"\0\1"),
    "padding without end": by_hand(AttributeType.INTEGER, bytes(9), count=1, tail=bytes(1 << 16)),
    "an unknown compression": by_hand(AttributeType.INTEGER, bytes(9), count=1, compression=3),
    "LZ4 that is none": by_hand(AttributeType.INTEGER, b"\xff" * 9, count=1, compression=1),
    "Zstandard that is none": by_hand(AttributeType.INTEGER, b"\xff" * 9, count=1, compression=2),
    "NaN": by_hand(AttributeType.FLOAT, b"\1" + np.float64("nan").tobytes(), count=1),
    "infinity": by_hand(AttributeType.FLOAT, b"\1" + np.float64("inf").tobytes(), count=1),
    "the year 10000": by_hand(AttributeType.DATE, b"\1" + np.int32(2932897).tobytes(), count=1),
    "an instant before the year 1": by_hand(AttributeType.TIMESTAMP, b"\1" + np.int64(-(2**62)).tobytes(), count=1),
    "a decimal of 39 digits": by_hand(AttributeType.DECIMAL, b"\1" + (10**38).to_bytes(16, "little"), count=1),
}  # fmt: skip


@pytest.mark.parametrize("octets", DAMAGED.values(), ids=DAMAGED)
def test_octets_that_are_no_column_are_refused(octets):
    """Nothing is believed: lengths, offsets, codes and values are all compared with what they must be."""
    with pytest.raises(SealError) as caught:
        decode_column(octets, count=1)
    assert str(caught.value) == "[SEAL] the block cannot be opened"


@pytest.mark.threat("T53")
def test_offsets_whose_differences_overflow_are_refused():
    """Offsets that leave the data and come back by overflow would read another process's worth of memory."""
    offsets = np.array([0, 2**31 - 1, -2, 3], dtype=np.int32)
    for kind in (AttributeType.BINARY, AttributeType.STRING):
        with pytest.raises(SealError):
            decode_column(by_hand(kind, b"\x07" + offsets.tobytes() + b"abc", count=3), count=3)


def zeros(size):
    """A body of zeros, packed."""
    return pa.compress(bytes(size), codec="zstd", asbytes=True)


BOMBS = {
    "more than announced": (AttributeType.INTEGER, zeros(64 << 20), 9, 1),
    "a gigabyte announced": (AttributeType.STRING, zeros(64 << 20), MAX_PLAINTEXT, 1),
    "more than a block holds": (AttributeType.STRING, zeros(1 << 20), 2**32 - 1, 1),
    "two thousand million values": (AttributeType.INTEGER, zeros(1 << 20), 2**31, 2**31),
    "as dense as can be": (AttributeType.BINARY, zeros(512 << 20), 512 << 20, 1),
}


@pytest.mark.threat("T53")
@pytest.mark.parametrize("kind, body, size, count", BOMBS.values(), ids=BOMBS)
def test_a_small_block_does_not_fill_the_memory(kind, body, size, count):
    """A block that inflates beyond what it announced, or announces too much, is refused before memory is spent."""
    octets = by_hand(kind, body, count=count, size=size, compression=2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(SealError):
        decode_column(octets, count=count)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 << 10  # kibibytes


def test_a_column_that_would_look_like_a_bomb_travels_uncompressed():
    """What the reader would refuse as too dense the writer does not compress; it still arrives."""
    column = pa.nulls(5_000_000, pa.string())
    octets = encode_column(column, AttributeType.STRING, compression=Compression.ZSTD)
    assert octets[1] == Compression.NONE
    assert decode_column(octets, count=5_000_000).null_count == 5_000_000
    small = encode_column(column.slice(0, 100_000), AttributeType.STRING, compression=Compression.ZSTD)
    assert small[1] == Compression.ZSTD
    assert len(small) < 1_000


OUTSIDE = {
    "NaN": (AttributeType.FLOAT, pa.array([1.0, None, float("nan")])),
    "infinity": (AttributeType.FLOAT, pa.array([1.0, None, float("-inf")])),
    "the year 10000": (AttributeType.DATE, pa.array([0, None, 2932897], pa.int32()).cast(pa.date32())),
    "before the year 1": (AttributeType.DATE, pa.array([0, None, -719163], pa.int32()).cast(pa.date32())),
    "an instant too late": (
        AttributeType.TIMESTAMP, pa.array([0, None, 253402300800000000]).cast(pa.timestamp("us", "UTC")),
    ),
    "an instant too early": (
        AttributeType.TIMESTAMP, pa.array([0, None, -62135596800000001]).cast(pa.timestamp("us", "UTC")),
    ),
    "a text too long": (AttributeType.STRING, pa.array(["", None, "x" * (MAX_VALUE + 1)])),
    "octets too many": (AttributeType.BINARY, pa.array([b"", None, b"x" * (MAX_VALUE + 1)])),
}  # fmt: skip


def decimals(*unscaled):
    """Decimals from 128-bit numbers, in range or not."""
    data = b"".join(number.to_bytes(16, "little", signed=True) for number in unscaled)
    return pa.Array.from_buffers(arrow_type(AttributeType.DECIMAL), len(unscaled), [None, pa.py_buffer(data)])


@pytest.mark.parametrize("kind, column", OUTSIDE.values(), ids=OUTSIDE)
def test_values_outside_their_type_are_marked_and_not_sealed(kind, column):
    """Arrow holds them, Maia's types do not; the rows are named, nulls never."""
    assert foreign_values(column, kind).tolist() == [False, False, True]
    assert foreign_values(column.slice(1), kind).tolist() == [False, True]
    assert foreign_values(column.slice(0, 2), kind) is None
    with pytest.raises(UsageError):
        encode_column(column, kind)


def test_the_ends_of_each_type_belong_to_it():
    """The first and the last value of every type are values of it."""
    ends = {
        AttributeType.DATE: [date.min, date.max],
        AttributeType.TIMESTAMP: [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
        AttributeType.FLOAT: [-1.7976931348623157e308, 5e-324],
        AttributeType.STRING: ["x" * MAX_VALUE],
        AttributeType.DECIMAL: [Decimal("99999999999999999999.999999999999999999"), Decimal(-1)],
    }
    for kind, values in ends.items():
        column = pa.array(values, type=arrow_type(kind))
        assert foreign_values(column, kind) is None
        assert decode_column(encode_column(column, kind), count=len(values)).to_pylist() == values


def test_decimals_are_compared_to_the_last_digit():
    """Numbers of 38 digits are in, of 39 out, on both sides of zero."""
    limit = 10**38
    numbers = [
        limit - 1,
        limit,
        limit + 1,
        1 - limit,
        -limit,
        -limit - 1,
        2**127 - 1,
        -(2**127),
        0,
        -1,
        2**64,
        -(2**64),
    ]
    assert foreign_values(decimals(*numbers), AttributeType.DECIMAL).tolist() == [abs(n) >= limit for n in numbers]
    rng = random.Random("decimals")
    numbers = [rng.choice((1, -1)) * (limit + rng.randint(-(2**70), 2**70)) for _ in range(2_000)]
    assert foreign_values(decimals(*numbers), AttributeType.DECIMAL).tolist() == [abs(n) >= limit for n in numbers]


def test_a_column_of_another_type_is_not_encoded():
    """Nothing is cast on the way into a block."""
    with pytest.raises(UsageError):
        encode_column(pa.array([1], pa.int32()), AttributeType.INTEGER)
    for padding in (-1, (1 << 16) + 1):
        with pytest.raises(UsageError):
            encode_column(pa.array([1]), AttributeType.INTEGER, padding=padding)


def test_a_column_too_large_for_a_block_is_not_encoded(monkeypatch):
    """A block has a limit, which the writer keeps as well as the reader."""
    monkeypatch.setattr("maia.encryption.columns.MAX_PLAINTEXT", 100)
    with pytest.raises(UsageError) as caught:
        encode_column(pa.array(range(100)), AttributeType.INTEGER)
    assert caught.value.code == "BLOCK_TOO_LARGE"


@pytest.mark.parametrize("kind", AttributeType)
def test_an_empty_column_is_a_column(kind):
    """No values at all come back as no values, made so or cut so."""
    for column in (pa.array([], arrow_type(kind)), pa.nulls(3, arrow_type(kind)).slice(1, 0)):
        assert decode_column(encode_column(column, kind), count=0).equals(pa.array([], arrow_type(kind)))
