"""One Arrow column as octets and back: the plaintext of a block.

    octet 0         code of the value type
    octet 1         compression of what follows the head: 0 none, 1 LZ4, 2 Zstandard
    octets 2-5      number of values, big-endian
    octets 6-9      length of what follows the head before compression, big-endian
    octets 10-13    length of what follows the head as it stands here, big-endian
    then            validity bits, then data (fixed width) or 32-bit offsets and data, in Arrow's own layout
    then            zeros up to a multiple of the padding

Nulls are values: the layout of a column without values differs from one with values in nothing but its length, and the
padding hides that up to its multiple. Reading trusts no length: each is compared with what is there and with the number
of values that the parcel's header announced, the offsets must be a walk inside the data, no value may lie outside its
type, and what is compressed may not be so dense that a small parcel fills the memory of its reader.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pyarrow as pa

from maia.encryption.values import foreign_values
from maia.errors import SealError, UsageError
from maia.events import ARROW_TYPES, AttributeType

_HEAD = 14
MAX_PLAINTEXT = 1 << 30
MAX_FILL = 1 << 16  # a type's padding is at most this
_DENSE_FREE, _DENSE_RATIO = 16 << 20, 256
_CODES = {kind: code for code, kind in enumerate(AttributeType, start=1)}
_KINDS = {code: kind for kind, code in _CODES.items()}
_WIDTHS = {
    AttributeType.INTEGER: 8,
    AttributeType.FLOAT: 8,
    AttributeType.DECIMAL: 16,
    AttributeType.DATE: 4,
    AttributeType.TIMESTAMP: 8,
}
_OFFSET = 4


class Compression(IntEnum):
    """How the values are packed before sealing. Lengths then tell something about values: off unless asked for."""

    NONE = 0
    LZ4 = 1
    ZSTD = 2


_CODECS = {Compression.LZ4: "lz4_raw", Compression.ZSTD: "zstd"}


def encode_column(
    column: pa.Array, kind: AttributeType, *, compression: Compression = Compression.NONE, padding: int = 0
) -> bytes:
    """Write a column as the plaintext of a block.

    Args:
        column: Values of exactly the Arrow type of ``kind``.
        kind: The attribute's type.
        compression: Applied before padding and sealing.
        padding: Round the length up to a multiple of this; 0 for no padding.

    Raises:
        UsageError: The column has another Arrow type or a value outside it, or is too large for one block.

    >>> import pyarrow as pa
    >>> octets = encode_column(pa.array(["a", None]), AttributeType.STRING)
    >>> decode_column(octets, count=2).to_pylist()
    ['a', None]
    """
    if not column.type.equals(ARROW_TYPES[kind]):
        raise UsageError(f"a column of {kind.value} values has another Arrow type")
    if not 0 <= padding <= MAX_FILL:
        raise UsageError(f"padding is a number from 0 to {MAX_FILL}")
    if foreign_values(column, kind) is not None:
        raise UsageError(f"a column holds a value that is no {kind.value}", code="BLOCK_VALUE")
    parts = [_validity(column), *_data(column, kind)]
    size = sum(len(part) for part in parts)
    if size > MAX_PLAINTEXT:
        raise UsageError("a column too large for one block", code="BLOCK_TOO_LARGE")
    body: bytes | None = None
    if compression is not Compression.NONE:
        body = pa.compress(b"".join(parts), codec=_CODECS[compression], asbytes=True)
        if _too_dense(size, len(body)):
            body, compression = None, Compression.NONE
    if body is not None:
        parts = [body]
    stored = size if body is None else len(body)
    head = bytes((_CODES[kind], compression)) + b"".join(n.to_bytes(4, "big") for n in (len(column), size, stored))
    fill = -(_HEAD + stored) % padding if padding else 0
    return b"".join((head, *parts, bytes(fill)))


def decode_column(octets: bytes | memoryview, *, count: int) -> pa.Array:
    """Read a column back, sharing the octets where they are not compressed.

    Raises:
        SealError: The octets are not what `encode_column` writes for ``count`` values.

    >>> octets = encode_column(pa.array([7]), AttributeType.INTEGER, padding=64)
    >>> len(octets), decode_column(octets, count=1).to_pylist()
    (64, [7])
    """
    view = memoryview(octets)
    if len(view) < _HEAD:
        raise _damaged()
    kind = _KINDS.get(view[0])
    values, size, stored = (int.from_bytes(view[at : at + 4], "big") for at in (2, 6, 10))
    end = _HEAD + stored
    if kind is None or values != count or size > MAX_PLAINTEXT or not 0 <= len(view) - end < MAX_FILL:
        raise _damaged()
    body = view[_HEAD:end]
    if bytes(view[end:]).strip(b"\0") or _too_dense(size, stored):
        raise _damaged()
    if view[1] != Compression.NONE:
        body = _inflate(body, view[1], size)
    if len(body) != size:
        raise _damaged()
    return _array(pa.py_buffer(body), kind, count)


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


def _hides_values(column: pa.Array) -> bool:
    """Tell whether a null of a text column still has octets under it."""
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    return bool(np.any(np.diff(offsets)[~np.asarray(column.is_valid())]))


def _array(body: pa.Buffer, kind: AttributeType, count: int) -> pa.Array:
    bits = (count + 7) // 8
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
        column = pa.Array.from_buffers(ARROW_TYPES[kind], count, buffers)
        if kind is AttributeType.STRING:
            column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise _damaged() from error
    if foreign_values(column, kind) is not None:
        raise _damaged()
    return column


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
