"""Segments by column: a Parquet file with a column for each block, of which a reader reads what it needs.

    type_id, origin, stamp, events, evidence     what the header tells, for whoever has no key
    head                                         the parcel without its blocks (`maia.encryption.blocks`)
    parcel                                       the parcel as one value, when it has other blocks than the columns
    <uid>, …                                     the blocks

A row is a parcel and a row group of its own, and nothing is compressed, so that each value lies in one piece at the end
of its column chunk. The end of the file, Parquet's own description, holds under ``maia.heads`` for each row whether it
has a head (0) or a whole parcel (1) in an octet, its number of events and its length on four each, and its digest.

Rules kept here:

- the commit tells the digest of the end of the file; that tells where each head lies, and its digest; a head tells the
  digest of each block. What is not read need not be: what is read was compared on the way from the commit to it, in
  memory that nobody else can write to, before anything is made of it;
- Parquet's reader is given the end of the file alone. Values are taken from where they lie, by lengths that were
  compared: there is nothing to unpack, and no page says how;
- a description takes many times its length in memory: it is read only where it is no longer than one of so many parcels
  in so many columns is, and a type has so many columns and no more;
- what differs is *damage* (``LOG_FILE_DAMAGED``) unless the whole file is as committed. Then it is its origin's fault
  (``SEGMENT_MALFORMED``, or ``BLOCK_DAMAGED`` for one parcel), and a dead letter.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from maia.encryption import Parcel
from maia.errors import MaiaError, MalformedError
from maia.events import MAX_ATTRIBUTES
from maia.kernel import LoggedParcel
from maia.log.commits import LogFile
from maia.log.store import OpenObject

HEADS = b"maia.heads"
MALFORMED = "SEGMENT_MALFORMED"
MAX_TAIL = 64 << 20
_MAX_COLUMNS = MAX_ATTRIBUTES + 7
_PARCEL_ROOM, _CHUNK_ROOM = 2 << 10, 192
"""Octets of the end of a file for each parcel, and for each of its columns; what Maia writes takes about half."""
_ENTRY = struct.Struct(">BII32s")
_PARQUET = b"PAR1"
_FIXED = (
    pa.field("type_id", pa.binary(), nullable=False),
    pa.field("origin", pa.binary(), nullable=False),
    pa.field("stamp", pa.int64(), nullable=False),
    pa.field("events", pa.int32(), nullable=False),
    pa.field("evidence", pa.binary(), nullable=False),
    pa.field("head", pa.binary()),
    pa.field("parcel", pa.binary()),
)
_NAMES = tuple(item.name for item in _FIXED)
_HEAD, _WHOLE = _NAMES.index("head"), _NAMES.index("parcel")
STATISTICS = [name for name in _NAMES if name not in ("head", "parcel")]
Fault = Callable[[], MaiaError]
"""Tells whose fault it is that something is not as it must be."""


def columns_schema(labels: Sequence[bytes]) -> pa.Schema:
    """Give the columns of a segment for parcels with these blocks."""
    return pa.schema([*_FIXED, *(pa.field(label.decode("ascii"), pa.binary()) for label in labels)])


def has_columns(labels: Sequence[bytes]) -> bool:
    """Tell whether blocks of these labels can be columns."""
    return bool(labels) and all(label.isascii() and label.decode("ascii") not in _NAMES for label in labels)


def one_value(value: bytes | memoryview | None) -> pa.Array:
    """Make a column of one value without copying it."""
    if value is None:
        return pa.nulls(1, pa.binary())
    ends = pa.py_buffer(bytes(4) + len(value).to_bytes(4, "little"))
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(value)])


def row_of(parcel: Parcel, schema: pa.Schema) -> tuple[pa.RecordBatch, bytes]:
    """Write a parcel as a row, and the entry of its head."""
    header = parcel.header
    values: dict[str, bytes | memoryview] = {
        label.decode("ascii", "replace"): block for label, block in zip(header.labels, parcel.blocks, strict=True)
    }
    # A parcel with other blocks than the first, which decides on the columns, lies there in one piece.
    whole = not values.keys() <= set(schema.names[len(_FIXED) :])
    value = parcel.to_bytes() if whole else parcel.head()
    if whole:
        values = {}
    values["parcel" if whole else "head"] = value
    fixed = (header.type_id, header.origin, header.stamp, header.count, header.evidence)
    columns = [pa.array([told], type=item.type) for told, item in zip(fixed, _FIXED, strict=False)]
    columns += [one_value(values.get(name)) for name in schema.names[len(columns) :]]
    entry = _ENTRY.pack(whole, header.count, len(value), hashlib.sha256(value).digest())
    return pa.RecordBatch.from_arrays(columns, schema=schema), entry


def write_heads(entries: Sequence[bytes]) -> dict[str, str]:
    """Write the entries of all heads for the end of a file."""
    return {HEADS.decode(): b64encode(b"".join(entries)).decode()}


def read_parcels(
    source: OpenObject, file: LogFile, start: int, fault: Fault, *, first: int = 0
) -> Iterator[LoggedParcel]:
    """Give the parcels of a columnar segment, from a number on; each can be opened until the next is asked for.

    Args:
        source: An open object.
        file: What a verified commit says.
        start: Where in the object the segment begins.
        fault: Compares the whole segment, and tells whose fault it is that something is not as it must be.
        first: The number of the first parcel that is wanted.

    Raises:
        MaiaError: As ``fault`` says.
    """
    segment = _Columnar(source, file, start, fault)
    for row in range(first, file.parcels):
        yield segment.parcel(row)


class _Columnar:
    """Where the parcels and blocks of one segment lie, by an end that was compared with its commit."""

    def __init__(self, source: OpenObject, file: LogFile, start: int, fault: Fault) -> None:
        self._source, self._file, self._start, self._fault = source, file, start, fault
        self._metadata, self._entries = self._read_tail()
        names = [self._metadata.schema.column(at).name for at in range(self._metadata.num_columns)]
        self._at = {name.encode(): at for at, name in enumerate(names)}
        if tuple(names[: len(_NAMES)]) != _NAMES or len(self._at) != len(names):
            raise fault()
        if self._metadata.num_row_groups != file.parcels or len(self._entries) != file.parcels:
            raise fault()

    def parcel(self, row: int) -> LoggedParcel:
        """Give a parcel, by its number."""
        whole, events, length, digest = self._entries[row]
        group = self._metadata.row_group(row)
        value = self._value(group, _WHOLE if whole else _HEAD, length)
        if hashlib.sha256(value).digest() != digest:
            raise self._fault()
        if whole:
            return LoggedParcel.whole(events, value)

        def fetch(label: bytes, length: int) -> bytes:
            at = self._at.get(label, 0)
            return b"" if at < len(_FIXED) else self._value(group, at, length)

        return LoggedParcel.apart(events, value, fetch, self._blame)

    def _value(self, group: pq.RowGroupMetaData, at: int, length: int) -> bytes:
        """Read so many octets at the end of a column chunk; what they are is told by their digest alone."""
        chunk = group.column(at)
        end = chunk.data_page_offset + chunk.total_compressed_size
        if not length <= end <= self._file.size - self._file.tail:
            return b""
        return self._source.get_range(self._start + end - length, length)

    def _read_tail(self) -> tuple[pq.FileMetaData, list[tuple[int, int, int, bytes]]]:
        """Read the end of the file, and see that it is what was committed before Parquet's reader gets it."""
        size, tail = self._file.size, self._file.tail
        if tail > MAX_TAIL:
            raise self._fault()
        data = self._source.get_range(self._start + size - tail, tail)
        # SECURITY: all that is read of a segment hangs on this digest.
        if hashlib.sha256(data).hexdigest() != self._file.tail_digest:
            raise self._fault()
        try:
            columns, parcels = _columns_of(data), self._file.parcels
            # SECURITY: bounded by what the commit tells, before Parquet's reader makes objects of it.
            if columns > _MAX_COLUMNS or tail > (parcels + 1) * (_PARCEL_ROOM + columns * _CHUNK_ROOM):
                raise self._fault()
            most = max(columns + 1, parcels)
            metadata = pq.ParquetFile(pa.BufferReader(_PARQUET + data), thrift_container_size_limit=most).metadata
            heads = b64decode((metadata.metadata or {}).get(HEADS, b""), validate=True)
            return metadata, list(_ENTRY.iter_unpack(heads))
        except (pa.ArrowException, OSError, OverflowError, MemoryError, Base64Error, struct.error, IndexError) as error:
            raise self._fault() from error

    def _blame(self) -> None:
        error = self._fault()
        if not isinstance(error, MalformedError) or error.code != MALFORMED:
            raise error


def _columns_of(tail: bytes) -> int:
    """Count the columns of the file that Parquet's description is of, by its first octets: a version, then a list.

    >>> _columns_of(bytes.fromhex("1504 19 3c"))
    2

    Raises:
        IndexError: It is none, or ends within them.
    """
    _, after = _number(tail, 1)
    if (tail[0], tail[after], tail[after + 1] & 15) != (0x15, 0x19, 0x0C):
        raise IndexError
    short = tail[after + 1] >> 4
    return (short if short < 15 else _number(tail, after + 2)[0]) - 1


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits an octet, and tell where it ends."""
    value, shift = 0, 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at
        if shift > 35:
            raise IndexError
