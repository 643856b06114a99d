"""Columns as octets: nothing is lost, nothing hidden travels, and damaged octets raise one error."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from strategies_events import columns

from maia.encryption import Compression, decode_column, encode_column
from maia.errors import SealError
from maia.events import AttributeType

sizes = st.integers(0, 20)
PADDINGS = [0, 1, 7, 64, 65_536]


@given(st.data(), sizes, st.sampled_from(Compression), st.sampled_from(PADDINGS))
def test_decoding_undoes_encoding(data, size, compression, padding):
    """Every column of every type comes back: nulls, slices, empty texts, compressed or not, padded or not."""
    kind, column = data.draw(columns(size))
    octets = encode_column(column, kind, compression=compression, padding=padding)
    back = decode_column(octets, count=size)
    assert back.type == column.type
    assert back.to_pylist() == column.to_pylist()
    assert back.null_count == column.null_count
    if padding:
        assert len(octets) % padding == 0
    back.validate(full=True)


@given(st.data(), st.integers(1, 20))
def test_octets_depend_on_the_values_alone(data, size):
    """Two columns with the same values give the same octets, whatever lies around or under them in memory."""
    kind, column = data.draw(columns(size))
    fresh = pa.array(column.to_pylist(), type=column.type)
    assert encode_column(column, kind) == encode_column(fresh, kind)


@given(st.data(), st.integers(1, 20))
def test_values_under_nulls_do_not_travel(data, size):
    """A value that was masked away leaves the same octets as a value that never was."""
    kind, column = data.draw(columns(size))
    hidden = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    masked = pa.compute.if_else(pa.array(~hidden), column, pa.scalar(None, column.type))
    never = pa.array(
        [None if gone else value for gone, value in zip(hidden, column.to_pylist(), strict=True)], column.type
    )
    assert encode_column(masked, kind) == encode_column(never, kind)


@given(st.binary(max_size=80), st.integers(0, 5))
def test_any_octets_decode_or_raise_one_error(octets, count):
    """Whatever the octets are, reading them gives a sound column or `SealError` and nothing else."""
    said = "[SEAL] the block cannot be opened"
    try:
        decode_column(octets, count=count).validate(full=True)
    except SealError as error:
        said = str(error)
    assert said == "[SEAL] the block cannot be opened"


@given(st.data(), st.integers(1, 12), st.sampled_from(Compression))
def test_damaged_octets_decode_to_something_sound_or_nothing(data, size, compression):
    """One octet changed anywhere never yields a column that Arrow itself would not vouch for."""
    kind, column = data.draw(columns(size))
    octets = bytearray(encode_column(column, kind, compression=compression))
    at = data.draw(st.integers(0, len(octets) - 1))
    octets[at] ^= data.draw(st.integers(1, 255))
    try:
        back = decode_column(bytes(octets), count=size)
    except SealError:
        return
    back.validate(full=True)
    assert len(back) == size
    back.to_pylist()


@given(st.data(), st.lists(st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=6))
def test_offsets_that_are_no_walk_are_refused(data, steps):
    """Offsets may only rise from 0 to the length of the text; differences that overflow deceive nobody."""
    kind = data.draw(st.sampled_from([AttributeType.STRING, AttributeType.BINARY]))
    text = b"x" * data.draw(st.integers(0, 4))
    offsets = np.array([0, *steps, len(text)], dtype=np.int32)
    count = len(offsets) - 1
    bits = np.packbits(np.ones(count, dtype=np.uint8), bitorder="little").tobytes()
    body = bits + offsets.tobytes() + text
    code = encode_column(pa.array(["" if kind is AttributeType.STRING else b""]), kind)[0]
    head = bytes((code, 0)) + b"".join(n.to_bytes(4, "big") for n in (count, len(body), len(body)))
    if all(0 <= a <= b for a, b in zip(offsets.tolist(), offsets.tolist()[1:], strict=False)):
        assert len(decode_column(head + body, count=count)) == count
    else:
        with pytest.raises(SealError):
            decode_column(head + body, count=count)
