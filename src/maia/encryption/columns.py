"""One Arrow column as octets and back: the plaintext of a block.

    octet 0         code of the value type; 64 more for texts that lie in a dictionary
    octet 1         compression of what follows the head: 0 none, 1 LZ4, 2 Zstandard
    octets 2-5      number of values, big-endian
    octets 6-9      length of what follows the head before compression, big-endian
    octets 10-13    length of what follows the head as it stands here, big-endian
    then            validity bits, then data (fixed width) or 32-bit offsets and data, in Arrow's own layout
                    or, with a dictionary: validity bits, the number of different texts (4 octets, big-endian), for each
                    value the number of its text (1 octet, or 2, little-endian, when there are more than 256), then the
                    texts as offsets and data
    then            zeros up to a multiple of the padding

What follows the head of a column that is of no plain type starts with the length of the type's text in two octets and
the text. A decimal's values follow as above; an array's are validity bits, 32-bit offsets and the elements as a column;
a struct's are validity bits and, for each field, the length of its column in four octets and the column.

Nulls are values: the layout of a column without values differs from one with values in nothing but its length, and the
padding hides that up to its multiple. Reading trusts no length: each is compared with what is there and with the number
of values that the parcel's header announced, the offsets must be a walk inside the data, no value may lie outside its
type, and what is compressed, or written once for many values, may not be so dense that a small parcel fills the memory
of its reader (`room`).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from maia.encryption.room import Room
from maia.encryption.values import foreign_values, oversized
from maia.errors import MalformedError, SealError, UsageError
from maia.events import (
    ArrayOf,
    AttributeType,
    StructOf,
    ValueType,
    arrow_type,
    parse_attribute_type,
)

_HEAD = 14
MAX_PLAINTEXT = 1 << 30
MAX_FILL = 1 << 16  # a type's padding is at most this
_DENSE_FREE, _DENSE_RATIO = 16 << 20, 256
_CODES: dict[ValueType, int] = {kind: code for code, kind in enumerate(AttributeType, start=1)}
_KINDS = {code: kind for kind, code in _CODES.items()}
_SHAPED = 32
"""The code of a type that is written out."""

_WIDTHS = {
    AttributeType.INTEGER: 8,
    AttributeType.FLOAT: 8,
    AttributeType.DECIMAL: 16,
    AttributeType.DATE: 4,
    AttributeType.TIMESTAMP: 8,
}
_OFFSET = 4
_DICTIONARY = 64
_MAX_TEXTS = 1 << 16
_SAMPLE = 1024


class Compression(IntEnum):
    """How the values are packed before sealing. Lengths then tell something about values: a type can leave it off."""

    NONE = 0
    LZ4 = 1
    ZSTD = 2


_CODECS = {Compression.LZ4: "lz4_raw", Compression.ZSTD: "zstd"}


def encode_column(
    column: pa.Array, kind: ValueType, *, compression: Compression = Compression.NONE, padding: int = 0
) -> bytes:
    """Write a column as the plaintext of a block.

    Args:
        column: Values of exactly the Arrow type of ``kind``.
        kind: The attribute's type.
        compression: Applied before padding and sealing, with a dictionary for texts of which few differ.
        padding: Round the length up to a multiple of this; 0 for no padding.

    Raises:
        UsageError: The column has another Arrow type or a value outside it, or is too large for one block.

    >>> import pyarrow as pa
    >>> octets = encode_column(pa.array(["a", None]), AttributeType.STRING)
    >>> decode_column(octets, count=2).to_pylist()
    ['a', None]
    """
    if not column.type.equals(arrow_type(kind)):
        raise UsageError(f"a column of {kind.value} values has another Arrow type")
    if not 0 <= padding <= MAX_FILL:
        raise UsageError(f"padding is a number from 0 to {MAX_FILL}")
    if foreign_values(column, kind) is not None:
        raise UsageError(f"a column holds a value that is no {kind.value}", code="BLOCK_VALUE")
    if column.nbytes > MAX_PLAINTEXT:
        raise UsageError("a column too large for one block", code="BLOCK_TOO_LARGE")
    code, parts = _CODES.get(kind, _SHAPED), None if compression is Compression.NONE else _texts(column, kind)
    if parts is None:
        parts = [*(_type_text(kind) if code == _SHAPED else ()), *_body(column, kind)]
    else:
        code += _DICTIONARY
    size = sum(len(part) for part in parts)
    if size > MAX_PLAINTEXT:
        raise UsageError("a column too large for one block", code="BLOCK_TOO_LARGE")
    stored = size
    if compression is not Compression.NONE:
        body = pa.compress(b"".join(parts), codec=_CODECS[compression], asbytes=True)
        if len(body) < size and not _too_dense(size, len(body)):
            parts, stored = [body], len(body)
        else:
            compression = Compression.NONE
    head = bytes((code, compression)) + b"".join(n.to_bytes(4, "big") for n in (len(column), size, stored))
    fill = -(_HEAD + stored) % padding if padding else 0
    return b"".join((head, *parts, bytes(fill)))


def decode_column(octets: bytes | memoryview, *, count: int, room: Room | None = None) -> pa.Array:
    """Read a column back, sharing the octets where they are not compressed.

    Args:
        octets: As `encode_column` wrote them.
        count: How many values there must be.
        room: What the columns of the parcel may still take; a block alone has its own bound.

    Raises:
        SealError: The octets are not what `encode_column` writes for ``count`` values.

    >>> octets = encode_column(pa.array([7]), AttributeType.INTEGER, padding=64)
    >>> len(octets), decode_column(octets, count=1).to_pylist()
    (64, [7])
    """
    view = memoryview(octets)
    if len(view) < _HEAD:
        raise _damaged()
    code = view[0] & ~_DICTIONARY
    values, size, stored = (int.from_bytes(view[at : at + 4], "big") for at in (2, 6, 10))
    end = _HEAD + stored
    if (
        (code not in _KINDS and code != _SHAPED)
        or values != count
        or size > MAX_PLAINTEXT
        or not 0 <= len(view) - end < MAX_FILL
    ):
        raise _damaged()
    body = view[_HEAD:end]
    if bytes(view[end:]).strip(b"\0") or _too_dense(size, stored):
        raise _damaged()
    room = Room(MAX_PLAINTEXT) if room is None else room
    room.take(size)
    if view[1] != Compression.NONE:
        body = _inflate(body, view[1], size)
    if len(body) != size:
        raise _damaged()
    if view[0] & _DICTIONARY:
        return _from_texts(pa.py_buffer(body), code, count, room)
    if code != _SHAPED:
        return _array(pa.py_buffer(body), _KINDS[code], count)
    kind, start = _read_type(body)
    return _array(pa.py_buffer(body[start:]), kind, count)


def _type_text(kind: ValueType) -> list[bytes]:
    text = kind.value.encode()
    return [len(text).to_bytes(2, "big"), text]


def _read_type(body: memoryview) -> tuple[ValueType, int]:
    """Read the type that stands before its values; one of the plain types has no business there."""
    end = 2 + int.from_bytes(body[:2], "big")
    try:
        kind = parse_attribute_type(bytes(body[2:end]).decode())
    except (MalformedError, UnicodeDecodeError) as error:
        raise _damaged() from error
    if len(body) < end or kind in _CODES:
        raise _damaged()
    return kind, end


def _body(column: pa.Array, kind: ValueType) -> list[bytes | memoryview]:
    """Write validity and values, parts included; what lies under a null does not travel."""
    if isinstance(kind, ArrayOf):
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        # SECURITY: `flatten` leaves out what lies under null arrays, and nulls what lies under null structs.
        return [_validity(column), offsets.tobytes(), *_body(column.flatten(), kind.element)]
    if isinstance(kind, StructOf):
        written: list[bytes | memoryview] = [_validity(column)]
        for part, (_, inside) in zip(column.flatten(), kind.fields, strict=True):
            octets = b"".join(_body(part, inside))
            written += [len(octets).to_bytes(4, "big"), octets]
        return written
    return [_validity(column), *_data(column, kind.base)]


def _validity(column: pa.Array) -> bytes:
    if column.null_count == 0:
        bits = np.packbits(np.ones(len(column), dtype=np.uint8), bitorder="little")
    else:
        bits = np.packbits(np.asarray(column.is_valid()), bitorder="little")
    return bits.tobytes()


def _data(column: pa.Array, kind: AttributeType) -> list[bytes | memoryview]:
    if kind is AttributeType.BOOLEAN:
        filled = column.fill_null(False)
        return [np.packbits(np.asarray(filled), bitorder="little").tobytes()]
    start, stop = column.offset, column.offset + len(column)
    if kind in _WIDTHS:
        width = _WIDTHS[kind]
        data = column.buffers()[1]
        if column.null_count == 0:
            return [memoryview(data)[start * width : stop * width] if data is not None else b""]
        # SECURITY: what lies under a null may be a value that was taken away; it must not travel.
        cells = np.frombuffer(data, dtype=np.uint8)[start * width : stop * width].reshape(-1, width).copy()
        cells[~np.asarray(column.is_valid())] = 0
        return [cells.tobytes()]
    if column.null_count and _hides_values(column):
        # SECURITY: as above. Taking a null leaves no octets behind.
        column = column.take(pa.array(np.arange(len(column)), mask=~np.asarray(column.is_valid())))
        start, stop = column.offset, column.offset + len(column)
    _, offsets_buffer, data = column.buffers()
    if offsets_buffer is None or not len(column):
        return [bytes(_OFFSET)]
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[start : stop + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    if first:
        offsets = offsets - np.int32(first)
    text = memoryview(data)[first:last] if data is not None else b""
    return [offsets.tobytes(), text]


def _texts(column: pa.Array, kind: ValueType) -> list[bytes | memoryview] | None:
    """Write texts of which few differ as a dictionary and their numbers in it; ``None`` when that saves nothing."""
    if kind is not AttributeType.STRING or len(column) < 4:
        return None
    sample = column.slice(0, _SAMPLE)
    if len(sample.dictionary_encode().dictionary) * 4 > len(sample) * 3:
        return None  # looking at all of them would take longer than it saves
    found = column.dictionary_encode()
    texts = found.dictionary
    if not 0 < len(texts) <= min(_MAX_TEXTS, len(column) // 4):
        return None
    numbers = np.asarray(found.indices.fill_null(0)).astype(_number_type(len(texts)))
    return [_validity(column), len(texts).to_bytes(4, "big"), numbers.tobytes(), *_data(texts, kind)]


def _from_texts(body: pa.Buffer, code: int, count: int, room: Room) -> pa.Array:
    """Read what `_texts` wrote."""
    bits = (count + 7) // 8
    many = int.from_bytes(memoryview(body)[bits : bits + 4], "big")
    start = bits + 4 + count * _number_type(many)().itemsize
    kind = AttributeType.STRING
    if code != _CODES[kind] or not 0 < many <= min(_MAX_TEXTS, count) or body.size < start:
        raise _damaged()
    numbers = np.frombuffer(body.slice(bits + 4, start - bits - 4), dtype=_number_type(many))
    if int(numbers.max()) >= many:
        raise _damaged()
    # The texts are a column of their own, all of them there.
    whole = np.packbits(np.ones(many, dtype=np.uint8), bitorder="little").tobytes()
    texts = _array(pa.py_buffer(whole + memoryview(body)[start:].tobytes()), kind, many)
    lengths = np.diff(np.frombuffer(texts.buffers()[1], dtype=np.int32)[: many + 1])
    grown = int(np.dot(np.bincount(numbers, minlength=many), lengths.astype(np.int64)))
    if grown > MAX_PLAINTEXT:
        raise _damaged()
    room.take(grown + count * _OFFSET)
    indices = pa.Array.from_buffers(
        pa.from_numpy_dtype(numbers.dtype), count, [body.slice(0, bits), pa.py_buffer(numbers)]
    )
    return texts.take(indices)


def _number_type(many: int) -> type[np.uint8 | np.uint16]:
    return np.uint8 if many <= 256 else np.uint16


def _hides_values(column: pa.Array) -> bool:
    """Tell whether a null of a text column still has octets under it."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    return bool(np.any(np.diff(offsets)[~np.asarray(column.is_valid())]))


