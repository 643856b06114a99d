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
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.encoding import SexpLimits, encode, parse_canonical
from maia.errors import EncodingError, NotFoundError, UnavailableError
from maia.log.commits import Commit, LogFile, check_turn, commit_of, value_of
from maia.log.moves import Upkeep, UpkeepRecords, read_place
from maia.log.numbered import NO_RECORD, NumberedRecords, named_errors, write_once
from maia.log.parcel_files import PartitionWriter

_COMMITS = "_commits"
_EVIDENCE = "_evidence"
_MAX_EVIDENCE = 16 << 20
_BATCH = 1
_MAX_MOVES = 8
_EVIDENCE_LIMITS = SexpLimits(max_bytes=_MAX_EVIDENCE, max_depth=2, max_atom=1 << 16)


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
            yield commit_of(record)

    def records(self, *, after: int, upto: int) -> Iterator[Commit]:
        """Read commits in order, those that have expired too: their records stay, their parcels are gone.

        Raises:
            EncodingError: A commit is missing (``COMMIT_MISSING``) or damaged (``COMMIT_DAMAGED``).
        """
        for record in self._records.walk(after=after, upto=upto):
            yield commit_of(record)

    def instant(self, commit: Commit, *, now: datetime) -> datetime:
        """Tell when a commit was made: by its newest parcel, or by its record where that is empty or of the future."""
        stamp = max((file.last_stamp for file in commit.files), default=-1)
        if not 0 <= stamp <= int(now.timestamp() * 1000):
            return self._records.written(commit.sequence)
        return datetime.fromtimestamp(stamp / 1000, UTC)

    def find(self, publication: str, *, origin: str) -> Commit | None:
        """Return the newest commit of a broker's publication or stream, or ``None``."""
        number = self._newest_by_name().numbers.get((origin, publication))
        return None if number is None else commit_of(self._records.read(number))

    def _newest_by_name(self) -> _Names:
        """Read what was committed since this object last looked; all of it when the log is not the one it was."""
        seen = self._seen
        if seen is None or seen.upto > self.latest() or self._records.digest(seen.upto) != seen.digest:
            seen = _Names(-1, NO_RECORD, {})
        numbers, last = dict(seen.numbers), (seen.upto, seen.digest)
        for record in self._records.walk(after=seen.upto):
            found = commit_of(record)
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
            newest = None if number is None else commit_of(self._records.read(number))
            if newest is not None or batch > 0:
                known = check_turn(newest, query, batch, sum(file.events for file in files) + refused)
                if known is not None:
                    return known
            made = Commit(seen.upto + 1, publication, type_id, origin, evidence, files, refused, query, batch)
            if self._records.put(made.sequence, value_of(made), seen.digest):
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
        if any(file.path == known.path for record in records for known in commit_of(record).files):
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
