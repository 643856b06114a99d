"""What copying a lane brought, and what the log that it came from had shown of it."""

from __future__ import annotations

from dataclasses import dataclass

from maia.errors import UncheckedError
from maia.log.commits import read_place, write_place
from maia.log.lane_objects import START, LaneId, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneMark:
    """What one served log showed of a lane so far: after which record, and its newest head as it was signed."""

    place: Place = START
    stamp: int = -1
    head: bytes = b""

    def to_bytes(self) -> bytes:
        """Write it for a file."""
        return write_place(self.place, self.stamp).encode() + b"\n" + self.head

    @classmethod
    def parse(cls, data: bytes) -> LaneMark:
        """Read what `to_bytes` wrote.

        Raises:
            EncodingError: It is no mark: ``PLACE_SHAPE``.
        """
        first, _, head = data.partition(b"\n")
        place, stamp = read_place(first.decode("ascii", "replace"))
        return cls(place=place, stamp=stamp, head=head)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedLane:
    """What copying brought.

    Attributes:
        lane: Which lane.
        mark: What the served log showed of it by now.
        records: How many records came.
        events: How many events they committed.
        octets: Of records, evidence and segments.
        expired: How many records the origin let go before they were copied.
        ignored: How many objects lay in the place of records that the origin did not sign.
        passed: How many records were only looked at, for where segments were moved.
        segments: How many segments the records named.
        left: How many events were left out with their segments, since nobody here wants them.
        more: Whether there is more to copy at once.
        alarm: Why nothing more can be copied: ``LANE_GAP``, ``LANE_FORKED``, ``LANE_ROLLED_BACK``, ``LANE_STAMP``,
            ``EVIDENCE_MISSING``, ``LOG_FILE_MISSING`` or ``LOG_FILE_DAMAGED``.
        contrary: The signed objects that contradict each other, for `LANE_FORKED` and `LANE_ROLLED_BACK`.
    """

    lane: LaneId
    mark: LaneMark
    records: int = 0
    events: int = 0
    octets: int = 0
    expired: int = 0
    ignored: int = 0
    passed: int = 0
    segments: int = 0
    left: int = 0
    more: bool = False
    alarm: UncheckedError | None = None
    contrary: tuple[bytes, ...] = ()