def _array(body: pa.Buffer, whole: ValueType, count: int) -> pa.Array:
    if isinstance(whole, ArrayOf | StructOf):
        return _nested(body, whole, count)
    bits, kind = (count + 7) // 8, whole.base
    if kind is AttributeType.BOOLEAN:
        expected = bits
    elif kind in _WIDTHS:
        expected = count * _WIDTHS[kind]
    else:
        expected = (count + 1) * _OFFSET
    if body.size < bits + expected or (
        body.size > bits + expected and (kind in _WIDTHS or kind is AttributeType.BOOLEAN)
    ):
        raise _damaged()
    validity = body.slice(0, bits)
    if kind in _WIDTHS or kind is AttributeType.BOOLEAN:
        buffers = [validity, body.slice(bits, expected)]
    else:
        offsets = np.frombuffer(body.slice(bits, expected), dtype=np.int32)
        if offsets[0] != 0 or offsets[-1] != body.size - bits - expected or np.any(offsets[1:] < offsets[:-1]):
            raise _damaged()
        buffers = [validity, body.slice(bits, expected), body.slice(bits + expected)]
    try:
        column = pa.Array.from_buffers(arrow_type(whole), count, buffers)
        if kind is AttributeType.STRING:
            column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise _damaged() from error
    if foreign_values(column, whole) is not None:
        raise _damaged()
    return column


