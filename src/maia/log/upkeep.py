"""Upkeep of a log: compaction of small files, and retention.

Rules kept here:

- parcels are copied byte for byte, after the file they lie in was found undamaged, and read back before they count;
- commits stay as they are: a record says where a file's parcels lie now (`moves`), and readers follow it;
- the order is always: write the new, sync it, record it, remove the old. Killed anywhere, the log reads the same, and
  what is left over is removed by `sweep`;
- what has expired is a beginning of the log. A reader that still needs it gets ``LOG_EXPIRED``, never a gap;
- expiry says how old a parcel may be that comes later (`repeats`): as old as the oldest that is still there.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.errors import EncodingError, MaiaError, UnavailableError, UsageError
from maia.kernel import milliseconds
from maia.log.commits import Commit, LogFile
from maia.log.directory import LogDirectory
from maia.log.moves import Horizon, Place, Upkeep, UpkeepRecords, read_place, rows_digest
from maia.log.numbered import named_errors, sync_folder
from maia.log.parcel_files import PARCEL_SCHEMA

TARGET_SIZE = 128 << 20
_MAX_MEMBERS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What compaction did: so many files became so many, with so many octets."""

    before: int = 0
    after: int = 0
    octets: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """What retention did, or would do.

    Attributes:
        upto: The newest commit that has expired; -1 when none has.
        commits: How many expired now.
        events: How many events they held.
        files: How many files were removed, or would be.
    """

    upto: int
    commits: int = 0
    events: int = 0
    files: int = 0


@dataclass(slots=True)
class _Unit:
    """One file as it lies on disk, and the committed files whose parcels it holds."""

    path: str
    size: int
    members: list[LogFile] = field(default_factory=list)


def compact(log: LogDirectory, *, target: int = TARGET_SIZE, dry_run: bool = False) -> Compacted:
    """Rewrite small files into larger ones; what every reader gets stays the same.

    Only files of the same type and day are put together. A file of at least half the target is left alone.

    Args:
        log: The log.
        target: The size of a rewritten file, in octets, at most; a bound for memory as well.
        dry_run: Only count.

    Raises:
        EncodingError: The log is damaged; what was not rewritten yet stays as it is.
        UnavailableError: The system refused, or other upkeep came in between: ``LOG_UPKEEP_RUNNING``.
    """
    if target < 1:
        raise UsageError("a rewritten file has a size of at least 1", code="LOG_UPKEEP_SIZE")
    records = UpkeepRecords(log.path)
    before = after = octets = 0
    for group in _groups(log, records.load(), target):
        before, after = before + len(group), after + 1
        octets += sum(unit.size for unit in group)
        if not dry_run:
            _rewrite(log, records, group)
    return Compacted(before=before, after=after, octets=octets)


def expire(log: LogDirectory, *, before: datetime, now: datetime, dry_run: bool = False) -> Expired:
    """Let the commits at the beginning of the log that are older than an instant expire, and remove their files.

    A commit's age is that of its newest parcel; where a broker's clock ran ahead, that of its record. The first commit
    that is not older ends it, so that what is left has no gap.

    Args:
        log: The log.
        before: Commits from this instant on stay.
        now: The present.
        dry_run: Only count.

    Raises:
        EncodingError: The log is damaged.
        UnavailableError: The system refused, or other upkeep came in between: ``LOG_UPKEEP_RUNNING``.
    """
    records = UpkeepRecords(log.path)
    known = records.load()
    going: list[Commit] = []
    staying = iter(log.commits())
    for commit in staying:
        if log.instant(commit, now=now) >= before:
            staying = chain((commit,), staying)
            break
        going.append(commit)
    upto = going[-1].sequence if going else known.expired
    files = [file.path for commit in going for file in commit.files]
    moved = [path for path in files if path in known.places]
    kept = {place.path for old, place in known.places.items() if old not in set(moved)}
    gone = {known.places[path].path for path in moved} - kept
    removed = sorted({path for path in files if (log.path / path).exists()} | gone)
    if going and not dry_run:
        horizon = _horizon(log, known, upto, staying, milliseconds(before))
        if not records.expire(known, upto, moved, horizon):
            raise _busy()
        _remove(log.path, removed)
    events = sum(commit.events for commit in going)
    return Expired(upto=upto, commits=len(going), events=events, files=len(removed))


