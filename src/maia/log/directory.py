"""The log: a directory of Parquet files with parcels, and commits that say which of them count.

    type=<hex>/date=<day>/<publication>-<partition>-<attempt>.parquet     parcels, one row each
    _commits/<sequence>.json                                               what one publication added
    _evidence/<hex>                                                        certificates behind an origin's right
    _upkeep/<number>.json                                                  where files moved to, what has expired

Rules kept here:

- a file counts only when a commit names it. Commits are numbered without gaps, written whole and synced before their
  number exists, and never changed (`numbered`); the number is the offset that readers resume from;
- a publication of a broker is committed at most once, whoever races: committing it again changes nothing and returns
  the commit that counts, which is what makes a retried write harmless;
- the commits of one stream come from one query, batch after batch. Another query under its name, or a batch out of
  turn, means that the stream's checkpoint and the log are of different times, and is refused: going on would drop what
  the log believes to have;
- a commit tells the names of the events that each file holds, so that what was already delivered is known before it is
  opened;
- a commit holds each file's length and digest; a file that is missing or differs stops the reader with a named error.
  A file that compaction moved is read where it lies now, its rows compared with their digest;
- a reader that needs what has expired is told so (``LOG_EXPIRED``); it never gets a gap;
- what no commit names (left by a killed task) is ciphertext, is read by nobody, and is removed by `sweep`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.encryption import parse_parcel
from maia.errors import EncodingError, NotFoundError, UnavailableError, UsageError
from maia.log.moves import Upkeep, UpkeepRecords, read_place
from maia.log.numbered import NO_RECORD, NumberedRecords, Record, named_errors, sync_folder, write_once

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
_COMMITS = "_commits"
_EVIDENCE = "_evidence"
_MAX_EVIDENCE = 16 << 20
_BATCH = 1
_MAX_MOVES = 8
_EVIDENCE_LIMITS = SexpLimits(max_bytes=_MAX_EVIDENCE, max_depth=2, max_atom=1 << 16)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of parcels. ``bases`` names the events of each parcel, in order."""

    path: str
    size: int
    digest: str
    parcels: int
    events: int
    first_stamp: int
    last_stamp: int
    bases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Commit:
    """What one publication added to the log.

    Attributes:
        sequence: Its number.
        publication: Its name, which a retry has too.
        type_id: The type, in hex.
        origin: The broker that sealed the parcels, in hex.
        evidence: The hash of the evidence for the broker's right, in hex.
        files: The files that count from now on.
        refused: How many rows went no further.
        query: For a stream, the query that wrote it; empty for a batch.
        batch: For a stream, the micro-batch; -1 for a batch.
        digest: Of the commit itself, as it was read.
    """

    sequence: int
    publication: str
    type_id: str
    origin: str
    evidence: str
    files: tuple[LogFile, ...]
    refused: int = 0
    query: str = ""
    batch: int = -1
    digest: str = ""

    @property
    def events(self) -> int:
        """Count the events."""
        return sum(file.events for file in self.files)

    @property
    def name(self) -> str:
        """The publication, with the micro-batch when it is a stream's."""
        return self.publication if self.batch < 0 else f"{self.publication}/{self.batch}"


@dataclass(frozen=True, slots=True)
class _Names:
    """The newest commit of each origin's publications, up to a commit."""

    upto: int
    digest: str
    numbers: dict[tuple[str, str], int]


