"""The log: a directory of Parquet files with parcels, and commits that say which of them count.

    type=<hex>/date=<day>/<publication>-<partition>-<attempt>.parquet     parcels, one row each
    _commits/<sequence>.json                                               what one publication added
    _evidence/<hex>                                                        certificates behind an origin's right

Rules kept here:

- a file counts only when a commit names it. Commits are numbered without gaps, written whole and synced before their
  number exists, and never changed; the number is the offset that readers resume from;
- a publication is committed at most once: committing it again changes nothing and says so, which is what makes a
  retried write harmless;
- a commit holds each file's length and digest; a file that is missing or differs stops the reader with a named error;
- what no commit names (left by a killed task) is ciphertext, is read by nobody, and is removed by `sweep`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, UnavailableError, UsageError

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
_COMMITS = "_commits"
_EVIDENCE = "_evidence"
_MAX_COMMIT = 16 << 20
_NUMBER = 12
_EVIDENCE_LIMITS = SexpLimits(max_bytes=_MAX_COMMIT, max_depth=2, max_atom=1 << 16)


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of parcels."""

    path: str
    size: int
    digest: str
    parcels: int
    events: int
    first_stamp: int
    last_stamp: int


@dataclass(frozen=True, slots=True)
class Commit:
    """What one publication added to the log."""

    sequence: int
    publication: str
    type_id: str
    origin: str
    evidence: str
    files: tuple[LogFile, ...]
    refused: int = 0

    @property
    def events(self) -> int:
        """Count the events."""
        return sum(file.events for file in self.files)


class LogDirectory:
    """A log in a directory."""

    def __init__(self, path: Path | str) -> None:
        """Use a directory; it is made when something is written."""
        self.path = Path(path)

    def latest(self) -> int:
        """Return the number of the newest commit; -1 when there is none."""
        return max((int(name) for name in self._numbers()), default=-1)

    def commits(self, *, after: int = -1, upto: int | None = None) -> Iterator[Commit]:
        """Read commits in order.

        Raises:
            EncodingError: A commit is damaged, or a number is missing in between.
        """
        end = self.latest() if upto is None else upto
        for number in range(after + 1, end + 1):
            yield self._read(number)

    def find(self, publication: str) -> Commit | None:
        """Return the commit of a publication, newest first, or ``None``."""
        for number in range(self.latest(), -1, -1):
            commit = self._read(number)
            if commit.publication == publication:
                return commit
        return None

    def commit(
        self,
        publication: str,
        type_id: str,
        files: tuple[LogFile, ...],
        *,
        origin: str,
        evidence: str,
        refused: int = 0,
    ) -> Commit:
        """Make files count, once per publication.

        Returns:
            The commit, which may be an earlier one of the same publication.
        """
        known = self.find(publication)
        if known is not None:
            return known
        folder = self.path / _COMMITS
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            commit = Commit(self.latest() + 1, publication, type_id, origin, evidence, files, refused)
            if _publish_once(folder, f"{commit.sequence:0{_NUMBER}d}.json", json.dumps(asdict(commit)).encode()):
                return commit

    def put_evidence(self, certificates: tuple[bytes, ...]) -> bytes:
        """Keep the certificates behind an origin's right; return the hash that parcels name them by."""
        data = encode((b"evidence", *certificates))
        digest = hashlib.sha256(data).digest()
        folder = self.path / _EVIDENCE
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / digest.hex()).exists():
            _publish_once(folder, digest.hex(), data)
        return digest

    def evidence(self, digest: bytes) -> tuple[bytes, ...]:
        """Return the certificates that a hash names; none when they are missing or altered, which proves nothing."""
        try:
            with (self.path / _EVIDENCE / digest.hex()).open("rb") as file:
                data = file.read(_MAX_COMMIT)
            expression = parse_canonical(data, limits=_EVIDENCE_LIMITS)
        except (OSError, EncodingError):
            return ()
        if hashlib.sha256(data).digest() != digest or not isinstance(expression, tuple):
            return ()
        return tuple(item for item in expression[1:] if isinstance(item, bytes))

    def writer(
        self, publication: str, type_id: bytes, partition: int, attempt: str, *, at: datetime
    ) -> PartitionWriter:
        """Open a file for the parcels of one task."""
        day = at.astimezone(UTC).date().isoformat()
        name = hashlib.sha256(publication.encode()).hexdigest()[:24]
        relative = f"type={type_id.hex()}/date={day}/{name}-{partition:05d}-{attempt}.parquet"
        return PartitionWriter(self.path, relative)

    def parcels(self, file: LogFile) -> Iterator[pa.RecordBatch]:
        """Read the parcels of a committed file, a few at a time, after comparing its digest.

        Raises:
            UnavailableError: The file is missing: ``LOG_FILE_MISSING``.
            EncodingError: It is not what was committed: ``LOG_FILE_DAMAGED``.
        """
        path = self.path / file.path
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UnavailableError(f"the log file `{file.path}` is missing", code="LOG_FILE_MISSING") from error
        if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.digest:
            raise EncodingError(f"the log file `{file.path}` is not what was committed", code="LOG_FILE_DAMAGED")
        with pq.ParquetFile(pa.BufferReader(data)) as parquet:
            yield from parquet.iter_batches(batch_size=4)

    def sweep(self, *, keep_newer_than: datetime) -> list[str]:
        """Remove files that no commit names and that are older than an instant; return their names."""
        named = {file.path for commit in self.commits() for file in commit.files}
        removed = []
        for path in sorted(self.path.glob("type=*/date=*/*.parquet")):
            relative = path.relative_to(self.path).as_posix()
            if relative not in named and path.stat().st_mtime < keep_newer_than.timestamp():
                path.unlink()
                removed.append(relative)
        return removed

    def _numbers(self) -> list[str]:
        folder = self.path / _COMMITS
        if not folder.is_dir():
            return []
        return [name[:-5] for name in os.listdir(folder) if name.endswith(".json") and name[:-5].isdigit()]

    def _read(self, number: int) -> Commit:
        path = self.path / _COMMITS / f"{number:0{_NUMBER}d}.json"
        try:
            with path.open("rb") as file:
                value = json.loads(file.read(_MAX_COMMIT))
            files = tuple(LogFile(**item) for item in value.pop("files"))
            commit = Commit(**value, files=files)
        except FileNotFoundError as error:
            raise EncodingError(f"commit {number} of the log is missing", code="LOG_COMMIT_MISSING") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise EncodingError(f"commit {number} of the log is damaged", code="LOG_COMMIT_DAMAGED") from error
        if commit.sequence != number or any(".." in file.path or file.path.startswith("/") for file in files):
            raise EncodingError(f"commit {number} of the log is damaged", code="LOG_COMMIT_DAMAGED")
        return commit


