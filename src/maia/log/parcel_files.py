"""Files of parcels: their columns, and writing one.

Rules kept here: a file counts for nothing until a commit names it; it is synced before its length and digest are told.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.encryption import parse_parcel
from maia.errors import UsageError
from maia.log.commits import LogFile
from maia.log.numbered import named_errors, sync_folder

PARCEL_SCHEMA = pa.schema(
    [
        pa.field("type_id", pa.binary(), nullable=False),
        pa.field("origin", pa.binary(), nullable=False),
        pa.field("stamp", pa.int64(), nullable=False),
        pa.field("events", pa.int32(), nullable=False),
        pa.field("evidence", pa.binary(), nullable=False),
        pa.field("parcel", pa.binary(), nullable=False),
    ]
)


_KINDS = [(field.name, field.type) for field in PARCEL_SCHEMA]


_STATISTICS = [name for name, _ in _KINDS if name != "parcel"]


def _shared(value: bytes | memoryview) -> pa.Array:
    """Make a column of one value without copying it."""
    ends = pa.py_buffer(bytes(4) + len(value).to_bytes(4, "little"))
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(value)])


class PartitionWriter:
    """Writes the parcels of one task to one file, which counts for nothing until it is committed."""

    def __init__(self, root: Path, relative: str) -> None:
        """Start without a file; the first parcel makes it."""
        self._root = root
        self._relative = relative
        self._writer: pq.ParquetWriter | None = None
        self._stamps: list[int] = []
        self._bases: list[str] = []
        self._events = 0

    def add(self, row: dict[str, object]) -> None:
        """Append one parcel.

        Raises:
            UnavailableError: The system refused.
        """
        stamp, events, parcel = row["stamp"], row["events"], row["parcel"]
        if not isinstance(stamp, int) or not isinstance(events, int) or not isinstance(parcel, bytes | memoryview):
            raise UsageError("a parcel row has a stamp, a number of events and a parcel")
        path = self._root / self._relative
        with named_errors(path):
            if self._writer is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                # Ciphertext does not compress and has no use for a smallest and a largest value, which take longer to
                # find than sealing takes. Page checksums find a flipped bit without the log's own digest too.
                self._writer = pq.ParquetWriter(
                    path,
                    PARCEL_SCHEMA,
                    compression="none",
                    use_dictionary=False,
                    write_statistics=_STATISTICS,
                    write_page_checksum=True,
                )
            columns = [
                _shared(parcel) if name == "parcel" else pa.array([row[name]], type=kind) for name, kind in _KINDS
            ]
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=PARCEL_SCHEMA))
        self._stamps.append(stamp)
        self._bases.append(parse_parcel(memoryview(parcel)).header.event_base.hex())
        self._events += events

    def close(self) -> LogFile | None:
        """Finish and sync the file; ``None`` when nothing was written.

        Raises:
            UnavailableError: The system refused.
        """
        if self._writer is None:
            return None
        path = self._root / self._relative
        with named_errors(path):
            self._writer.close()
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                os.fsync(file.fileno())
            sync_folder(path.parent)
            size = path.stat().st_size
        return LogFile(
            self._relative,
            size,
            digest,
            len(self._stamps),
            self._events,
            min(self._stamps),
            max(self._stamps),
            tuple(self._bases),
        )