def _nested(body: pa.Buffer, kind: ArrayOf | StructOf, count: int) -> pa.Array:
    """Read an array or a struct; each part has exactly the octets that its number of values takes."""
    bits = (count + 7) // 8
    if body.size < bits:
        raise _damaged()
    marks = np.unpackbits(np.frombuffer(body.slice(0, bits), dtype=np.uint8), bitorder="little")
    missing = pa.array(marks[:count] == 0)
    try:
        if isinstance(kind, ArrayOf):
            offsets, rest = _offsets(body, bits, count)
            elements = _array(rest, kind.element, int(offsets[-1]))
            column = pa.ListArray.from_arrays(pa.array(offsets), elements, type=arrow_type(kind), mask=missing)
        else:
            parts = _parts(body.slice(bits), kind, count)
            column = pa.StructArray.from_arrays(parts, fields=list(arrow_type(kind)), mask=missing)
    except pa.ArrowException as error:
        raise _damaged() from error
    if oversized(column, kind) is not None:
        raise _damaged()
    return column


def _offsets(body: pa.Buffer, bits: int, count: int) -> tuple[npt.NDArray[np.int32], pa.Buffer]:
    """Read where the elements of each array start; their number is believed only as far as octets follow."""
    size = (count + 1) * _OFFSET
    if body.size < bits + size:
        raise _damaged()
    offsets = np.frombuffer(body.slice(bits, size), dtype=np.int32)
    rest = body.slice(bits + size)
    if offsets[0] != 0 or np.any(offsets[1:] < offsets[:-1]) or offsets[-1] > 8 * rest.size:
        raise _damaged()
    return offsets, rest


def _parts(body: pa.Buffer, kind: StructOf, count: int) -> list[pa.Array]:
    parts, at = [], 0
    for _, inside in kind.fields:
        size = int.from_bytes(bytes(body.slice(at, min(4, body.size - at))), "big")
        if body.size < at + 4 + size:
            raise _damaged()
        parts.append(_array(body.slice(at + 4, size), inside, count))
        at += 4 + size
    if at != body.size:
        raise _damaged()
    return parts


def _too_dense(size: int, stored: int) -> bool:
    """Tell whether compression shrank a column more than a reader is prepared to see it grow again."""
    return size > _DENSE_FREE + _DENSE_RATIO * stored


def _inflate(body: memoryview, code: int, size: int) -> memoryview:
    codec = _CODECS.get(code)  # type: ignore[call-overload]
    if codec is None:
        raise _damaged()
    try:
        # The codec stops at the size that the head announced, which is bounded above.
        return memoryview(pa.decompress(pa.py_buffer(body), decompressed_size=size, codec=codec, asbytes=True))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged() from error


def _damaged() -> SealError:
    return SealError("the block cannot be opened")