def _horizon(log: LogDirectory, known: Upkeep, upto: int, staying: Iterable[Commit], before: int) -> Horizon:
    """Work out which parcels could be repetitions of what expires, and how far back names must be known."""
    gone = [(commit.sequence, file.last_stamp) for commit in log.records(after=known.horizon.names - 1, upto=upto)
            for file in commit.files]  # fmt: skip
    newest = max(known.horizon.newest, min(before, max((stamp for _, stamp in gone), default=-1) + 1))
    oldest = min((file.first_stamp for commit in staying for file in commit.files), default=newest)
    horizon = max(known.horizon.oldest, min(newest, oldest))
    names = min((number for number, stamp in gone if stamp >= horizon), default=upto + 1)
    return Horizon(newest, horizon, max(known.horizon.names, names))


def _groups(log: LogDirectory, known: Upkeep, target: int) -> Iterator[list[_Unit]]:
    """Put small files of one type and day together, in the order of the log, as long as they fit."""
    folders: dict[str, dict[str, _Unit]] = {}
    for commit in log.commits():
        for file in commit.files:
            place = known.places.get(file.path)
            path = file.path if place is None else place.path
            units = folders.setdefault(path.rpartition("/")[0], {})
            if path not in units:
                units[path] = _Unit(path, _size(log.path / path))
            units[path].members.append(file)
    for units in folders.values():
        group: list[_Unit] = []
        for unit in (item for item in units.values() if item.size * 2 < target):
            full = sum(item.size for item in group) + unit.size > target
            if full or sum(len(item.members) for item in (*group, unit)) > _MAX_MEMBERS:
                if len(group) > 1:
                    yield group
                group = []
            group.append(unit)
        if len(group) > 1:
            yield group


def _rewrite(log: LogDirectory, records: UpkeepRecords, group: Sequence[_Unit]) -> None:
    known = records.load()
    relative = f"{group[0].path.rpartition('/')[0]}/compact-{secrets.token_hex(12)}.parquet"
    members = [member for unit in group for member in unit.members]
    try:
        places = _write(log, relative, members)
    except MaiaError:
        _remove(log.path, [relative])
        raise
    # When recording fails half-way nobody knows whether it counts: then both stay, and `sweep` finds out.
    if not records.move(known, places):
        _remove(log.path, [relative])
        raise _busy()
    _remove(log.path, [unit.path for unit in group])


def _write(log: LogDirectory, relative: str, members: Sequence[LogFile]) -> dict[str, Place]:
    """Copy the parcels of committed files into one file, a row group each, synced and read back."""
    path = log.path / relative
    places: dict[str, Place] = {}
    with named_errors(path):
        with pq.ParquetWriter(
            path, PARCEL_SCHEMA, compression="none", use_dictionary=False, write_page_checksum=True
        ) as writer:
            for file in members:
                table = pa.Table.from_batches(log.parcels(file), schema=PARCEL_SCHEMA)
                writer.write_table(table, row_group_size=max(table.num_rows, 1))
                places[file.path] = Place(relative, len(places), rows_digest(table))
        with path.open("rb") as written:
            os.fsync(written.fileno())
        sync_folder(path.parent)
    for file in members:
        if read_place(log.path, places[file.path]).num_rows != file.parcels:
            raise EncodingError(f"the log file `{file.path}` is not what was committed", code="LOG_FILE_DAMAGED")
    return places


def _remove(root: Path, files: Sequence[str]) -> None:
    for relative in files:
        with named_errors(root / relative), suppress(FileNotFoundError):
            (root / relative).unlink()


def _size(path: Path) -> int:
    try:
        with named_errors(path):
            return path.stat().st_size
    except FileNotFoundError as error:
        raise UnavailableError(f"the log file `{path.name}` is missing", code="LOG_FILE_MISSING") from error


def _busy() -> UnavailableError:
    return UnavailableError("other upkeep of this log came in between; nothing was changed", code="LOG_UPKEEP_RUNNING")
