"""One lane of events, read from a store that others can write to.

Rules kept here:

- a record is read and verified once while it stays in memory; what was read is continued, never read again from the
  beginning;
- commits are given only up to a place whose digest is the one that was asked for: an offset is a number and a digest;
- a segment is read where the origin's own signed record says that it lies.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import IO

import pyarrow as pa

from maia.errors import MalformedError, NotFoundError, UnavailableError, UncheckedError
from maia.log.commits import (
    MAX_COMMIT,
    Commit,
    LogFile,
    Moved,
    MovedRows,
    read_commit,
    read_moves,
    read_place,
    write_place,
)
from maia.log.lane import LaneReader
from maia.log.lane_objects import START, LaneHead, LaneId, LaneRecord, Place
from maia.log.moved_rows import read_moved_rows
from maia.log.segments import MALFORMED, check_segment, newest_parcel, read_segment
from maia.log.store import Store
from maia.principals import KeyId

EVENTS = "events"
BEGINNING = write_place(START, -1)
"""The place before the first record of a lane, as offsets write it."""
_PAGE = 256
_KEPT = 1024


def lane_name(lane: LaneId) -> str:
    """Name a lane of events in offsets: the type's id and the origin's, in hex."""
    return f"{lane.topic}/{lane.owner.hex()}"


def lane_of(name: str) -> LaneId:
    """Read what `lane_name` wrote.

    Raises:
        UsageError: It is no lane: ``LANE_ID``.
    """
    topic, _, owner = name.partition("/")
    try:
        key = bytes.fromhex(owner)
    except ValueError:
        key = b""
    return LaneId(kind=EVENTS, owner=KeyId(key), topic=topic)


class EventLane:
    """Reads one lane of events and remembers how far it was read."""

    def __init__(self, store: Store, lane: LaneId) -> None:
        """Read a lane from its beginning, or from its floor."""
        self.lane = lane
        self.name = lane_name(lane)
        self.alarm: UncheckedError | None = None
        self.ignored = 0
        self._store = store
        self._reader = LaneReader(store, lane, limit=MAX_COMMIT)
        self._end, self._stamp = START, -1
        self._floor = START
        self._head: LaneHead | None = None
        self._moves: dict[str, Moved | MovedRows] = {}
        self._kept: OrderedDict[int, tuple[LaneRecord, Commit | None]] = OrderedDict()

    @property
    def end(self) -> str:
        """The place up to which the lane is known."""
        return write_place(self._end, self._stamp)

    @property
    def count(self) -> int:
        """How many records are known."""
        return self._end.number + 1

    @property
    def floor(self) -> str:
        """The place from which on the origin keeps its records."""
        return write_place(self._floor, -1)

    def refresh(self) -> None:
        """Read what was committed since the last look.

        Raises:
            UnavailableError: The store did not answer.
        """
        while True:
            found = self._reader.since(self._end, stamp=self._stamp, limit=_PAGE)
            self.alarm = found.alarm
            if found.head is not None and (self._head is None or found.head.asserted > self._head.asserted):
                self._head = found.head
            if found.head is not None and found.head.floor.number > self._floor.number:
                self._floor = found.head.floor
            if found.alarm is not None and found.alarm.code == "LANE_EXPIRED" and found.head is not None:
                # Nothing was asked for yet below the floor; whoever does ask is told in `commits`.
                self._end, self._stamp, self.alarm = found.head.floor, -1, None
                continue
            self.ignored = found.ignored
            for record in found.records:
                self._take(record, self._stamp)
                self._end, self._stamp = record.place, record.stamp
            if len(found.records) < _PAGE:
                return

    @property
    def heard(self) -> LaneHead | None:
        """The newest head of the lane that was seen."""
        return self._head

    def newest(self) -> Commit | None:
        """Give the newest commit that is in memory."""
        found = (commit for _, commit in reversed(self._kept.values()) if commit is not None)
        return next(found, None)

    def commits(self, after: str | None = None, upto: str | None = None) -> list[Commit]:
        """Read the commits after a place, up to a place.

        Args:
            after: Where reading stopped; the beginning, or the floor, when there is none.
            upto: Where to stop; what is known by now when there is none.

        Raises:
            NotFoundError: What comes next has expired: ``LOG_EXPIRED``.
            UncheckedError: The lane is not the one that was read before: ``LANE_FORKED``, ``LANE_GAP``.
        """
        last = read_place(self.end if upto is None else upto)[0]
        found: list[Commit] = []
        place = None
        for at, commit in self.walk(after, last.number):
            place = read_place(at)[0]
            if commit is not None:
                found.append(commit)
        if place is not None and place != last:
            raise UncheckedError(f"lane {self.lane}: it has another record {last.number}", code="LANE_FORKED")
        return found

    def walk(self, after: str | None, upto: int) -> Iterator[tuple[str, Commit | None]]:
        """Read on from a place up to a number: the place after each record, and the commit in it unless it is upkeep.

        Raises:
            NotFoundError: What comes next has expired: ``LOG_EXPIRED``.
            UncheckedError: The lane is not the one that was read before: ``LANE_FORKED``, ``LANE_GAP``.
        """
        place, stamp = read_place(self.floor if after is None else after)
        if place.number < self._floor.number:
            raise NotFoundError(
                f"lane {self.lane} has expired up to commit {self._floor.number}, and {place.number + 1} is asked for",
                code="LOG_EXPIRED",
            )
        while place.number < upto:
            record, commit = self._record(place, stamp)
            place, stamp = record.place, record.stamp
            yield write_place(place, stamp), commit

    def check(self, file: LogFile, *, copy: IO[bytes] | None = None) -> None:
        """See that a segment is there and is what was committed.

        Args:
            file: The segment.
            copy: Where to put its octets on the way, unless they are gone; they count for nothing when this raises.

        Raises:
            MaiaError: It is damaged or missing.
        """
        try:
            check_segment(self._store, file, copy=copy)
        except UnavailableError:
            at = self._moves.get(file.path)
            if at is None:
                raise
            if isinstance(at, MovedRows):
                read_moved_rows(self._store, file, at)
            else:
                check_segment(self._store, file, at, copy=copy)

    def newest_parcel(self, file: LogFile) -> pa.Buffer | None:
        """Do as `check` does, and give the last parcel of the segment; nothing when its origin committed no segment.

        Raises:
            MaiaError: It is damaged or missing.
        """
        try:
            try:
                return newest_parcel(self._store, file)
            except UnavailableError:
                at = self._moves.get(file.path)
                if at is None:
                    raise
                if isinstance(at, MovedRows):
                    found = read_moved_rows(self._store, file, at)
                    return found[-1].column("parcel")[-1].as_buffer() if found else None
                return newest_parcel(self._store, file, at)
        except MalformedError as error:
            if error.code != MALFORMED:
                raise
            return None

    def place_of(self, file: LogFile) -> Moved | MovedRows | None:
        """Tell where the origin says that a segment lies now; nothing when it lies where it was."""
        return self._moves.get(file.path)

    def parcels(self, file: LogFile) -> Iterator[pa.RecordBatch]:
        """Read the parcels of a segment, one at a time; its origin may move it while we look."""
        try:
            yield from read_segment(self._store, file)
        except UnavailableError:
            pass
        else:
            return
        for last in (False, True):
            try:
                yield from self._moved(file)
            except UnavailableError:
                if last:
                    raise
                self.refresh()
            else:
                return

    def _moved(self, file: LogFile) -> Iterable[pa.RecordBatch]:
        at = self._moves.get(file.path)
        if at is None:
            raise UnavailableError(f"the log file `{file.path}` is missing", code="LOG_FILE_MISSING")
        if isinstance(at, MovedRows):
            return read_moved_rows(self._store, file, at)
        return read_segment(self._store, file, at)

    def _record(self, place: Place, stamp: int) -> tuple[LaneRecord, Commit | None]:
        """Give the record after a place, from memory or from the store."""
        kept = self._kept.get(place.number + 1)
        if kept is None or kept[0].previous != place.digest:
            found = self._reader.since(place, stamp=stamp, limit=1)
            if not found.records:
                code = "LANE_GAP" if found.alarm is None else found.alarm.code
                raise UncheckedError(f"lane {self.lane}: record {place.number + 1} cannot be read", code=code)
            kept = self._take(found.records[0], stamp)
        return kept

    def _take(self, record: LaneRecord, before: int) -> tuple[LaneRecord, Commit | None]:
        commit = read_commit(record, before=before)
        if commit is None:
            self._moves.update(read_moves(record))
        self._kept[record.number] = kept = (record, commit)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return kept
