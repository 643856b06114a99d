"""The values an attribute can have, type by type: domains, order, and the written forms of times.

Rules:

1. integer: whole numbers of 64 bits, exact. A truth value is no integer.
2. float: finite IEEE doubles; NaN and the infinities are outside the domain; -0.0 is 0.0.
3. decimal: exact decimal numbers of at most 76 digits before and after the point together.
4. string: Unicode scalar values (no lone surrogates), ordered by code point, which is the order of their UTF-8 bytes.
5. boolean: two values, no order.
6. date: calendar days of the years 1 to 9999. A timestamp is no date.
7. timestamp: instants with a zone, whole microseconds, years 1 to 9999 in UTC. A time without zone is outside the
   domain.
8. binary: never filterable.

A value outside the domain of its attribute is treated like a missing one by every evaluator: it matches nothing.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from maia.errors import FilterTypeError
from maia.events import AttributeType

Value: TypeAlias = int | float | Decimal | str | bool | date | datetime
Key: TypeAlias = int | float | Decimal | str

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1
FLOAT_MAX = math.nextafter(math.inf, 0.0)
DECIMAL_DIGITS = 76
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = EPOCH.toordinal()
MICROSECOND = timedelta(microseconds=1)
DATE_MIN = date.min.toordinal() - EPOCH_DAY
DATE_MAX = date.max.toordinal() - EPOCH_DAY
TIMESTAMP_MIN = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MICROSECOND
TIMESTAMP_MAX = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


def in_domain(value: object, kind: AttributeType) -> bool:
    """Say whether a value belongs to the type; nothing is cast to find out.

    >>> in_domain(5, AttributeType.INTEGER), in_domain(True, AttributeType.INTEGER), in_domain(5, AttributeType.FLOAT)
    (True, False, False)
    """
    match kind:
        case AttributeType.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool) and INTEGER_MIN <= value <= INTEGER_MAX
        case AttributeType.FLOAT:
            return isinstance(value, float) and math.isfinite(value)
        case AttributeType.DECIMAL:
            return isinstance(value, Decimal) and value.is_finite() and decimal_fits(value)
        case AttributeType.STRING:
            return isinstance(value, str) and is_scalar_text(value)
        case AttributeType.BOOLEAN:
            return isinstance(value, bool)
        case AttributeType.DATE:
            return isinstance(value, date) and not isinstance(value, datetime)
        case AttributeType.TIMESTAMP:
            if not isinstance(value, datetime) or value.utcoffset() is None:
                return False
            return TIMESTAMP_MIN <= (value - EPOCH) // MICROSECOND <= TIMESTAMP_MAX
        case AttributeType.BINARY:
            return isinstance(value, bytes)


def is_scalar_text(text: str) -> bool:
    """Say whether a text holds Unicode scalar values only, so that it has a UTF-8 form."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def decimal_fits(value: Decimal) -> bool:
    """Say whether a finite decimal keeps to the digits Arrow can hold, before and after the point together."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return False
    fraction = max(0, -exponent)
    whole = max(0, len(digits) + exponent)
    return whole + fraction <= DECIMAL_DIGITS


def normal(value: Value, kind: AttributeType) -> Value:
    """The one form of a value: no negative zero, no trailing zeros in decimals, timestamps in UTC."""
    match kind:
        case AttributeType.FLOAT:
            return value + 0.0 if isinstance(value, float) else value
        case AttributeType.DECIMAL if isinstance(value, Decimal):
            return normal_decimal(value)
        case AttributeType.TIMESTAMP if isinstance(value, datetime):
            return EPOCH + ((value - EPOCH) // MICROSECOND) * MICROSECOND
        case AttributeType.INTEGER if isinstance(value, int):
            return int(value)
        case AttributeType.STRING if isinstance(value, str):
            return str(value)
        case _:
            return value


def normal_decimal(value: Decimal) -> Decimal:
    """The same decimal without trailing zeros, exponent or negative zero; exact at any precision."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not any(digits):
        return Decimal(0)
    while exponent < 0 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    if exponent > 0:
        digits, exponent = (*digits, *([0] * exponent)), 0
    first = next(index for index, digit in enumerate(digits) if digit)
    return Decimal((sign, digits[first:], exponent))


def sort_key(value: Value, kind: AttributeType) -> Key:
    """The key that orders the values of a type; equal values have equal keys."""
    match kind:
        case AttributeType.TIMESTAMP if isinstance(value, datetime):
            return (value - EPOCH) // MICROSECOND
        case AttributeType.DATE if isinstance(value, date):
            return value.toordinal() - EPOCH_DAY
        case AttributeType.BOOLEAN:
            return int(bool(value))
        case _ if isinstance(value, int | float | Decimal | str):
            return value
        case _:
            raise FilterTypeError(f"a value has no order as {kind.value}", code="FILTER_VALUE_DOMAIN")


def from_key(key: Key, kind: AttributeType) -> Value:
    """The value that has this key; the inverse of `sort_key`."""
    match kind:
        case AttributeType.TIMESTAMP if isinstance(key, int):
            return EPOCH + key * MICROSECOND
        case AttributeType.DATE if isinstance(key, int):
            return date.fromordinal(key + EPOCH_DAY)
        case AttributeType.BOOLEAN:
            return bool(key)
        case _:
            return key


def parse_date(text: str) -> date | None:
    """Read `YYYY-MM-DD`; anything else, also a day that does not exist, is None.

    >>> parse_date("2026-02-28"), parse_date("2026-02-30")
    (datetime.date(2026, 2, 28), None)
    """
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    try:
        return date(*(int(part) for part in found.groups()))
    except ValueError:
        return None


def parse_timestamp(text: str) -> datetime | None:
    """Read `YYYY-MM-DDTHH:MM:SS[.ffffff]Z` (or a numeric offset) as UTC; anything else is None, never rounded.

    >>> parse_timestamp("2026-06-01T02:00:00+02:00")
    datetime.datetime(2026, 6, 1, 0, 0, tzinfo=datetime.timezone.utc)
    >>> parse_timestamp("2026-06-01T02:00:00") is None
    True
    """
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, sign, offset_hours, offset_minutes = found.groups()[6:]
    microsecond = int((fraction or "").ljust(6, "0"))
    offset = timedelta()
    if sign is not None:
        hours, minutes = int(offset_hours), int(offset_minutes)
        if hours > 23 or minutes > 59:
            return None
        offset = timedelta(hours=hours, minutes=minutes) * (-1 if sign == "-" else 1)
    try:
        return datetime(year, month, day, hour, minute, second, microsecond, tzinfo=UTC) - offset
    except (ValueError, OverflowError):
        return None


def format_timestamp(value: datetime, *, separator: str = "T", zone: str = "Z") -> str:
    """Write an instant in UTC, with the fraction only when there is one and without its trailing zeros."""
    moment = value.astimezone(UTC)
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    day = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"
    return f"{day}{separator}{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}{fraction}{zone}"


def plain_decimal(value: Decimal) -> str:
    """Write a decimal exactly, without exponent and always with a point."""
    text = f"{value:f}"
    return text if "." in text else f"{text}.0"


def plain_float(value: float) -> str:
    """Write a double as the shortest decimal that reads back as it, without exponent and always with a point."""
    return plain_decimal(Decimal(repr(value)))
