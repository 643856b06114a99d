"""One lane of events, read from a store that others can write to.

Rules kept here:

- a record is read and verified once while it stays in memory; what was read is continued, never read again from the
  beginning. A home remembers how far that was (`lane_memory`): what it remembers counts only while the store has that
  very record, signed by the lane's owner. Otherwise it is kept and told, and the lane is read from its beginning. Where
  the home holds the lane this is a doubt, until the record is there again, or has expired by its owner's word;
- commits are given only up to a place whose digest is the one that was asked for: an offset is a number and a digest;
- a segment is read where the origin's own signed record says that it lies.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import IO

from maia.errors import EncodingError, MalformedError, NotFoundError, UnavailableError, UncheckedError
from maia.kernel import LoggedParcel, logged_rows
from maia.log.columnar import MALFORMED
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
from maia.log.lane_memory import RENEWED, LaneMemory, SeenLane, anchor_of, move_of
from maia.log.lane_objects import START, LaneHead, LaneId, LaneRecord, Place
from maia.log.moved_rows import read_at, read_moved_rows
from maia.log.segments import check_segment, newest_parcel
from maia.log.store import Store
from maia.principals import KeyId

EVENTS = "events"
BEGINNING = write_place(START, -1)
"""The place before the first record of a lane, as offsets write it."""
_PAGE = 256
_PAGE_OCTETS = 64 << 20
_KEPT = 1024
_SAVED = 4096
_EXACT = 1024  # a lane that is held is remembered to its last record up to here
_ATTEMPTS = 3
_log = logging.getLogger(__name__)


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

    def __init__(self, store: Store, lane: LaneId, memory: LaneMemory | None = None) -> None:
        """Read a lane from its beginning, or from its floor; or on from where a home remembers to have read it."""
        self.lane = lane
        self.name = lane_name(lane)
        self.alarm: UncheckedError | None = None
        self.ignored = 0
        self.finding: UncheckedError | None = None
        self.doubt: UncheckedError | None = None
        self._store = store
        self._memory = memory
        self._seen, self._unsaved = SeenLane(), 0
        self._compared: object = ()
        self._astray = False
        self._reader = LaneReader(store, lane, limit=MAX_COMMIT)
        self._end, self._stamp = START, -1
        self._floor = START
        self._head: LaneHead | None = None
        self._moves: dict[str, tuple[int, Moved | MovedRows]] = {}
        self._unread: set[int] = set()
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
        self._recall()
        while True:
            found = self._reader.since(self._end, stamp=self._stamp, limit=_PAGE, octets=_PAGE_OCTETS)
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
                self._note(record, self._take(record, self._stamp)[1])
                self._end, self._stamp = record.place, record.stamp
            held = min(RENEWED, 1 + self.count // _EXACT) if self._seen.held else RENEWED
            self._remember(_SAVED if found.more else held)
            if not found.more:
                return

    def hold(self) -> None:
        """Miss the lane when it is gone, from now on: its origin was found to have a right."""
        if self._memory is not None and not self._seen.held and self.count:
            self._seen = replace(self._seen, held=True)
            self._unsaved = max(1, self._unsaved)
            self._remember(1)

    @property
    def heard(self) -> LaneHead | None:
        """The newest head of the lane that was seen."""
        return self._head

    def newest(self) -> Commit | None:
        """Give the newest commit that is known."""
        at = self._seen.newest
        kept = self._kept.get(at.number)
        if kept is not None or at == START:
            return None if kept is None else kept[1]
        record = self._reader.record(at.number)
        if record is None or record.digest != at.digest:
            return None
        return read_commit(record, before=self._seen.before)

    def before(self, stamp: int) -> str | None:
        """Give a place before the first record that is stamped from an instant on; nothing when only the floor is."""
        found = self._seen.before_stamp(stamp)
        return None if found is None else write_place(*found)

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
            record, commit = self._record(place, stamp, upto - place.number)
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
            at = self.place_of(file)
            if at is None:
                raise
            if isinstance(at, MovedRows):
                read_moved_rows(self._store, file, at)
            else:
                check_segment(self._store, file, at, copy=copy)

    def newest_parcel(self, file: LogFile) -> LoggedParcel | None:
        """Do as `check` does, and give the last parcel of the segment; nothing when its origin committed no segment.

        Raises:
            MaiaError: It is damaged or missing.
        """
        try:
            try:
                return newest_parcel(self._store, file)
            except UnavailableError:
                at = self.place_of(file)
                if at is None:
                    raise
                if isinstance(at, MovedRows):
                    found = list(logged_rows(read_moved_rows(self._store, file, at)))
                    return found[-1] if found else None
                return newest_parcel(self._store, file, at)
        except MalformedError as error:
            if error.code != MALFORMED:
                raise
            return None

    def place_of(self, file: LogFile) -> Moved | MovedRows | None:
        """Tell where the origin says that a segment lies now; nothing when it lies where it was.

        Raises:
            UncheckedError: A record that may say so was read before, and cannot be read now: ``LANE_HIDDEN``.
            UnavailableError: The store did not answer.
        """
        unread = (item for item in self._seen.moves if item.place.number in self._unread)
        asked = [item for item in unread if item.place.number > self._floor.number and item.may_move(file.path)]
        for item in asked:
            record = self._reader.record(item.place.number)
            # SECURITY: a record that is hidden for a moment must not look like a segment that was never moved: what
            # keeps the log in order would take the file that it lies in for one that nobody names.
            if record is None or record.digest != item.place.digest:
                raise UncheckedError(
                    f"lane {self.lane}: record {item.place.number}, which was read before, is not there now",
                    code="LANE_HIDDEN",
                )
            self._follow(record)
        return self._moves[file.path][1] if file.path in self._moves else None

    def parcels(self, file: LogFile, *, at: Moved | MovedRows | None = None) -> Iterator[LoggedParcel]:
        """Read the parcels of a segment, one at a time; its origin may move it while we look.

        Args:
            file: The segment.
            at: Where it lay when that was planned, unless where it was committed.
        """
        done, missed, known = 0, None, at
        for attempt in range(_ATTEMPTS):
            at = (self.place_of(file) or known) if attempt else known
            try:
                if attempt and missed is not None and at == known:
                    raise missed
                # It may be moved while it is read: wherever it lies, its parcels are the same, in the same order.
                for parcel in islice(read_at(self._store, file, at), done, None):
                    done += 1
                    yield parcel
            except UnavailableError as error:
                missed = missed or error
                if attempt == _ATTEMPTS - 1:
                    raise
                if attempt:
                    self.refresh()
            else:
                return

    def _record(self, place: Place, stamp: int, wanted: int) -> tuple[LaneRecord, Commit | None]:
        """Give the record after a place, from memory or from the store; there a few more at once, as many are wanted.

        Raises:
            UncheckedError: It cannot be read.
        """
        kept = self._kept.get(place.number + 1)
        if kept is None or kept[0].previous != place.digest:
            found = self._reader.since(place, stamp=stamp, limit=min(wanted, _PAGE), octets=_PAGE_OCTETS)
            if not found.records:
                code = "LANE_GAP" if found.alarm is None else found.alarm.code
                raise UncheckedError(f"lane {self.lane}: record {place.number + 1} cannot be read", code=code)
            for record in reversed(found.records):
                index = record.number - place.number - 1
                kept = self._take(record, found.records[index - 1].stamp if index else stamp)
            assert kept is not None  # noqa: S101 - the first of them, taken last
        return kept

    def _recall(self) -> None:
        """Compare the lane with what this home remembers of it, and go on from there when that is further.

        Raises:
            UnavailableError: The store did not answer.
        """
        if self._memory is None or (not self._astray and self._memory.state(self.lane) == self._compared):
            return
        state = self._memory.state(self.lane)
        try:
            seen = self._memory.read(self.lane, self._store.place)
        except EncodingError as error:
            self._tell(error.message)
            seen = None
        record = None if seen is None else self._reader.record(seen.place.number)
        # SECURITY: a digest says everything before it, and only the owner signs a record that has it.
        there = record is not None and seen is not None and (record.place, record.stamp) == (seen.place, seen.stamp)
        astray = seen is not None and not there and not self._reader.has_expired(seen.place)
        if astray and seen is not None:
            self._tell(f"lane {self.lane} has no such record {seen.place.number} as this home read before")
            self.doubt = self.finding if seen.held else None
        elif self._astray:
            self.finding = self.doubt = None  # it has it again
        if there and seen is not None and seen.place.number > self._end.number:
            self._unread |= {item.place.number for item in seen.moves if item.place.number > self._end.number}
            self._seen, self._end, self._stamp, self._unsaved = seen, seen.place, seen.stamp, 0
            self._floor = max(self._floor, seen.floor, key=lambda place: place.number)
        elif seen is not None and seen.held:
            self._seen = replace(self._seen, held=True)
        self._astray, self._compared = astray, state

    def _tell(self, what: str) -> None:
        found = UncheckedError(f"{what}: it is read from its beginning", code="LANE_MEMORY")
        if self.finding is None or self.finding.message != found.message:
            _log.warning("%s", found)
        self.finding = found

    def _note(self, record: LaneRecord, commit: Commit | None) -> None:
        """Add a record that follows the last one to what will be remembered."""
        seen = self._seen
        if commit is None:
            seen = replace(seen, moves=(*seen.moves, move_of(record, self._follow(record))))
        else:
            seen = replace(seen, newest=record.place, before=self._stamp)
        if anchor := anchor_of(record):
            seen = replace(seen, anchors=seen.anchors + anchor)
        self._seen = replace(seen, place=record.place, stamp=record.stamp)
        self._unsaved += 1

    def _remember(self, enough: int) -> None:
        """Keep how far the lane was read, once there is enough that is new; never in place of what it does not hold."""
        if self._memory is None or self._unsaved < enough:
            return
        with suppress(UnavailableError), self._memory.turn():
            self._recall()  # another process of this home may have come further, or have read what is not there now
            # SECURITY: what was verified once is kept, and told until the lane has it again.
            if self._astray or not self._unsaved:
                return
            self._seen = replace(
                self._seen,
                floor=self._floor,
                moves=tuple(item for item in self._seen.moves if item.place.number > self._floor.number),
            )
            self._memory.write(self.lane, self._store.place, self._seen)
            self._compared, self._unsaved = self._memory.state(self.lane), 0

    def _take(self, record: LaneRecord, before: int) -> tuple[LaneRecord, Commit | None]:
        commit = read_commit(record, before=before)
        if commit is None:
            self._follow(record)
        self._kept[record.number] = kept = (record, commit)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return kept

    def _follow(self, record: LaneRecord) -> list[str]:
        """Note where a record says that segments lie; of several records the latest counts, whichever is read first."""
        found = read_moves(record)
        for path, at in found.items():
            if self._moves.get(path, (-1,))[0] <= record.number:
                self._moves[path] = record.number, at
        self._unread.discard(record.number)
        return list(found)
