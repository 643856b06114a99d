"""Upkeep of a log: compaction of small segments, retention, and what killed tasks left behind.

An origin keeps its own lanes in order, and no one else's: where a segment lies and what has expired counts only when
the lane's owner signed it. Rules kept here:

- parcels are copied byte for byte, after the file they lie in was found undamaged, and read back before they count;
- commits stay as they are: a record of the lane says where a segment's parcels lie now, and readers follow it;
- the order is always: write the new, sync it, sign it, remove the old. Killed anywhere, the log reads the same, and
  what is left over is removed by `sweep`;
- what has expired is a beginning of a lane. A reader that still needs it gets ``LOG_EXPIRED``, never a gap.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from maia.errors import EncodingError, MaiaError, UnavailableError, UsageError
from maia.kernel import milliseconds
from maia.log.commits import Commit, LogFile, Moved, write_moves
from maia.log.directory import LogDirectory
from maia.log.event_lane import EventLane, lane_name
from maia.log.numbered import named_errors
from maia.log.own_lanes import OwnLanes
from maia.log.segments import PARCEL_SCHEMA, read_moved, rows_digest, segment_writer, sync
from maia.principals import KeyId

TARGET_SIZE = 128 << 20
_MAX_MEMBERS = 4096
_MAX_DAYS = 1 << 20


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
        upto: The number of the newest commit that expires, by lane.
        commits: How many expire now.
        events: How many events they hold.
        files: How many files are removed, or would be.
    """

    upto: dict[str, int] = field(default_factory=dict)
    commits: int = 0
    events: int = 0
    files: int = 0


@dataclass(slots=True)
class _Unit:
    """One file as it lies on disk, and the committed segments whose parcels it holds."""

    path: str
    size: int
    members: list[LogFile] = field(default_factory=list)


def compact(
    log: LogDirectory, own: OwnLanes, *, at: datetime, target: int = TARGET_SIZE, dry_run: bool = False
) -> Compacted:
    """Rewrite small segments of one's own lanes into larger ones; what every reader gets stays the same.

    Only segments of the same type and day are put together. A file of at least half the target is left alone.

    Args:
        log: The log.
        own: The lanes of the broker that does it.
        at: Now.
        target: The size of a rewritten file, in octets, at most; a bound for memory as well.
        dry_run: Only count.

    Raises:
        MaiaError: A segment is damaged; what was not rewritten yet stays as it is.
    """
    if target < 1:
        raise UsageError("a rewritten file has a size of at least 1", code="LOG_UPKEEP_SIZE")
    before = after = octets = 0
    for lane in _own(log, own):
        for group in _groups(log, lane, target):
            before, after = before + len(group), after + 1
            octets += sum(unit.size for unit in group)
            if not dry_run:
                _rewrite(log, own, lane, group, at)
    return Compacted(before=before, after=after, octets=octets)


def expire(log: LogDirectory, own: OwnLanes, *, before: datetime, at: datetime, dry_run: bool = False) -> Expired:
    """Let the commits at the beginning of one's own lanes that are older than an instant expire; remove their files.

    Args:
        log: The log.
        own: The lanes of the broker that does it.
        before: Commits from this instant on stay.
        at: Now.
        dry_run: Only count.

    Raises:
        MaiaError: The system refused, or the home was restored from the past.
    """
    upto: dict[str, int] = {}
    commits = events = files = 0
    for lane in _own(log, own):
        going = _older(lane.commits(), milliseconds(before))
        if not going:
            continue
        staying = [file for commit in lane.commits()[len(going) :] for file in commit.files]
        gone = {_lies(lane, file) for commit in going for file in commit.files}
        gone -= {_lies(lane, file) for file in staying}
        upto[lane.name] = going[-1].sequence
        commits, events, files = commits + len(going), events + sum(c.events for c in going), files + len(gone)
        if not dry_run:
            with own.turn():
                writer = own.writer(lane.lane.topic)
                newest = writer.newest()
                if newest is not None and newest.number == going[-1].sequence:
                    own.heartbeat(lane.lane.topic, at=at)  # the newest record of a lane stays
                writer.forget(going[-1].sequence, at=at, keep_own=True)
            _remove(log, sorted(gone))
    return Expired(upto=upto, commits=commits, events=events, files=files)


def lost_segments(log: LogDirectory, owner: KeyId, *, digests: bool = False) -> Iterator[tuple[str, str]]:
    """Name the files of a broker's lanes that are missing, or are not what was committed, each with the code.

    Args:
        log: The log.
        owner: The broker whose lanes are looked at.
        digests: Read every file and compare what it holds; else its size has to do.

    Raises:
        MaiaError: A lane itself cannot be read.
    """
    for lane in (lane for lane in log.lanes() if lane.name.endswith(f"/{owner.hex()}")):
        for file in (file for commit in lane.commits() for file in commit.files):
            moved, path = lane.place_of(file), _lies(lane, file)
            try:
                with named_errors(log.path / path):
                    size = (log.path / path).lstat().st_size
                if moved is None and size != file.size:
                    yield path, "LOG_FILE_DAMAGED"
                elif digests:
                    for _ in lane.parcels(file):
                        pass
            except FileNotFoundError:
                yield path, "LOG_FILE_MISSING"
            except MaiaError as error:
                yield path, error.code


