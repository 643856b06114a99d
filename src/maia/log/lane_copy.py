"""Copying a lane from a log that somebody else serves into one's own, octet for octet.

Nothing is signed anew: what is copied is the origin's own, and whoever reads the copy verifies it as in the first log.
So the one who serves is not believed either.

Rules kept here:

- a record is copied when the lane's owner signed it and it continues the last one that was copied. Its evidence and its
  segments are compared with what it says and are durable first, and the record comes last: a copy that is cut off
  anywhere has records whose all is there, and goes on behind the last of them. So the copy itself is the cursor;
- a segment that its origin moved lies in the copy under its own name, as it was committed;
- a head is copied when all records that it counts are there, and only over an older one;
- what a served log showed once it goes on showing: a record that it served and does not serve any more, and a head that
  is older than the last one, are ``LANE_ROLLED_BACK``; two records or heads that cannot both be true are
  ``LANE_FORKED``. Nothing behind it is copied, and the signed objects that contradict each other are given back;
- who serves, or signs, a lane without an end holds nobody and fills nothing: a turn takes so many records, segments and
  octets of them, where a segment was moved is looked for so far ahead, and a commit names so many octets;
- a gap, a segment that is missing or damaged, and evidence that is missing stop the lane where it is sure, and it goes
  on when they are served as they should be.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from io import BytesIO
from tempfile import TemporaryFile
from typing import NoReturn

from maia.errors import (
    EncodingError,
    KeyFormatError,
    NotFoundError,
    SignatureError,
    UnavailableError,
    UncheckedError,
)
from maia.log.commits import (
    MAX_COMMIT,
    MAX_SEGMENTS,
    Commit,
    LogFile,
    Moved,
    MovedRows,
    read_commit,
    read_moves,
)
from maia.log.copied_lane import CopiedLane, LaneMark
from maia.log.directory import MAX_EVIDENCE, MAX_TYPES, evidence_name
from maia.log.event_lane import EVENTS
from maia.log.lane import LaneReader, find_lanes
from maia.log.lane_objects import HEAD_OCTETS, START, LaneHead, LaneId, LaneRecord, parse_head
from maia.log.notices import MAX_NOTICE, NoticeKind
from maia.log.segments import check_segment
from maia.log.store import ReadableStore, Store

_PAGE, _PAGE_OCTETS, _TURN_SEGMENTS = 256, 64 << 20, 2 * MAX_SEGMENTS
_IN_MEMORY = 64 << 20
_AHEAD_RECORDS, _AHEAD_OCTETS = 100_000, 256 << 20
MAX_COPIED = 16 << 30
"""Octets of the segments of one commit that is copied, and after how many of them a turn is over."""
_TYPE = "type="
_TYPE_FOLDER = re.compile(r"type=[0-9a-f]{64}")
_TOPIC_FOLDER = re.compile(r"[0-9a-f]{64}")
Leave = Callable[[Commit], frozenset[str]]
"""Names segments of a commit that are not copied."""
_WHAT_STOPS = frozenset(("LOG_FILE_MISSING", "LOG_FILE_DAMAGED"))


def copy_lane(
    source: ReadableStore,
    target: Store,
    lane: LaneId,
    *,
    mark: LaneMark | None = None,
    most: int = _PAGE,
    leave: Leave | None = None,
) -> CopiedLane:
    """Copy what a served log has of a lane and the own one has not, at most so many records.

    Args:
        source: The log that is served, by somebody who is not believed.
        target: The own log.
        lane: Which lane.
        mark: What the same log showed of it before; nothing when it is looked at for the first time.
        most: How many records at most.
        leave: Tells which segments of a commit are left out; it has noted that where it outlasts a kill.

    Raises:
        UnavailableError: One of the two does not answer. What was copied stays, and copying goes on from there.
    """
    copy = _Copy(source, target, lane, mark or LaneMark(), leave)
    alarm, more = None, False
    try:
        more = copy.go_on(most)
    except UncheckedError as error:
        alarm = error
    return CopiedLane(
        lane=lane, mark=copy.mark, records=copy.records, events=copy.events, octets=copy.octets, expired=copy.expired,
        ignored=copy.ignored, passed=copy.passed, segments=copy.segments, left=copy.left, more=more, alarm=alarm,
        contrary=copy.contrary if alarm is not None else (),
    )  # fmt: skip


def fill_record(
    source: ReadableStore, target: Store, lane: LaneId, number: int, digest: str, names: Collection[str]
) -> tuple[int, list[str]]:
    """Copy segments of a record that is here already and was copied without them.

    Returns:
        How many octets came, and of each segment that is not here now the code that says why: it is not served as it
        was committed, or the record itself, as it was signed then, is not here (``LANE_GAP``).

    Raises:
        UnavailableError: One of the two logs does not answer.
    """
    copy = _Copy(source, target, lane, LaneMark())
    return copy.fill(number, digest, names)


def all_lanes(store: ReadableStore, types: Collection[str] | None = None) -> Iterator[LaneId]:
    """List the lanes of a log by the names of their folders, which prove nothing: events, then notices.

    Args:
        store: The log.
        types: Ids in hex, of the types whose events count; all when there are none.
    """
    if types is None:
        folders = store.list_folders("", _TYPE, limit=MAX_TYPES, shape=_TYPE_FOLDER)
        types = [name.removeprefix(_TYPE) for name in folders]
    for topic in types:
        yield from find_lanes(store, EVENTS, topic)
    for kind in NoticeKind:
        for topic in store.list_folders(f"_lanes/{kind.value}", "", limit=MAX_TYPES, shape=_TOPIC_FOLDER):
            yield from find_lanes(store, kind.value, topic)


class _Copy:
    """One lane on its way."""

    def __init__(
        self, source: ReadableStore, target: Store, lane: LaneId, mark: LaneMark, leave: Leave | None = None
    ) -> None:
        limit = MAX_COMMIT if lane.kind == EVENTS else MAX_NOTICE
        self._source, self._target, self._lane = source, target, lane
        self._there = LaneReader(source, lane, limit=limit)
        self._here = LaneReader(target, lane, limit=limit)
        self._place, self._stamp = START, -1
        self._moves: dict[str, Moved | MovedRows] | None = None
        self._page: tuple[LaneRecord, ...] = ()
        self.mark = mark
        self._leave = leave
        self.records = self.events = self.octets = self.expired = self.ignored = self.passed = self.left = 0
        self.segments = 0
        self.contrary: tuple[bytes, ...] = ()

    def go_on(self, most: int) -> bool:
        """Copy what comes next; tell whether there is more.

        Raises:
            UncheckedError: Something that is served cannot be, or cannot be yet.
        """
        found = self._served_head()
        self._compare_with_mark(found)
        self._find_end()
        head = None if found is None else found[0]
        if head is not None and self._place.number < head.floor.number:
            # The floor is the origin's own signed word: what lies below it is gone for everybody.
            self.expired = head.floor.number - self._place.number
            self._place, self._stamp = head.floor, -1
        page = self._there.since(self._place, stamp=self._stamp, limit=most, octets=_PAGE_OCTETS)
        self.ignored, self._page = page.ignored, page.records
        for record in page.records:
            self._take(record)
            if self.octets > MAX_COPIED or self.segments > _TURN_SEGMENTS:
                return True
        if page.alarm is not None and page.alarm.code == "LANE_EXPIRED":
            return True  # its origin let it go just now
        if page.alarm is not None:
            next_one = self._there.record(self._place.number + 1)
            self._stop(page.alarm.code, page.alarm.message, next_one, self._own_record(self._place.number))
        if found is not None:
            self._take_head(*found)
        return page.more

    def fill(self, number: int, digest: str, names: Collection[str]) -> tuple[int, list[str]]:
        """Copy segments of a record that is here; tell of those that cannot be copied why."""
        record = self._here.record(number)
        commit = None if record is None else read_commit(record, before=-1)
        # SECURITY: whoever hides the record would have the note forgotten, and nothing of it compared.
        if record is None or commit is None or commit.digest != digest:
            return 0, ["LANE_GAP"] * len(names)
        self._page, self._place = (record,), record.place
        octets, codes = 0, list[str]()
        for file in commit.files:
            if file.path in names:
                try:
                    octets += self._take_segment(file)
                except UncheckedError as error:
                    codes.append(error.code)
        return octets, codes

    # -- what was served before

    def _served_head(self) -> tuple[LaneHead, bytes] | None:
        try:
            raw = self._source.get(self._lane.head_name, limit=HEAD_OCTETS)
            return parse_head(self._lane, raw), raw
        except (NotFoundError, EncodingError, SignatureError, KeyFormatError):
            return None

    def _compare_with_mark(self, found: tuple[LaneHead, bytes] | None) -> None:
        """Refuse a log that takes back what it showed.

        SECURITY: who serves an old log withholds what came since; who serves another one shows two truths.
        """
        mark, floor = self.mark, -1 if found is None else found[0].floor.number
        if mark.head:
            before, raw = parse_head(self._lane, mark.head), b"" if found is None else found[1]
            if found is None or found[0].asserted < before.asserted or found[0].place.number < before.place.number:
                self._stop("LANE_ROLLED_BACK", "its head is older than the one that was served before", raw, mark.head)
            if found[0].place.number == before.place.number and found[0].place.digest != before.place.digest:
                self._stop("LANE_FORKED", "two heads name two records of one number", raw, mark.head)
        if mark.place.number > floor:
            served, own = self._there.record(mark.place.number), self._own_record(mark.place.number)
            if served is None:
                text = f"record {mark.place.number} was served before, and is not any more"
                self._stop("LANE_ROLLED_BACK", text, own, mark.head)
            if served.digest != mark.place.digest:
                self._stop("LANE_FORKED", f"there are two records {mark.place.number}", served, own)

    def _find_end(self) -> None:
        """Find after which record the own log ends: it is the cursor, whatever a file beside it says."""
        head = self._here.head()
        hints = [self.mark.place] if head is None else [self.mark.place, head.place]
        for hint in sorted(hints, reverse=True):
            record = None if hint.number < 0 else self._here.record(hint.number)
            if record is not None and record.digest == hint.digest:
                self._place, self._stamp = record.place, record.stamp
                break
        else:
            self._place = START if head is None else head.floor
        while True:
            page = self._here.since(self._place, stamp=self._stamp, limit=_PAGE, octets=_PAGE_OCTETS)
            if page.records:
                self._place, self._stamp = page.place, page.records[-1].stamp
            if not page.more:
                return

    # -- what comes next

    def _take(self, record: LaneRecord) -> None:
        """Copy a record and, before it, all that it names."""
        commit = read_commit(record, before=self._stamp) if self._lane.kind == EVENTS else None
        octets = len(record.raw)
        if commit is not None and not commit.wrong:
            if sum(file.size for file in commit.files) > MAX_COPIED:
                self._stop("LOG_FILE_DAMAGED", f"record {commit.sequence} names more octets than are copied")
            self.segments += len(commit.files)
            octets += self._take_evidence(commit)
            without = frozenset[str]() if self._leave is None else self._leave(commit)
            octets += sum(self._take_segment(file) for file in commit.files if file.path not in without)
            left = sum(file.events for file in commit.files if file.path in without)
            self.events, self.left = self.events + commit.events - left, self.left + left
        # INVARIANT: a record is the last of what it names, so one that is there is whole.
        self._put_record(record)
        self._place, self._stamp = record.place, record.stamp
        self.mark = LaneMark(place=record.place, stamp=record.stamp, head=self.mark.head)
        self.records, self.octets = self.records + 1, self.octets + octets

    def _put_record(self, record: LaneRecord) -> None:
        name = self._lane.record_name(record.number)
        if self._target.put_new(name, record.raw):
            return
        own = self._own_record(record.number)
        if own is None:
            self._target.put(name, record.raw)  # what others put there gives way
        elif own.digest != record.digest:
            self._stop("LANE_FORKED", f"there are two records {record.number}", record, own)

    def _take_evidence(self, commit: Commit) -> int:
        """Copy the certificates that a commit names; they are named by their digest."""
        digest = bytes.fromhex(commit.evidence)
        name = evidence_name(digest)
        if not any(digest) or _is_evidence(self._target, name, digest) is not None:
            return 0
        data = _is_evidence(self._source, name, digest)
        if data is None:
            if commit.files:
                self._stop("EVIDENCE_MISSING", f"the evidence of record {commit.sequence} is not served")
            return 0
        if not self._target.put_new(name, data):
            self._target.put(name, data)  # something else had its name
        return len(data)

    def _take_segment(self, file: LogFile) -> int:
        """Copy a segment that is what its commit says, wherever its origin moved it."""
        with suppress(UnavailableError, EncodingError):
            check_segment(self._target, file)
            return 0  # it is there already
        try:
            with BytesIO() if file.size <= _IN_MEMORY else TemporaryFile() as copy:
                # SECURITY: nothing counts of a segment before its length and its digest were compared.
                try:
                    check_segment(self._source, file, copy=copy)
                except (UnavailableError, EncodingError) as error:
                    if error.code not in _WHAT_STOPS or (at := self._moved(file)) is None:
                        raise
                    copy.seek(0)
                    copy.truncate()
                    check_segment(self._source, file, at, copy=copy)
                copy.seek(0)
                if isinstance(copy, BytesIO):
                    if not self._target.put_new(file.path, copy.getvalue()):
                        self._target.put(file.path, copy.getvalue())
                    return file.size
                self._target.delete(file.path)  # what was cut off, or another's
                with self._target.create(file.path) as new:
                    shutil.copyfileobj(copy, new.file)
                    new.finish()
                return file.size
        except (UnavailableError, EncodingError) as error:
            if error.code not in _WHAT_STOPS:
                raise
            raise UncheckedError(f"lane {self._lane}: {error.message}", code=error.code) from error

    def _moved(self, file: LogFile) -> Moved | None:
        """Tell where the origin says that a segment lies now, by what comes later in its lane."""
        if self._moves is None:
            commits = [read_commit(record, before=self._stamp) for record in self._page]
            wanted = {item.path for commit in commits if commit is not None for item in commit.files}
            # SECURITY: of all that comes later only what this turn needs is kept, or a lane of moves would fill memory.
            self._moves = {}
            for record in self._ahead():
                self._moves |= {path: at for path, at in read_moves(record).items() if path in wanted}
        at = self._moves.get(file.path)
        return at if isinstance(at, Moved) else None

    def _ahead(self) -> Iterator[LaneRecord]:
        """Look at what comes later, so far: a lane may go on for as long as somebody asks."""
        place, stamp, left = self._place, self._stamp, _AHEAD_OCTETS
        while left > 0 and self.passed < _AHEAD_RECORDS:
            page = self._there.since(place, stamp=stamp, limit=_PAGE, octets=min(left, _PAGE_OCTETS))
            self.passed += len(page.records)
            yield from page.records
            if not page.more:
                return
            place, stamp = page.place, page.records[-1].stamp
            left -= sum(len(record.raw) for record in page.records)

    def _take_head(self, head: LaneHead, raw: bytes) -> None:
        """Copy a head once all that it counts is here, over an older one."""
        if head.place.number <= self._place.number:
            own = self._here.head()
            if own is None or own.asserted < head.asserted:
                self._target.put(self._lane.head_name, raw)
        self.mark = LaneMark(place=self.mark.place, stamp=self.mark.stamp, head=raw)

    # -- what stops it

    def _own_record(self, number: int) -> LaneRecord | None:
        return None if number < 0 else self._here.record(number)

    def _stop(self, code: str, why: str, *contrary: LaneRecord | bytes | None) -> NoReturn:
        """Stop here, keeping the signed objects that contradict each other."""
        found = (item.raw if isinstance(item, LaneRecord) else item for item in contrary if item)
        self.contrary = tuple(found) if code in ("LANE_FORKED", "LANE_ROLLED_BACK") else ()
        prefix = f"lane {self._lane}: "
        raise UncheckedError(why if why.startswith(prefix) else f"{prefix}{why}", code=code)


def _is_evidence(store: ReadableStore, name: str, digest: bytes) -> bytes | None:
    """Give the octets of a digest, when they lie under its name."""
    try:
        data = store.get(name, limit=MAX_EVIDENCE)
    except (NotFoundError, EncodingError):
        return None
    return data if hashlib.sha256(data).digest() == digest else None
