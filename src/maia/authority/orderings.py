"""The five range orderings of RFC 2693, and one more, each exact.

A key function turns octets into a value that Python compares exactly, or into ``None`` when the octets are no value of
that ordering; such octets lie in no range.

- ``alpha``: octets, compared one by one as unsigned numbers; never a locale.
- ``numeric``: an integer of any length, ``-12``, ``+3``; ``-1.3`` is none (as in the public reduction cases).
- ``decimal``: Maia's own, for attributes that are no integers: a decimal number of any length, ``3.50``; never a float.
- ``binary``: the octets as one unsigned big-endian integer.
- ``time``: a time of day, ``09``, ``09:30``, ``09:30:15`` with an optional fraction, in microseconds.
- ``date``: an instant, ``2026``, ``2026-06``, … ``2026-06-01_09:30:15`` with an optional fraction; what is left out is
  the earliest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

OrderKey: TypeAlias = "bytes | Decimal | int"

_NUMERIC = re.compile(rb"[+-]?[0-9]{1,4096}")
_DECIMAL = re.compile(rb"[+-]?[0-9]{1,4096}(\.[0-9]{1,4096})?")
_TIME = re.compile(rb"([01][0-9]|2[0-3])(?::([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,6}))?)?)?")
_DATE = re.compile(
    rb"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})"
    rb"(?:[_T]([0-9]{2})(?::([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?)?Z?)?)?)?"
)
_EPOCH = datetime(1, 1, 1, tzinfo=UTC)


def _alpha(octets: bytes) -> bytes:
    return octets


def _numeric(octets: bytes) -> Decimal | None:
    # Decimal reads thousands of digits in linear time, which int does not.
    return Decimal(octets.decode("ascii")) if _NUMERIC.fullmatch(octets) else None


def _decimal(octets: bytes) -> Decimal | None:
    return Decimal(octets.decode("ascii")) if _DECIMAL.fullmatch(octets) else None


def _binary(octets: bytes) -> int:
    return int.from_bytes(octets, "big")


def _time(octets: bytes) -> int | None:
    match = _TIME.fullmatch(octets)
    if match is None:
        return None
    hours, minutes, seconds, fraction = (part or b"0" for part in match.groups())
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int(fraction.ljust(6, b"0"))


def _date(octets: bytes) -> int | None:
    match = _DATE.fullmatch(octets)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        instant = datetime(
            int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0),
            int((fraction or b"0").ljust(6, b"0")), tzinfo=UTC,
        )  # fmt: skip
    except ValueError:
        return None
    since = instant - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


class Ordering(Enum):
    """How the limits of a range compare."""

    ALPHA = "alpha"
    NUMERIC = "numeric"
    DECIMAL = "decimal"
    BINARY = "binary"
    TIME = "time"
    DATE = "date"

    def key(self, octets: bytes) -> OrderKey | None:
        """Return the comparable value of these octets, or ``None`` when they have none in this ordering.

        >>> Ordering.NUMERIC.key(b"007") == Ordering.NUMERIC.key(b"7")
        True
        >>> Ordering.TIME.key(b"12:00:000") is None
        True
        """
        return _KEYS[self](octets)

    @property
    def discrete(self) -> bool:
        """Tell whether values are whole numbers, so that an open gap of one holds nothing."""
        return self not in (Ordering.ALPHA, Ordering.DECIMAL)


_KEYS: dict[Ordering, Callable[[bytes], OrderKey | None]] = {
    Ordering.ALPHA: _alpha,
    Ordering.NUMERIC: _numeric,
    Ordering.DECIMAL: _decimal,
    Ordering.BINARY: _binary,
    Ordering.TIME: _time,
    Ordering.DATE: _date,
}
