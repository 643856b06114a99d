"""What is small where it lies grows no further than is stated, whoever packed it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.encryption import (
    Compression,
    ParcelHeader,
    Room,
    decode_column,
    encode_column,
    most_events,
    most_octets,
    open_parcel,
    seal,
    sign_parcel,
    verify_parcel,
)
from maia.errors import SealError
from maia.events import AttributeType, EncryptionMode, TypeId
from maia.principals import KeySigner

BROKER = KeySigner(bytes(32))
KEY = bytes(32)
COUNT = 16_384
STRING = AttributeType.STRING


def header(labels: tuple[bytes, ...], *, count: int = COUNT, mode: str = "attribute") -> ParcelHeader:
    """Make a header."""
    return ParcelHeader(
        type_id=TypeId(bytes(32)), origin=BROKER.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16),
        stamp=150, count=count, epoch=100, mode=EncryptionMode(mode), evidence=bytes(32), labels=labels,
    )  # fmt: skip


def dictionary(texts: list[bytes], numbers: np.ndarray, *, many: int | None = None, code: int = 4 + 64) -> bytes:
    """Write a block of texts in a dictionary by hand, packed."""
    count = len(numbers)
    ends = np.cumsum([0, *(len(text) for text in texts)]).astype(np.int32)
    bits = np.packbits(np.ones(count, dtype=np.uint8), bitorder="little").tobytes()
    said = len(texts) if many is None else many
    body = bits + said.to_bytes(4, "big") + numbers.tobytes() + ends.tobytes() + b"".join(texts)
    packed = pa.compress(body, codec="zstd", asbytes=True)
    sizes = b"".join(number.to_bytes(4, "big") for number in (count, len(body), len(packed)))
    return bytes((code, Compression.ZSTD)) + sizes + packed


@given(st.lists(st.one_of(st.none(), st.sampled_from(["", "A", "Ward B", "\N{SNOWMAN}"])), min_size=1, max_size=600))
def test_texts_of_which_few_differ_come_back_as_they_were(values: list[str | None]) -> None:
    """With nulls among them, however few, through a dictionary or not; slices too."""
    column = pa.array(values, type=pa.string())
    for part in (column, column.slice(len(column) // 2)):
        octets = encode_column(part, STRING, compression=Compression.ZSTD)
        assert decode_column(octets, count=len(part)).equals(part)


def test_a_dictionary_saves_octets_and_hides_what_lies_under_nulls() -> None:
    """A thousand times two texts take few octets; a value that was taken away is in none of them."""
    hidden = pa.array(["canary", "A", "B"] * 2000)
    column = pa.Array.from_buffers(
        pa.string(), 6000, [pa.py_buffer(np.packbits([0, 1, 1] * 2000, bitorder="little")), *hidden.buffers()[1:]]
    )
    octets = encode_column(column, STRING, compression=Compression.ZSTD)
    assert octets[0] == 4 + 64
    assert len(octets) < 200
    shown = decode_column(octets, count=6000)
    assert shown.to_pylist() == [None, "A", "B"] * 2000
    assert b"canary" not in b"".join(buffer.to_pybytes() for buffer in shown.buffers())


BOMBS = {
    "a long text for every event": dictionary([b"x" * (1 << 20)], np.zeros(COUNT, np.uint8)),
    "a number of no text": dictionary([b"a", b"b"], np.full(COUNT, 2, np.uint8)),
    "no text at all": dictionary([], np.zeros(COUNT, np.uint8)),
    "more texts than there are": dictionary([b"a"], np.zeros(COUNT, np.uint8), many=9),
    "a dictionary of another type": dictionary([b"a"], np.zeros(COUNT, np.uint8), code=1 + 64),
    "texts that are none": dictionary([b"\xff\xfe"], np.zeros(COUNT, np.uint8)),
}


@pytest.mark.threat("T53")
@pytest.mark.parametrize("octets", BOMBS.values(), ids=BOMBS)
def test_a_dictionary_that_lies_is_refused(octets: bytes) -> None:
    """In a parcel that its origin signed: refused as a block that cannot be opened, and never unpacked."""
    assert len(octets) < 1 << 10
    before = pa.total_allocated_bytes()
    verified = verify_parcel(sign_parcel(header((b"1",), mode="plain"), (octets,), BROKER))
    with pytest.raises(SealError, match="cannot be opened"):
        open_parcel(verified, lambda _: None)
    assert pa.total_allocated_bytes() - before < 64 << 20


@pytest.mark.threat("T53")
def test_many_small_blocks_do_not_grow_beyond_what_one_parcel_may() -> None:
    """Each of a hundred blocks would be let in by itself; together they are refused before memory is full."""
    one = dictionary([b"x" * 512], np.zeros(COUNT, np.uint8))
    labels = tuple(b"%d" % number for number in range(100))
    alone = verify_parcel(sign_parcel(header(labels[:1], mode="plain"), (one,), BROKER))
    assert len(open_parcel(alone, lambda _: None)[b"0"]) == COUNT
    parcel = sign_parcel(header(labels, mode="plain"), (one,) * 100, BROKER)
    assert parcel.octets < 100 << 10
    with pytest.raises(SealError, match="cannot be opened"):
        open_parcel(verify_parcel(parcel), lambda _: None)


def test_whoever_seals_keeps_to_what_readers_take() -> None:
    """A million equal values would be too dense, so they are sealed as they are; their reader gets them."""
    count = 1 << 20
    columns = {b"%d" % number: (AttributeType.INTEGER, pa.array(np.zeros(count, np.int64))) for number in range(10)}
    parcel = seal(columns, header(tuple(columns), count=count), BROKER, lambda _: KEY, compression=Compression.ZSTD)
    assert count <= most_events(parcel.octets)
    opened = open_parcel(verify_parcel(parcel), lambda _: KEY)
    assert sum(column.nbytes for column in opened.values()) <= most_octets(parcel.octets)
    assert [column.to_pylist()[-1] for column in opened.values()] == [0] * 10


def test_room_is_counted_before_it_is_used() -> None:
    """A column takes its part, and what does not fit any more is refused."""
    room, octets = Room(2_000), encode_column(pa.array([7] * 100), AttributeType.INTEGER, compression=Compression.ZSTD)
    assert decode_column(octets, count=100, room=room).to_pylist() == [7] * 100
    assert room.left < 1_200
    with pytest.raises(SealError):
        decode_column(octets, count=100, room=Room(100))