class LogDirectory:
    """A log in a directory."""

    def __init__(self, path: Path | str) -> None:
        """Use a directory; it is made when something is written."""
        self.path = Path(path)
        self._records = NumberedRecords(self.path / _COMMITS, "commit {} of the log")
        self._upkeep = UpkeepRecords(self.path)
        self._seen: _Names | None = None

    def latest(self) -> int:
        """Return the number of the newest commit; -1 when there is none."""
        return self._records.latest()

    def digest(self, number: int) -> str:
        """Return the digest of a commit, by which readers know the log again."""
        return self._records.digest(number)

    def upkeep(self) -> Upkeep:
        """Tell where files moved to and what has expired, by now."""
        return self._upkeep.load()

    def expired(self) -> int:
        """Return the number of the newest commit that has expired; -1 when none has."""
        return self._upkeep.load().expired

    def check_expired(self, after: int) -> None:
        """Refuse to go on after a commit when the next one has expired.

        Raises:
            NotFoundError: It has: ``LOG_EXPIRED``.
        """
        expired = self.expired()
        if after < expired:
            raise NotFoundError(
                f"the log has expired up to commit {expired}, and commit {after + 1} is asked for", code="LOG_EXPIRED"
            )

    def commits(self, *, after: int | None = None, upto: int | None = None) -> Iterator[Commit]:
        """Read commits in order, from the first that has not expired unless told after which.

        Raises:
            NotFoundError: One that is asked for has expired: ``LOG_EXPIRED``.
            EncodingError: A commit is missing (``COMMIT_MISSING``) or damaged (``COMMIT_DAMAGED``).
        """
        if after is None:
            after = self.expired()
        else:
            self.check_expired(after)
        for record in self._records.walk(after=after, upto=upto):
            yield _commit_of(record)

    def records(self, *, after: int, upto: int) -> Iterator[Commit]:
        """Read commits in order, those that have expired too: their records stay, their parcels are gone.

        Raises:
            EncodingError: A commit is missing (``COMMIT_MISSING``) or damaged (``COMMIT_DAMAGED``).
        """
        for record in self._records.walk(after=after, upto=upto):
            yield _commit_of(record)

    def instant(self, commit: Commit, *, now: datetime) -> datetime:
        """Tell when a commit was made: by its newest parcel, or by its record where that is empty or of the future."""
        stamp = max((file.last_stamp for file in commit.files), default=-1)
        if not 0 <= stamp <= int(now.timestamp() * 1000):
            return self._records.written(commit.sequence)
        return datetime.fromtimestamp(stamp / 1000, UTC)

    def find(self, publication: str, *, origin: str) -> Commit | None:
        """Return the newest commit of a broker's publication or stream, or ``None``."""
        number = self._newest_by_name().numbers.get((origin, publication))
        return None if number is None else _commit_of(self._records.read(number))

    def _newest_by_name(self) -> _Names:
        """Read what was committed since this object last looked; all of it when the log is not the one it was."""
        seen = self._seen
        if seen is None or seen.upto > self.latest() or self._records.digest(seen.upto) != seen.digest:
            seen = _Names(-1, NO_RECORD, {})
        numbers, last = dict(seen.numbers), (seen.upto, seen.digest)
        for record in self._records.walk(after=seen.upto):
            found = _commit_of(record)
            numbers[found.origin, found.publication] = found.sequence
            last = (record.number, record.digest)
        self._seen = seen = _Names(*last, numbers)
        return seen

    def commit(
        self,
        publication: str,
        type_id: str,
        files: tuple[LogFile, ...],
        *,
        origin: str,
        evidence: str,
        refused: int = 0,
        query: str = "",
        batch: int = -1,
    ) -> Commit:
        """Make files count, once per publication, or once per micro-batch of a stream.

        Returns:
            The commit, which may be an earlier one of the same publication; then the files given here do not count.

        Raises:
            UsageError: The name belongs to something else: another query, or a batch that is not the next.
            EncodingError: The log is damaged.
            UnavailableError: The system refused; nothing was committed.
        """
        while True:
            seen = self._newest_by_name()
            number = seen.numbers.get((origin, publication))
            newest = None if number is None else _commit_of(self._records.read(number))
            if newest is not None or batch > 0:
                known = _check_turn(newest, query, batch, sum(file.events for file in files) + refused)
                if known is not None:
                    return known
            made = Commit(seen.upto + 1, publication, type_id, origin, evidence, files, refused, query, batch)
            if self._records.put(made.sequence, _value_of(made), seen.digest):
                return replace(made, digest=self._records.digest(made.sequence))

    def put_evidence(self, certificates: tuple[bytes, ...]) -> bytes:
        """Keep the certificates behind an origin's right; return the hash that parcels name them by."""
        data = encode((b"evidence", *certificates))
        digest = hashlib.sha256(data).digest()
        folder = self.path / _EVIDENCE
        with named_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / digest.hex()).exists():
                write_once(folder / digest.hex(), data)
        return digest

    def evidence(self, digest: bytes) -> tuple[bytes, ...]:
        """Return the certificates that a hash names; none when they are missing or altered, which proves nothing."""
        try:
            with (self.path / _EVIDENCE / digest.hex()).open("rb") as file:
                data = file.read(_MAX_EVIDENCE)
            expression = parse_canonical(data, limits=_EVIDENCE_LIMITS)
        except (OSError, EncodingError):
            return ()
        if hashlib.sha256(data).digest() != digest or not isinstance(expression, tuple):
            return ()
        return tuple(item for item in expression[1:] if isinstance(item, bytes))

    def check_evidence(self, commit: Commit) -> None:
        """Tell damage from a missing right: refuse to go on when the evidence that a commit names is not there whole.

        Raises:
            EncodingError: The file is missing or altered: ``LOG_EVIDENCE_DAMAGED``.
        """
        if not self.evidence(bytes.fromhex(commit.evidence)):
            raise EncodingError(
                f"the evidence of commit {commit.sequence} is missing or damaged", code="LOG_EVIDENCE_DAMAGED"
            )

    def writer(
        self, publication: str, type_id: bytes, partition: int, attempt: str, *, at: datetime
    ) -> PartitionWriter:
        """Open a file for the parcels of one task."""
        day = at.astimezone(UTC).date().isoformat()
        name = hashlib.sha256(publication.encode()).hexdigest()[:24]
        relative = f"type={type_id.hex()}/date={day}/{name}-{partition:05d}-{attempt}.parquet"
        return PartitionWriter(self.path, relative)

    def parcels(self, file: LogFile) -> Iterator[pa.RecordBatch]:
        """Read the parcels of a committed file, one at a time, after comparing its digest.

        Raises:
            UnavailableError: The file is missing: ``LOG_FILE_MISSING``; or it has expired: ``LOG_EXPIRED``.
            EncodingError: It is not what was committed: ``LOG_FILE_DAMAGED``.
        """
        path = self.path / file.path
        try:
            with named_errors(path):
                source = path.open("rb")
        except FileNotFoundError:
            yield from self._moved(file)
            return
        with source:
            with named_errors(path):
                same = os.fstat(source.fileno()).st_size == file.size
                if not same or hashlib.file_digest(source, "sha256").hexdigest() != file.digest:
                    raise EncodingError(
                        f"the log file `{file.path}` is not what was committed", code="LOG_FILE_DAMAGED"
                    )
            # A parcel is a row group, so however many there are, one is in memory.
            with pq.ParquetFile(source) as parquet:
                yield from parquet.iter_batches(batch_size=_BATCH)

    def _moved(self, file: LogFile) -> Iterator[pa.RecordBatch]:
        """Read a file's parcels where compaction put them; it may move them again while we look."""
        for _ in range(_MAX_MOVES):
            place = self._upkeep.load().places.get(file.path)
            if place is None:
                break
            try:
                yield from read_place(self.path, place).to_batches(max_chunksize=_BATCH)
            except FileNotFoundError:
                continue
            return
        expired = self.expired()
        records = self._records.walk(upto=expired) if expired >= 0 else ()
        if any(file.path == known.path for record in records for known in _commit_of(record).files):
            raise NotFoundError(f"the log file `{file.path}` has expired", code="LOG_EXPIRED")
        raise UnavailableError(f"the log file `{file.path}` is missing", code="LOG_FILE_MISSING")

    def sweep(self, *, keep_newer_than: datetime, dry_run: bool = False) -> list[str]:
        """Remove files that nothing names and that are older than an instant; return their names.

        Those are files of killed tasks, and files that upkeep moved or let expire and was killed before it removed.
        """
        # A file that was moved is kept as long as the file it was moved to is not there.
        places = {old: at for old, at in self._upkeep.load().places.items() if (self.path / at.path).exists()}
        named = {file.path for commit in self.commits() for file in commit.files if file.path not in places}
        named |= {place.path for place in places.values()}
        found = [*sorted(self.path.glob("type=*/date=*/*.parquet")), *sorted(self.path.glob("_*/.*.part"))]
        removed = []
        for path in found:
            relative = path.relative_to(self.path).as_posix()
            with named_errors(path), suppress(FileNotFoundError):
                if relative not in named and path.stat().st_mtime < keep_newer_than.timestamp():
                    if not dry_run:
                        path.unlink()
                    removed.append(relative)
        return removed