class PartitionWriter:
    """Writes the parcels of one task to one file, which counts for nothing until it is committed."""

    def __init__(self, root: Path, relative: str) -> None:
        """Start without a file; the first parcel makes it."""
        self._root = root
        self._relative = relative
        self._writer: pq.ParquetWriter | None = None
        self._stamps: list[int] = []
        self._events = 0
        self._parcels = 0

    def add(self, row: dict[str, object]) -> None:
        """Append one parcel."""
        if self._writer is None:
            path = self._root / self._relative
            path.parent.mkdir(parents=True, exist_ok=True)
            # Ciphertext does not compress, and page checksums find a flipped bit without the log's own digest too.
            self._writer = pq.ParquetWriter(
                path, PARCEL_SCHEMA, compression="none", use_dictionary=False, write_page_checksum=True
            )
        self._writer.write_batch(pa.RecordBatch.from_pylist([row], schema=PARCEL_SCHEMA))
        stamp, events = row["stamp"], row["events"]
        if not isinstance(stamp, int) or not isinstance(events, int):
            raise UsageError("a parcel row has a stamp and a number of events")
        self._stamps.append(stamp)
        self._events += events
        self._parcels += 1

    def close(self) -> LogFile | None:
        """Finish and sync the file; ``None`` when nothing was written."""
        if self._writer is None:
            return None
        self._writer.close()
        path = self._root / self._relative
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        _sync_folder(path.parent)
        return LogFile(
            self._relative,
            path.stat().st_size,
            digest,
            self._parcels,
            self._events,
            min(self._stamps),
            max(self._stamps),
        )


def _publish_once(folder: Path, name: str, data: bytes) -> bool:
    """Create a file whole and synced, or find that the name is taken."""
    part = folder / f".{name}.{os.getpid()}.part"
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(part, folder / name)
    except FileExistsError:
        return False
    finally:
        part.unlink()
    _sync_folder(folder)
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
