"""Reading lanes: numbered, chained, signed records of one owner about one topic (`lane_objects`).

Whoever can write to the store can put, exchange and remove anything; the owner's key is all that is believed.

Rules kept here:

- a record counts only when the lane's owner signed exactly this content as a lane record, it names this lane and the
  number it lies under, and it continues the digest before. Everything else is ignored and counted;
- numbers have no gaps and stamps grow strictly. A record whose predecessor is not there is an alarm (``LANE_GAP``), one
  that continues something else, or a head about another record of the same number, is ``LANE_FORKED``, one whose stamp
  does not grow ``LANE_STAMP``. Nothing behind an alarm is read: the place stays where it is sure;
- what lies under a number is looked up by its name, never found by listing, so names such as 999999999999.record cost
  nothing and mean nothing;
- what lies below the floor that the owner signed is gone (``LANE_EXPIRED``); a reader goes on from the floor only by
  its own decision.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from maia.errors import EncodingError, KeyFormatError, NotFoundError, SignatureError, UncheckedError
from maia.log.lane_objects import (
    HEAD_OCTETS,
    MAX_RECORD,
    START,
    LaneHead,
    LaneId,
    LaneRecord,
    Place,
    parse_head,
    parse_record,
    topic_folder,
)
from maia.log.store import ReadableStore
from maia.principals import KeyId

MAX_LANES = 1024
"""How many lanes of a topic a reader looks at."""
_LOOK_AHEAD = 8
_ORIGIN = "origin="
_LANE_FOLDER = re.compile(r"origin=[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRead:
    """What reading on brought.

    Attributes:
        records: In order, each continuing the one before.
        place: After the last of them; where to go on from.
        head: The head as it lies there now, when it is the owner's and about this lane; it may be an old one.
        ignored: How many objects were there that the owner did not sign.
        alarm: Why nothing can be read behind ``place``, though there is more: `UncheckedError` with ``LANE_GAP``,
            ``LANE_FORKED``, ``LANE_STAMP`` or ``LANE_EXPIRED``.
        more: Whether reading ended because it was enough.
    """

    records: tuple[LaneRecord, ...]
    place: Place
    head: LaneHead | None
    ignored: int = 0
    alarm: UncheckedError | None = None
    more: bool = False


def find_lanes(
    store: ReadableStore, kind: str, topic: str, *, after: KeyId | None = None, limit: int = MAX_LANES
) -> tuple[LaneId, ...]:
    """List the lanes of a topic by the names of their folders, which prove nothing; at most so many, after an owner."""
    start = _ORIGIN if after is None else f"{_ORIGIN}{after.hex()}"
    # SECURITY: what is no lane by its name counts for nothing here, or empty folders would take the places of lanes.
    names = store.list_folders(topic_folder(kind, topic), start, limit=limit, shape=_LANE_FOLDER)
    owners = (KeyId(bytes.fromhex(name.removeprefix(_ORIGIN))) for name in names)
    return tuple(LaneId(kind=kind, owner=owner, topic=topic) for owner in owners)


class LaneReader:
    """Reads one lane of a store that others can write to."""

    def __init__(self, store: ReadableStore, lane: LaneId, *, limit: int = MAX_RECORD) -> None:
        """Read records of at most ``limit`` octets each."""
        self.lane = lane
        self._store = store
        self._limit = limit

    def head(self) -> LaneHead | None:
        """Return the head as it lies there now, when it is the owner's; it may be an old one."""
        try:
            return parse_head(self.lane, self._store.get(self.lane.head_name, limit=HEAD_OCTETS))
        except (NotFoundError, EncodingError, SignatureError, KeyFormatError):
            return None

    def has_expired(self, place: Place) -> bool:
        """Tell whether the owner says that a record is gone for good."""
        head = self.head()
        return head is not None and head.floor.number >= place.number

    def record(self, number: int) -> LaneRecord | None:
        """Return what lies under a number when the owner signed it, whatever it continues.

        Raises:
            UnavailableError: The store did not answer.
        """
        return self._look(number)[0]

    def since(self, place: Place = START, *, stamp: int = -1, limit: int = 1000, octets: int | None = None) -> LaneRead:
        """Read on from a place, at most so many records.

        Args:
            place: Where reading stopped; `START` for the beginning.
            stamp: The stamp of the last record that was read, above which the next one lies.
            limit: How many records at most.
            octets: After how many octets of them it is enough as well.

        Raises:
            UnavailableError: The store did not answer: nothing is known, and the place stays.
        """
        records: list[LaneRecord] = []
        ignored, alarm, size = 0, None, 0
        while not (more := len(records) >= limit or (octets is not None and size > octets)):
            record, junk = self._look(place.number + 1)
            ignored += junk
            if record is None:
                break
            if record.previous != place.digest:
                alarm = _alarm(self.lane, "LANE_FORKED", f"record {record.number} continues another one")
                break
            # INVARIANT: stamps grow along a lane, so nothing is dated back behind what was committed.
            if record.stamp <= stamp:
                alarm = _alarm(self.lane, "LANE_STAMP", f"record {record.number} is stamped behind the one before")
                break
            records.append(record)
            place, stamp, size = record.place, record.stamp, size + len(record.raw)
        head = self.head()
        if alarm is None and not more:
            alarm = self._end(place, head)
        return LaneRead(records=tuple(records), place=place, head=head, ignored=ignored, alarm=alarm, more=more)

    def reaches_beyond(self, place: Place, *, further: int = _LOOK_AHEAD) -> bool:
        """Tell whether the owner signed more than what ends at a place, or something else under its number.

        Args:
            place: The end, as the owner's own record says.
            further: How many numbers behind the next one are looked up, so that one removed object hides nothing.

        Raises:
            UnavailableError: The store did not answer.
        """
        if any(self.record(place.number + 1 + step) is not None for step in range(1 + further)):
            return True
        head = self.head()
        if head is not None and head.place.number >= place.number and head.place != place:
            return True
        last = None if place.number < 0 else self.record(place.number)
        return last is not None and last.digest != place.digest

    def _end(self, place: Place, head: LaneHead | None) -> UncheckedError | None:
        """Tell whether the lane really ends here, by its head and by a look at the next few numbers."""
        if head is not None:
            if head.place.number == place.number and head.place.digest != place.digest:
                return _alarm(self.lane, "LANE_FORKED", f"its owner signed another record {place.number}")
            if place.number < head.floor.number:
                return _alarm(self.lane, "LANE_EXPIRED", f"it begins after record {head.floor.number} now")
            if place.number < head.place.number and self._look(place.number + 1)[0] is None:
                return _alarm(self.lane, "LANE_GAP", f"record {place.number + 1} is missing")
        for number in range(place.number + 2, place.number + 2 + _LOOK_AHEAD):
            if self._look(number)[0] is not None and self._look(place.number + 1)[0] is None:
                return _alarm(self.lane, "LANE_GAP", f"record {place.number + 1} is missing")
        return None

    def _look(self, number: int) -> tuple[LaneRecord | None, int]:
        """Look what lies under a number: the owner's record, or how many others' objects."""
        try:
            raw = self._store.get(self.lane.record_name(number), limit=self._limit)
            return parse_record(self.lane, number, raw, limit=self._limit), 0
        except NotFoundError:
            return None, 0
        except (EncodingError, SignatureError, KeyFormatError):
            return None, 1


def _alarm(lane: LaneId, code: str, what: str) -> UncheckedError:
    return UncheckedError(f"lane {lane}: {what}", code=code)
