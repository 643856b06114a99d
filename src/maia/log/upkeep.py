"""Upkeep of a log: compaction of small segments, retention, and what killed tasks left behind.

An origin keeps its own lanes in order, and no one else's: where a segment lies and what has expired counts only when
the lane's owner signed it. Rules kept here:

- segments are copied octet for octet, one behind the other, and compared with their commits on the way and read back
  before they count. So what a reader compares before it opens anything stays what the commit says;
- commits stay as they are: a record of the lane says where a segment lies now, and readers follow it;
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
from pathlib import Path

from maia.errors import EncodingError, MaiaError, NotFoundError, UnavailableError, UsageError
from maia.kernel import milliseconds
from maia.log.commits import Commit, LogFile, Moved, MovedRows, write_moves
from maia.log.directory import LogDirectory
from maia.log.event_lane import EventLane, lane_name
from maia.log.numbered import named_errors
from maia.log.own_lanes import OwnLanes
from maia.log.segments import check_segment
from maia.log.store import MAX_OBJECT, Store
from maia.principals import KeyId

TARGET_SIZE = 128 << 20
_MAX_MEMBERS = 4096
_MAX_DAYS = 1 << 20
_MAX_FILES = 1 << 24
_ENDS = (".parquet", ".segments")


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
    """One file as it lies on disk, and the committed segments that it holds."""

    path: str
    members: list[LogFile] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many octets the segments have."""
        return sum(member.size for member in self.members)


def compact(
    log: LogDirectory, own: OwnLanes, *, at: datetime, target: int = TARGET_SIZE, dry_run: bool = False
) -> Compacted:
    """Rewrite small segments of one's own lanes into larger ones; what every reader gets stays the same.

    Only segments of the same type and day are put together. A file of at least half the target is left alone.

    Args:
        log: The log.
        own: The lanes of the broker that does it.
        at: Now.
        target: The size of a rewritten file, in octets, at most.
        dry_run: Only count.

    Raises:
        MaiaError: A segment is damaged; what was not rewritten yet stays as it is.
    """
    if target < 1:
        raise UsageError("a rewritten file has a size of at least 1", code="LOG_UPKEEP_SIZE")
    before = after = octets = 0
    for lane in _own(log, own):
        for group in _groups(lane, target):
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
                if log.store.look(path).size != file.size and moved is None:
                    yield path, "LOG_FILE_DAMAGED"
                elif digests:
                    lane.check(file)
                    for _ in lane.parcels(file):
                        pass
            except NotFoundError:
                yield path, "LOG_FILE_MISSING"
            except MaiaError as error:
                yield path, "LOG_FILE_DAMAGED" if error.code == "OBJECT_UNFIT" else error.code


def sweep(log: LogDirectory, own: OwnLanes, *, keep_newer_than: datetime, dry_run: bool = False) -> list[str]:
    """Remove files of one's own lanes that nothing names and that are older than an instant; return their names.

    Those are segments of killed tasks, and files that upkeep moved or let expire and was killed before it removed.
    """
    removed = []
    for lane in _own(log, own):
        files = [file for commit in lane.commits() for file in commit.files]
        # A segment that was moved is kept as long as the file that it was moved to is not there.
        named = {file.path for file in files if not _there(log.store, _lies(lane, file))}
        named |= {_lies(lane, file) for file in files}
        folder, store = lane.lane.folder, log.store
        # SECURITY: a day that is a link leads out of the log, where nothing is ours to remove.
        days = [f"{folder}/{day}" for day in store.list_folders(folder, "date=", limit=_MAX_DAYS)]
        found = [f"{day}/{name}" for day in days for name in store.list_after(day, "", limit=_MAX_FILES)]
        segments = [path for path in found if path.endswith(_ENDS)]
        for path in [*segments, *(f"{folder}/{name}" for name in store.list_left(folder, limit=_MAX_FILES))]:
            with suppress(NotFoundError, EncodingError):
                if path not in named and store.look(path).written < keep_newer_than:
                    if not dry_run:
                        store.delete(path)
                    removed.append(path)
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


def _there(store: Store, path: str) -> bool:
    """Tell whether something that can be read lies under a name."""
    try:
        store.open(path, limit=MAX_OBJECT).close()
    except (NotFoundError, EncodingError):
        return False
    return True


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


def _groups(lane: EventLane, target: int) -> Iterator[list[_Unit]]:
    """Put small files of one day together, in the order of the lane, as long as they fit."""
    folders: dict[str, dict[str, _Unit]] = {}
    for commit in lane.commits():
        for file in commit.files:
            if isinstance(lane.place_of(file), MovedRows):
                continue  # its octets are gone
            path = _lies(lane, file)
            folders.setdefault(path.rpartition("/")[0], {}).setdefault(path, _Unit(path)).members.append(file)
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
    relative = f"{group[0].path.rpartition('/')[0]}/compact-{secrets.token_hex(12)}.segments"
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
    """Copy committed segments into one file, one behind the other, synced and read back."""
    places: dict[str, Moved] = {}
    with log.store.create(relative) as made, named_errors(Path(relative)):
        for file in members:
            places[file.path] = Moved(relative, made.file.tell())
            lane.check(file, copy=made.file)
        made.finish()
    for file in members:
        check_segment(log.store, file, places[file.path])
    return places
