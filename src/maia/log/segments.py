"""Segments: files of parcels, writing one, and reading one that anybody could have written.

Rules kept here:

- a segment counts for nothing until a commit names it; it is synced before its length and digest are told, and they are
  those of what was written, whatever lies under its name by then;
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
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import BufferedRandom, BufferedReader
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Self

import pyarrow as pa
import pyarrow.parquet as pq

from maia.encryption import KeyProvider, parse_parcel
from maia.errors import EncodingError, MalformedError, NotFoundError, UnavailableError, UsageError
from maia.kernel import Clock, DeliverPlan, DeliveryPlan, Outcome, deliver_parcels
from maia.log.commits import LogFile, Moved
from maia.log.numbered import named_errors
from maia.log.store import MAX_OBJECT, Store

MISNAMED = "EVENTS_MISNAMED"
MALFORMED = "SEGMENT_MALFORMED"
_BATCH = 1
_CHUNK = 1 << 20
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

_KINDS = [(field.name, field.type) for field in PARCEL_SCHEMA]
_STATISTICS = [name for name, _ in _KINDS if name != "parcel"]


def segment_name(folder: str, publication: str, partition: int, *, at: datetime) -> str:
    """Name a new segment of the lane in a folder."""
    day = at.astimezone(UTC).date().isoformat()
    name = hashlib.sha256(publication.encode()).hexdigest()[:24]
    return f"{folder}/date={day}/{name}-{partition:05d}-{secrets.token_hex(8)}.parquet"


def check_segment(store: Store, file: LogFile, at: Moved | None = None, *, copy: IO[bytes] | None = None) -> None:
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
    with _source(store, file, at) as source:
        _compare(source, file, copy)


def read_segment(store: Store, file: LogFile, at: Moved | None = None) -> Iterator[pa.RecordBatch]:
    """Read the parcels of a segment, one at a time, after all that its commit says was compared.

    Args:
        store: Where it lies.
        file: What its commit says.
        at: Where its origin moved it to.

    Raises:
        UnavailableError: It is missing: ``LOG_FILE_MISSING``.
        EncodingError: It is not what was committed: ``LOG_FILE_DAMAGED``.
        MalformedError: It is, and is no segment: ``SEGMENT_MALFORMED``.
    """
    with _source(store, file, at) as source, _private(source, file) as own:
        try:
            with pq.ParquetFile(own) as parquet:
                _check_shape(parquet, file)
                # A parcel is a row group, so however many there are, one is in memory.
                yield from parquet.iter_batches(batch_size=_BATCH)
        except (pa.ArrowException, OSError, OverflowError, MemoryError) as error:
            raise MalformedError(f"`{file.path}` is no segment", code=MALFORMED) from error


def newest_parcel(store: Store, file: LogFile, at: Moved | None = None) -> pa.Buffer:
    """Read the last parcel of a segment, which has the highest stamp.

    Raises:
        MaiaError: As `read_segment` does.
    """
    with _source(store, file, at) as source, _private(source, file) as own:
        try:
            with pq.ParquetFile(own) as parquet:
                _check_shape(parquet, file)
                column = parquet.read_row_group(parquet.num_row_groups - 1, columns=["parcel"]).column(0)
                return column[-1].as_buffer()
        except (pa.ArrowException, OSError, OverflowError, MemoryError, IndexError) as error:
            raise MalformedError(f"`{file.path}` is no segment", code=MALFORMED) from error


def deliver_segment(
    plan: DeliverPlan,
    batches: Iterator[pa.RecordBatch],
    keys: KeyProvider,
    *,
    file: LogFile,
    origin: str,
    clock: Clock,
    compiled: DeliveryPlan | None = None,
) -> Iterator[Outcome]:
    """Do as `deliver_parcels` does for one segment of a lane, and refuse what is not as its commit says.

    Args:
        plan: By which to open and screen.
        batches: The parcels of the segment.
        keys: This broker's keys.
        file: What the commit says of it.
        origin: Whose lane it is, in hex.
        clock: Tells what time it is where this runs.
        compiled: The plan's index, for who goes through many files with one plan.

    Yields:
        An outcome for each parcel, in order; one for all that is left when the segment is malformed.

    Raises:
        PlanOverError: The plan is over.
        MaiaError: The segment is damaged or missing: nobody knows what it held.
    """
    done, events = 0, 0
    try:
        for outcome in deliver_parcels(plan, batches, keys, clock=clock, compiled=compiled):
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


class PartitionWriter:
    """Writes the parcels of one task to one segment, which counts for nothing until it is committed.

    Leaving the block before `close` leaves what was written to `maia.log.sweep`.
    """

    def __init__(self, store: Store, name: str) -> None:
        """Start without an object; the first parcel makes it."""
        self._store = store
        self._name = name
        self._file: BufferedRandom | None = None
        self._writer: pq.ParquetWriter | None = None
        self._stamps: list[int] = []
        self._bases: list[str] = []
        self._events = 0

    def __enter__(self) -> Self:
        """Write until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the file; what was not closed by then counts for nothing."""
        if self._writer is not None and self._file is not None:
            with suppress(pa.ArrowException, OSError, ValueError):
                self._writer.close()
            with suppress(OSError):
                self._file.close()

    def add(self, row: dict[str, object]) -> None:
        """Append one parcel.

        Raises:
            UnavailableError: The system refused.
        """
        stamp, events, parcel = row["stamp"], row["events"], row["parcel"]
        if not isinstance(stamp, int) or not isinstance(events, int) or not isinstance(parcel, bytes | memoryview):
            raise UsageError("a parcel row has a stamp, a number of events and a parcel")
        if self._writer is None:
            self._file = self._store.create(self._name)
            self._writer = segment_writer(self._file)
        with named_errors(Path(self._name)):
            columns = [
                _shared(parcel) if name == "parcel" else pa.array([row[name]], type=kind) for name, kind in _KINDS
            ]
            self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=PARCEL_SCHEMA))
        self._stamps.append(stamp)
        self._bases.append(parse_parcel(memoryview(parcel)).header.event_base.hex())
        self._events += events

    def close(self) -> LogFile | None:
        """Finish and sync the segment; ``None`` when nothing was written.

        Raises:
            UnavailableError: The system refused.
        """
        if self._writer is None or self._file is None:
            return None
        with named_errors(Path(self._name)), self._file as file:
            self._writer.close()
            size = sync(file)
            # SECURITY: read back from the file that was written, not by its name, which others can put something under.
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return LogFile(
            self._name,
            size,
            digest,
            len(self._stamps),
            self._events,
            min(self._stamps),
            max(self._stamps),
            tuple(self._bases),
        )


def segment_writer(file: BufferedRandom) -> pq.ParquetWriter:
    """Write a segment into an object that `Store.create` made."""
    # Ciphertext does not compress and has no use for a smallest and a largest value, which take longer to find than
    # sealing takes. Page checksums find a flipped bit without the log's own digest too.
    return pq.ParquetWriter(
        file,
        PARCEL_SCHEMA,
        compression="none",
        use_dictionary=False,
        write_statistics=_STATISTICS,
        write_page_checksum=True,
    )


def sync(file: BufferedRandom) -> int:
    """Make what was written to an object durable; tell how many octets it has."""
    file.flush()
    os.fsync(file.fileno())
    return os.fstat(file.fileno()).st_size


def _shared(value: bytes | memoryview) -> pa.Array:
    """Make a column of one value without copying it."""
    ends = pa.py_buffer(bytes(4) + len(value).to_bytes(4, "little"))
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(value)])


def open_file(store: Store, path: str, *, limit: int) -> BufferedReader:
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
def _source(store: Store, file: LogFile, at: Moved | None = None) -> Iterator[BufferedReader]:
    """Open a segment that has the length which its commit names, where it was or where it lies now."""
    path, start, limit = (file.path, 0, file.size) if at is None else (at.path, at.offset, MAX_OBJECT)
    with open_file(store, path, limit=limit) as source:
        # Where it was moved to, others follow it.
        if os.fstat(source.fileno()).st_size < start + file.size:
            raise damaged(path)
        source.seek(start)
        yield source


@contextmanager
def _private(source: BufferedReader, file: LogFile) -> Iterator[pa.BufferReader | IO[bytes]]:
    """Give the octets of a segment whose digest was compared: in memory, or in a file without a name."""
    if file.size <= _IN_MEMORY:
        with named_errors(Path(file.path)):
            data = source.read(file.size)
        if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.digest:
            raise damaged(file.path)
        yield pa.BufferReader(data)
        return
    with TemporaryFile() as copy:
        _compare(source, file, copy)
        copy.seek(0)
        yield copy


def _compare(source: BufferedReader, file: LogFile, copy: IO[bytes] | None) -> None:
    """Go through a segment once, keeping it if asked, and see that it is what was committed."""
    found, left = hashlib.sha256(), file.size
    with named_errors(Path(file.path)):
        while left and (data := source.read(min(left, _CHUNK))):
            found.update(data)
            left -= len(data)
            if copy is not None:
                copy.write(data)
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
