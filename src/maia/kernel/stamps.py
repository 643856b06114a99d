"""Stamps: milliseconds since 1970 UTC, strictly increasing per broker, whatever its clock does.

A stamp belongs to a parcel; the events of a parcel follow each other by their position. The next stamp is now, or one
more than the last, whichever is later, so two parcels in one millisecond get ``t`` and ``t+1`` and a clock set back
changes nothing. The highest stamp given out must be kept where a restart finds it *before* the parcel is sealed.

A clock that was far ahead and came back would leave stamps that no reader takes, for as long as it was ahead. So the
next stamp leads the clock by `MAX_LEAD` at most; beyond that nothing is stamped, and the error says what to do.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from maia.errors import EncodingError, UnavailableError, UsageError

MAX_LEAD = 30 * 1000
"""By how many milliseconds a stamp may lie ahead of its broker's clock: many parcels in one millisecond, no more."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS = 19
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def milliseconds(at: datetime) -> int:
    """Turn an instant into milliseconds since 1970 UTC.

    >>> milliseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000
    """
    if at.tzinfo is None:
        raise UsageError("instants need a time zone")
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def instant_at(stamp: int) -> datetime:
    """Turn milliseconds since 1970 UTC into an instant; what lies behind the last that can be written is that one.

    Stamps of others are shown by it: whoever may sign one can choose it.

    >>> instant_at(1000).isoformat(), instant_at(1 << 53).year
    ('1970-01-01T00:00:01+00:00', 9999)
    """
    return _EPOCH + timedelta(milliseconds=min(stamp, _LATEST))


@dataclass(frozen=True, slots=True)
class StampRange:
    """Stamps that were reserved: ``first`` up to but not including ``end``."""

    first: int
    end: int


def reserve_stamps(high_water: int, *, now: int, count: int, lead: int = MAX_LEAD) -> StampRange:
    """Reserve stamps above everything given out before.

    Args:
        high_water: The highest stamp ever reserved by this broker; -1 when there is none.
        now: The clock, in milliseconds.
        count: How many parcels are to be stamped.
        lead: By how much the first stamp may lie ahead of the clock.

    Returns:
        The range; its last stamp is the new high-water mark.

    Raises:
        UnavailableError: The clock was so far ahead when the last stamp was given that readers would refuse the next
            one: ``STAMPS_AHEAD``. Nothing is reserved.

    >>> reserve_stamps(1000, now=1000, count=2)
    StampRange(first=1001, end=1003)
    """
    if count < 1:
        raise UsageError("at least one stamp is reserved")
    first = max(now, high_water + 1)
    if first - now > lead:
        back = instant_at(high_water).isoformat(sep=" ", timespec="seconds")
        raise UnavailableError(
            f"the last stamp was given at {back}, far ahead of the clock: set the clock right if it is slow, else wait "
            "until then or give the broker a new key, whose lanes begin anew",
            code="STAMPS_AHEAD",
        )
    return StampRange(first, first + count)


def write_mark(stamp: int) -> bytes:
    """Write the highest stamp that was reserved, with a checksum, for the file that a restart finds.

    >>> read_mark(write_mark(1780304400123))
    1780304400123
    """
    digits = b"%d" % stamp
    return digits + b" %08x\n" % zlib.crc32(digits)


def read_mark(data: bytes) -> int:
    """Read what `write_mark` wrote.

    Raises:
        EncodingError: It is damaged: ``STAMPS_DAMAGED``. A lower mark could give a stamp twice, so none is guessed.
    """
    digits = data.partition(b" ")[0]
    if not digits.isdigit() or len(digits) > _DIGITS or data != write_mark(int(digits)):
        raise EncodingError(
            "the mark of the highest stamp is damaged: put it back, or give the broker a new key", code="STAMPS_DAMAGED"
        )
    return int(digits)