def _check_turn(newest: Commit | None, query: str, batch: int, rows: int) -> Commit | None:
    """Return the commit that already stands for this one, nothing when it is new, or refuse what is out of turn."""
    if newest is None:
        raise UsageError(
            f"the log has nothing of this stream before batch {batch}: its checkpoint belongs to another log or time",
            code="CHECKPOINT_AHEAD",
        )
    if (newest.query, min(newest.batch, 0)) != (query, min(batch, 0)):
        raise UsageError(
            f"`{newest.publication}` was begun by another query: name it anew, or give back its checkpoint",
            code="PUBLICATION_TAKEN",
        )
    if batch > newest.batch + 1:
        raise UsageError(f"the log ends at batch {newest.batch} and the checkpoint at {batch}", code="CHECKPOINT_AHEAD")
    if batch < newest.batch:
        raise UsageError(f"the log has batch {newest.batch} and the checkpoint {batch}", code="CHECKPOINT_BEHIND")
    if batch == newest.batch:
        if batch >= 0 and rows != newest.events + newest.refused:
            raise UsageError(f"batch {batch} was committed with other rows", code="CHECKPOINT_BEHIND")
        return newest
    return None


def _value_of(commit: Commit) -> dict[str, object]:
    value = asdict(commit)
    del value["sequence"], value["digest"]
    return value


def _commit_of(record: Record) -> Commit:
    try:
        value = dict(record.value)
        items = value.pop("files")
        files = tuple(LogFile(**{**item, "bases": tuple(item["bases"])}) for item in items)  # type: ignore[attr-defined]
        commit = Commit(record.number, files=files, digest=record.digest, **value)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError) as error:
        raise EncodingError(f"commit {record.number} of the log is damaged", code="COMMIT_DAMAGED") from error
    if any(".." in file.path or file.path.startswith("/") or len(file.bases) != file.parcels for file in files):
        raise EncodingError(f"commit {record.number} of the log is damaged", code="COMMIT_DAMAGED")
    return commit


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
