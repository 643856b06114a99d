"""Segments: files of parcels, and reading one that anybody could have written.

Small parcels lie in one piece, as rows (`PARCEL_SCHEMA`), and are read whole; of others a reader reads what it needs
(`columnar`). How they are written is said in `segment_writer`. Rules kept here:

- reading begins with the length and the digest that a verified commit names. What differs, is no regular file or is
  missing is *damage* (``LOG_FILE_DAMAGED``, ``LOG_FILE_MISSING``): nobody knows what it held, so readers wait. What is
  compared is what is read: octets that nobody else can write to, since a file may be written to while it is open;
- a segment that its origin moved lies octet for octet in a larger object, so the same is compared. What an earlier Maia
  moved lost its octets: it is read with bounds, and its rows are compared with the digest that was signed for them;
- then the file's own description is compared, before anything of it is unpacked: the columns, the number of rows, and
  that nothing is compressed, so that it cannot be larger than it lies there. A file that its origin named and that
  is not so is *malformed* (``SEGMENT_MALFORMED``): its origin's fault, and a dead letter;
- a parcel is of the lane's origin, bears the name that its commit gives it, and a stamp within those of its segment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from maia.encryption import KeyProvider
from maia.errors import EncodingError, MaiaError, MalformedError, NotFoundError, UnavailableError
from maia.kernel import (
    Clock,
    DeliverPlan,
    DeliveryPlan,
    LoggedParcel,
    Outcome,
    Tell,
    deliver_parcels,
    logged_rows,
    untold,
)
from maia.log.columnar import MALFORMED, read_parcels
from maia.log.commits import LogFile, Moved
from maia.log.numbered import named_errors
from maia.log.store import MAX_OBJECT, OpenObject, ReadableStore, Store

MISNAMED = "EVENTS_MISNAMED"
_BATCH = 1
_CHUNK = 8 << 20
_IN_MEMORY = 256 << 20
_ENCODINGS = frozenset(("PLAIN", "RLE", "BIT_PACKED"))

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


def check_segment(
    store: ReadableStore, file: LogFile, at: Moved | None = None, *, copy: IO[bytes] | None = None
) -> None:
    """See that a segment is what was committed: its length and its digest.

    Args:
        store: Where it lies.
        file: What its commit says.
        at: Where its origin moved it to.
        copy: Where to put its octets on the way; they count for nothing when this raises.

    Raises:
        UnavailableError: It is missing: ``LOG_FILE_MISSING``.
        EncodingError: It is not what was committed: ``LOG_FILE_DAMAGED``.
    """
    start = 0 if at is None else at.offset
    with _source(store, file, at) as source:
        _compare(source, file, start, copy)


def read_segment(store: Store, file: LogFile, at: Moved | None = None) -> Iterator[LoggedParcel]:
    """Read the parcels of a segment, one at a time, after all that its commit says of what is read was compared.

    A parcel can be opened until the next is asked for.

    Args:
        store: Where it lies.
        file: What its commit says.
        at: Where its origin moved it to.

    Raises:
        UnavailableError: It is missing: ``LOG_FILE_MISSING``.
        EncodingError: It is not what was committed: ``LOG_FILE_DAMAGED``.
        MalformedError: It is, and is no segment: ``SEGMENT_MALFORMED``.
    """
    if file.tail:
        yield from _read_columns(store, file, at)
        return
    with _source(store, file, at) as source, _private(source, file, at) as own:
        try:
            with pq.ParquetFile(own) as parquet:
                _check_shape(parquet, file)
                # A parcel is a row group, so however many there are, one is in memory.
                yield from logged_rows(parquet.iter_batches(batch_size=_BATCH))
        except (pa.ArrowException, OSError, OverflowError, MemoryError) as error:
            raise MalformedError(f"`{file.path}` is no segment", code=MALFORMED) from error


def newest_parcel(store: Store, file: LogFile, at: Moved | None = None) -> LoggedParcel:
    """Read the last parcel of a segment, which has the highest stamp, after the whole of it was compared.

    Raises:
        MaiaError: As `read_segment` does.
    """
    if file.tail:
        check_segment(store, file, at)
        try:
            for logged in _read_columns(store, file, at, first=max(0, file.parcels - 1)):
                return LoggedParcel.whole(logged.events, logged.parse().to_bytes())
        except MalformedError as error:
            raise _malformed(file.path) from error  # it is as committed, so its origin's fault
        raise _malformed(file.path)
    with _source(store, file, at) as source, _private(source, file, at) as own:
        try:
            with pq.ParquetFile(own) as parquet:
                _check_shape(parquet, file)
                column = parquet.read_row_group(parquet.num_row_groups - 1, columns=["parcel"]).column(0)
                data = column[-1].as_buffer()
        except (pa.ArrowException, OSError, OverflowError, MemoryError, IndexError) as error:
            raise MalformedError(f"`{file.path}` is no segment", code=MALFORMED) from error
    return LoggedParcel.whole(file.events, memoryview(data))


def _read_columns(store: Store, file: LogFile, at: Moved | None, *, first: int = 0) -> Iterator[LoggedParcel]:
    """Read the parcels of a columnar segment."""

    def fault() -> MaiaError:
        try:
            check_segment(store, file, at)
        except MaiaError as error:
            return error
        return _malformed(file.path)

    with _source(store, file, at) as source:
        yield from read_parcels(source, file, 0 if at is None else at.offset, fault, first=first)


def deliver_segment(
    plan: DeliverPlan,
    parcels: Iterable[LoggedParcel],
    keys: KeyProvider,
    *,
    file: LogFile,
    origin: str,
    clock: Clock,
    compiled: DeliveryPlan | None = None,
    tell: Tell = untold,
) -> Iterator[Outcome]:
    """Do as `deliver_parcels` does for one segment of a lane, and refuse what is not as its commit says.

    Args:
        plan: By which to open and screen.
        parcels: Those of the segment.
        keys: This broker's keys.
        file: What the commit says of it.
        origin: Whose lane it is, in hex.
        clock: Tells what time it is where this runs.
        compiled: The plan's index, for who goes through many files with one plan.
        tell: Hears of the steps.

    Yields:
        An outcome for each parcel, in order; one for all that is left when the segment is malformed.

    Raises:
        PlanOverError: The plan is over.
        MaiaError: The segment is damaged or missing: nobody knows what it held.
    """
    done, events = 0, 0
    try:
        for outcome in deliver_parcels(plan, parcels, keys, clock=clock, compiled=compiled, tell=tell):
            header = None if outcome.opened is None else outcome.opened.header
            if header is not None and (
                header.origin.hex() != origin
                or header.event_base.hex() != file.bases[done]
                or not file.first_stamp <= header.stamp <= file.last_stamp
            ):
                yield Outcome(outcome.events, refused=MISNAMED)
            else:
                yield outcome
            done, events = done + 1, events + outcome.events
    except MalformedError as error:
        if error.code != MALFORMED:
            raise
        yield Outcome(max(0, file.events - events), refused=MALFORMED)


def open_file(store: ReadableStore, path: str, *, limit: int) -> OpenObject:
    """Open a file of the log.

    Raises:
        UnavailableError: It is missing: ``LOG_FILE_MISSING``.
        EncodingError: It is no regular file, or larger: ``LOG_FILE_DAMAGED``.
    """
    try:
        return store.open(path, limit=limit)
    except NotFoundError as error:
        raise UnavailableError(f"the log file `{path}` is missing", code="LOG_FILE_MISSING") from error
    except EncodingError as error:
        raise damaged(path) from error


@contextmanager
def _source(store: ReadableStore, file: LogFile, at: Moved | None = None) -> Iterator[OpenObject]:
    """Open a segment that has the length which its commit names, where it was or where it lies now."""
    path, start, limit = (file.path, 0, file.size) if at is None else (at.path, at.offset, MAX_OBJECT)
    with open_file(store, path, limit=limit) as source:
        # Where it was moved to, others follow it.
        if source.size < start + file.size:
            raise damaged(path)
        yield source


@contextmanager
def _private(source: OpenObject, file: LogFile, at: Moved | None) -> Iterator[pa.BufferReader | IO[bytes]]:
    """Give the octets of a segment whose digest was compared: in memory, or in a file without a name."""
    start = 0 if at is None else at.offset
    if file.size <= _IN_MEMORY:
        data = source.get_range(start, file.size)
        if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.digest:
            raise damaged(file.path)
        yield pa.BufferReader(data)
        return
    with TemporaryFile() as copy:
        _compare(source, file, start, copy)
        copy.seek(0)
        yield copy


def _compare(source: OpenObject, file: LogFile, start: int, copy: IO[bytes] | None) -> None:
    """Go through a segment once, keeping it if asked, and see that it is what was committed."""
    found, left = hashlib.sha256(), file.size
    try:
        with named_errors(Path(file.path)):
            while left and (data := source.get_range(start + file.size - left, min(left, _CHUNK))):
                found.update(data)
                left -= len(data)
                if copy is not None:
                    copy.write(data)
    except (EncodingError, NotFoundError) as error:  # it was there when it was opened
        raise damaged(file.path) from error
    if left or found.hexdigest() != file.digest:
        raise damaged(file.path)


def _check_shape(parquet: pq.ParquetFile, file: LogFile) -> None:
    """Compare what a file says of itself with what it may be, before anything is unpacked."""
    found = parquet.metadata
    if not parquet.schema_arrow.equals(PARCEL_SCHEMA) or found.num_rows != file.parcels:
        raise _malformed(file.path)
    for group in range(found.num_row_groups):
        check_group(found.row_group(group), file.size)


def check_group(group: pq.RowGroupMetaData, octets: int) -> None:
    """See that a row group of so many octets at most is no larger when it is read.

    Raises:
        MalformedError: ``SEGMENT_MALFORMED``.
    """
    for index in range(group.num_columns):
        column = group.column(index)
        # SECURITY: what is not compressed cannot be larger in memory than it lies there.
        if column.compression != "UNCOMPRESSED" or not 0 <= column.total_uncompressed_size <= octets:
            raise _malformed(column.path_in_schema)
        # SECURITY: nor may an encoding share or repeat values.
        if not set(column.encodings) <= _ENCODINGS:
            raise _malformed(column.path_in_schema)


def _malformed(path: str) -> MalformedError:
    return MalformedError(f"`{path}` is no segment", code=MALFORMED)


def damaged(path: str) -> EncodingError:
    """Tell that a file of the log is not what was committed."""
    return EncodingError(f"the log file `{path}` is not what was committed", code="LOG_FILE_DAMAGED")