def sweep(log: LogDirectory, own: OwnLanes, *, keep_newer_than: datetime, dry_run: bool = False) -> list[str]:
    """Remove files of one's own lanes that nothing names and that are older than an instant; return their names.

    Those are segments of killed tasks, and files that upkeep moved or let expire and was killed before it removed.
    """
    removed = []
    for lane in _own(log, own):
        files = [file for commit in lane.commits() for file in commit.files]
        # A segment that was moved is kept as long as the file that it was moved to is not there.
        named = {file.path for file in files if not (log.path / _lies(lane, file)).is_file()}
        named |= {_lies(lane, file) for file in files}
        folder = log.path / lane.lane.folder
        # SECURITY: a day that is a link leads out of the log, where nothing is ours to remove.
        days = log.store.list_folders(lane.lane.folder, "date=", limit=_MAX_DAYS)
        segments = [path for day in days for path in sorted((folder / day).glob("*.parquet"))]
        for path in [*segments, *sorted(folder.glob(".*.part"))]:
            relative = path.relative_to(log.path).as_posix()
            with suppress(FileNotFoundError, EncodingError), named_errors(path):
                if relative not in named and path.lstat().st_mtime < keep_newer_than.timestamp():
                    if not dry_run:
                        log.store.delete(relative)
                    removed.append(relative)
    return removed


def _own(log: LogDirectory, own: OwnLanes) -> Iterator[EventLane]:
    """Give one's own lanes, whole.

    SECURITY: what a lane names is what its owner's own record says, never what the store shows: somebody may have taken
    a record away, and everything behind it would look as if nothing named it.
    """
    for type_id in own.types():
        writer = own.writer(type_id)
        writer.restore()
        lane = log.lane(lane_name(writer.lane))
        lane.refresh()
        newest = writer.newest()
        if newest is not None and (lane.alarm is not None or lane.count != newest.number + 1):
            raise UnavailableError(
                f"lane {writer.lane}: the log does not show all that this home committed; somebody is changing it",
                code="LANE_CHANGING",
            )
        yield lane


def _lies(lane: EventLane, file: LogFile) -> str:
    moved = lane.place_of(file)
    return file.path if moved is None else moved.path


def _older(commits: Sequence[Commit], before: int) -> list[Commit]:
    """Take commits from the beginning as long as they are older."""
    found: list[Commit] = []
    for commit in commits:
        if commit.stamp >= before:
            break
        found.append(commit)
    return found


def _groups(log: LogDirectory, lane: EventLane, target: int) -> Iterator[list[_Unit]]:
    """Put small files of one day together, in the order of the lane, as long as they fit."""
    folders: dict[str, dict[str, _Unit]] = {}
    for commit in lane.commits():
        for file in commit.files:
            path = _lies(lane, file)
            units = folders.setdefault(path.rpartition("/")[0], {})
            if path not in units:
                try:
                    with named_errors(log.path / path):
                        units[path] = _Unit(path, (log.path / path).lstat().st_size)
                except FileNotFoundError as error:
                    raise UnavailableError(f"the log file `{path}` is missing", code="LOG_FILE_MISSING") from error
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


def _rewrite(log: LogDirectory, own: OwnLanes, lane: EventLane, group: Sequence[_Unit], at: datetime) -> None:
    relative = f"{group[0].path.rpartition('/')[0]}/compact-{secrets.token_hex(12)}.parquet"
    members = [member for unit in group for member in unit.members]
    try:
        places = _write(log, lane, relative, members)
    except MaiaError:
        log.store.delete(relative)
        raise
    writer = own.writer(lane.lane.topic)
    # When signing fails half-way nobody knows whether it counts: then both stay, and `sweep` finds out.
    with own.turn():
        writer.append(write_moves(places, lane.lane.folder), at=at)
    lane.refresh()
    _remove(log, [unit.path for unit in group])


def _remove(log: LogDirectory, paths: Sequence[str]) -> None:
    for path in paths:
        log.store.delete(path)


def _write(log: LogDirectory, lane: EventLane, relative: str, members: Sequence[LogFile]) -> dict[str, Moved]:
    """Copy the parcels of committed segments into one file, a row group each, synced and read back."""
    places: dict[str, Moved] = {}
    with log.store.create(relative) as made, named_errors(log.path / relative):
        with segment_writer(made) as writer:
            for file in members:
                table = pa.Table.from_batches(lane.parcels(file), schema=PARCEL_SCHEMA)
                writer.write_table(table, row_group_size=max(table.num_rows, 1))
                places[file.path] = Moved(relative, len(places), rows_digest(table))
        sync(made)
    for file in members:
        read_moved(log.store, file, places[file.path])
    return places
