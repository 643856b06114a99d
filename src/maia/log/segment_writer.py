"""Writing segments: the parcels of one task, as rows when they are small, and by column when they are not.

Rules kept here:

- a segment counts for nothing until a commit names it; it is durable before its length and digest are told, and they
  are those of what was written, whatever lies under its name by then;
- the first parcel decides: one of few octets lies in one piece, as all that follow it do; by the blocks of a larger one
  the columns are made.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Self

import pyarrow as pa
import pyarrow.parquet as pq

from maia.encryption import Parcel
from maia.errors import UnavailableError
from maia.events import EncryptionMode
from maia.log.columnar import STATISTICS, columns_schema, has_columns, one_value, row_of, write_heads
from maia.log.commits import LogFile
from maia.log.numbered import named_errors
from maia.log.segments import PARCEL_SCHEMA
from maia.log.store import NewObject, Store

_APART = 16 << 10
"""From so many octets on the blocks of a parcel lie apart: a column of each is worth its description."""
_END = 8


def segment_name(folder: str, publication: str, partition: int, *, at: datetime) -> str:
    """Name a new segment of the lane in a folder."""
    day = at.astimezone(UTC).date().isoformat()
    name = hashlib.sha256(publication.encode()).hexdigest()[:24]
    return f"{folder}/date={day}/{name}-{partition:05d}-{secrets.token_hex(8)}.parquet"


def is_segment_of(path: str, folder: str, publication: str) -> bool:
    """Tell whether a name is one that `segment_name` gives to segments of a publication."""
    name = hashlib.sha256(publication.encode()).hexdigest()[:24]
    shape = rf"{re.escape(folder)}/date=\d{{4}}-\d\d-\d\d/{name}-\d{{5,9}}-[0-9a-f]{{16}}\.parquet"
    return re.fullmatch(shape, path, re.ASCII) is not None


class PartitionWriter:
    """Writes the parcels of one task to one segment, which counts for nothing until it is committed.

    Leaving the block before `close` leaves what was written to `maia.log.sweep`.
    """

    def __init__(self, store: Store, name: str) -> None:
        """Start without an object; the first parcel makes it."""
        self._store = store
        self._name = name
        self._made: NewObject | None = None
        self._writer: pq.ParquetWriter | None = None
        self._schema = PARCEL_SCHEMA
        self._heads: list[bytes] = []
        self._stamps: list[int] = []
        self._bases: list[str] = []
        self._events = 0

    def __enter__(self) -> Self:
        """Write until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the file; what was not closed by then counts for nothing."""
        if self._writer is not None and self._made is not None:
            with suppress(pa.ArrowException, OSError, ValueError):
                self._writer.close()
            with suppress(UnavailableError), self._made:
                pass

    @property
    def _by_column(self) -> bool:
        return self._schema is not PARCEL_SCHEMA

    def add(self, parcel: Parcel) -> None:
        """Append one parcel.

        Raises:
            UnavailableError: The system refused.
        """
        header = parcel.header
        if self._writer is None:
            if header.mode is not EncryptionMode.EVENT and parcel.octets >= _APART and has_columns(header.labels):
                self._schema = columns_schema(header.labels)
            self._made = self._store.create(self._name)
            self._writer = segment_writer(self._made.file, self._schema)
        with named_errors(Path(self._name)):
            if self._by_column:
                row, entry = row_of(parcel, self._schema)
                self._heads.append(entry)
            else:
                row = _row(parcel)
            self._writer.write_batch(row)
        self._stamps.append(header.stamp)
        self._bases.append(header.event_base.hex())
        self._events += header.count

    def close(self) -> LogFile | None:
        """Finish and sync the segment; ``None`` when nothing was written.

        Raises:
            UnavailableError: The system refused.
        """
        if self._writer is None or self._made is None:
            return None
        tail, tail_digest = 0, ""
        with named_errors(Path(self._name)), self._made as made:
            file = made.file
            if self._by_column:
                self._writer.add_key_value_metadata(write_heads(self._heads))
            self._writer.close()
            size = made.finish()
            # SECURITY: read back from what was written, not by its name, which others can put something under.
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
            if self._by_column:
                file.seek(size - _END)
                tail = int.from_bytes(file.read(4), "little") + _END
                file.seek(size - tail)
                tail_digest = hashlib.sha256(file.read(tail)).hexdigest()
        return LogFile(
            self._name,
            size,
            digest,
            len(self._stamps),
            self._events,
            min(self._stamps),
            max(self._stamps),
            tuple(self._bases),
            tail,
            tail_digest,
        )


def segment_writer(file: IO[bytes], schema: pa.Schema = PARCEL_SCHEMA) -> pq.ParquetWriter:
    """Write a segment into an object that `Store.create` made."""
    # Ciphertext does not compress and has no use for a smallest and a largest value, which take longer to find than
    # sealing takes. Page checksums find a flipped bit without the log's own digest too.
    return pq.ParquetWriter(
        file,
        schema,
        compression="none",
        use_dictionary=False,
        write_statistics=STATISTICS,
        write_page_checksum=True,
        store_schema=schema is PARCEL_SCHEMA,
    )


def _row(parcel: Parcel) -> pa.RecordBatch:
    """Write a parcel as a row in one piece."""
    header = parcel.header
    told = (header.type_id, header.origin, header.stamp, header.count, header.evidence)
    columns = [pa.array([value], type=item.type) for value, item in zip(told, PARCEL_SCHEMA, strict=False)]
    columns.append(one_value(parcel.to_bytes()))
    return pa.RecordBatch.from_arrays(columns, schema=PARCEL_SCHEMA)
