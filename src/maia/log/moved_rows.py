"""Segments that an earlier Maia moved: row groups of a larger file, of which nothing but the rows' digest was signed.

They are read, and made no more: a segment that is moved today keeps its octets (`segments`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from io import RawIOBase

import pyarrow as pa
import pyarrow.parquet as pq

from maia.errors import MalformedError
from maia.kernel import LoggedParcel, logged_rows
from maia.log.commits import LogFile, Moved, MovedRows
from maia.log.segments import PARCEL_SCHEMA, check_group, damaged, open_file, read_segment
from maia.log.store import MAX_OBJECT, OpenObject, Store

_BATCH = 1
_MAX_FOOTER = 64 << 20
_PARQUET = b"PAR1"


def read_at(store: Store, file: LogFile, at: Moved | MovedRows | None) -> Iterable[LoggedParcel]:
    """Read the parcels of a segment where it lies, one at a time, whichever Maia put it there."""
    return logged_rows(read_moved_rows(store, file, at)) if isinstance(at, MovedRows) else read_segment(store, file, at)


def read_moved_rows(store: Store, file: LogFile, at: MovedRows) -> list[pa.RecordBatch]:
    """Read the parcels of a segment where an earlier Maia put them.

    SECURITY: nothing signed tells the digest of that file, so it has to be opened first. It costs no more than its own
    description, which is bounded, and twice the octets of the segment, however large it is and whatever it claims.

    Raises:
        UnavailableError: The file is missing: ``LOG_FILE_MISSING``.
        EncodingError: The rows are not those that were moved: ``LOG_FILE_DAMAGED``.
    """
    found, digest, room = list[pa.RecordBatch](), hashlib.sha256(), 2 * file.size
    with open_file(store, at.path, limit=MAX_OBJECT) as source:
        try:
            _check_footer(source, at.path)
            with pq.ParquetFile(_Ranges(source)) as parquet:
                group = parquet.metadata.row_group(at.group)
                if not parquet.schema_arrow.equals(PARCEL_SCHEMA) or group.num_rows != file.parcels:
                    raise damaged(at.path)
                check_group(group, file.size)
                for batch in parquet.iter_batches(batch_size=_BATCH, row_groups=[at.group]):
                    room -= batch.nbytes
                    if room < 0:
                        raise damaged(at.path)
                    _digest_row(digest, batch)
                    found.append(batch)
        except (pa.ArrowException, IndexError, OSError, OverflowError, MemoryError, MalformedError) as error:
            raise damaged(at.path) from error
    if digest.hexdigest() != at.digest:
        raise damaged(at.path)
    return found


class _Ranges(RawIOBase):
    """An open object as a file, for Parquet's reader."""

    def __init__(self, source: OpenObject) -> None:
        self._source, self._at = source, 0

    def readable(self) -> bool:
        """Tell that it is for reading."""
        return True

    def seekable(self) -> bool:
        """Tell that it is read in any order."""
        return True

    def tell(self) -> int:
        """Tell the place."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._source.size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read on."""
        left = max(0, self._source.size - self._at)
        data = self._source.get_range(self._at, left if size < 0 else min(size, left))
        self._at += len(data)
        return data


def _check_footer(source: OpenObject, path: str) -> None:
    """See that what a file says of itself is small enough to be read."""
    last = source.get_range(max(0, source.size - 8), 8)
    if last[4:] != _PARQUET or int.from_bytes(last[:4], "little") > _MAX_FOOTER:
        raise damaged(path)


def _digest_row(digest: hashlib._Hash, batch: pa.RecordBatch) -> None:
    """Go on with a hash over all cells of rows of parcels."""
    for row in batch.to_pylist():
        for cell in row.values():
            data = cell if isinstance(cell, bytes) else b"%d" % cell
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
