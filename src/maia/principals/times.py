"""Instants in signed objects: whole seconds in UTC, written as RFC 2693 does, ``2026-06-01_09:00:00``."""

from __future__ import annotations

from datetime import UTC, datetime

from maia.encoding import Sexp
from maia.errors import EncodingError, UsageError

_LENGTH = 19


def encode_instant(instant: datetime) -> bytes:
    """Write an aware instant.

    Raises:
        UsageError: The instant has no time zone, or a fraction of a second.

    >>> encode_instant(datetime(2026, 6, 1, 9, tzinfo=UTC))
    b'2026-06-01_09:00:00'
    """
    check_aware(instant)
    if instant.microsecond:
        raise UsageError("instants in signed objects are whole seconds")
    at = instant.astimezone(UTC)
    return f"{at:%Y-%m-%d_%H:%M:%S}".rjust(_LENGTH, "0").encode("ascii")


def parse_instant(text: Sexp) -> datetime:
    """Read an instant in exactly the form that `encode_instant` writes.

    >>> parse_instant(b"2026-06-01_09:00:00").isoformat()
    '2026-06-01T09:00:00+00:00'
    """
    if not isinstance(text, bytes) or len(text) != _LENGTH:
        raise EncodingError("expected an instant like `2026-06-01_09:00:00`", code="INSTANT")
    digits = text[0:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19]
    if not digits.isdigit() or (text[4], text[7], text[10], text[13], text[16]) != (45, 45, 95, 58, 58):
        raise EncodingError("expected an instant like `2026-06-01_09:00:00`", code="INSTANT")
    try:
        return datetime(
            int(text[0:4]), int(text[5:7]), int(text[8:10]), int(text[11:13]), int(text[14:16]), int(text[17:19]),
            tzinfo=UTC,
        )  # fmt: skip
    except ValueError as error:
        raise EncodingError("an instant that is on no calendar", code="INSTANT") from error


def check_aware(instant: datetime) -> datetime:
    """Refuse an instant without a time zone, and give it back otherwise."""
    if instant.tzinfo is None:
        raise UsageError("instants need a time zone")
    return instant
