"""Instants and durations as people type them. The clock is read here, and nowhere else in a decision."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from maia.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}


def now() -> datetime:
    """Read the clock, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def span_of(text: str) -> timedelta | None:
    """Read a span of time such as `90d`; nothing when it is none."""
    found = re.fullmatch(r"(\d{1,6})([smhdwy])", text)
    return None if found is None else timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def parse_instant_text(text: str, *, at: datetime) -> datetime:
    """Read an instant with a time zone, a plain date (its first second, UTC), `now`, or `+90d` counted from ``at``.

    Raises:
        UsageError: It is none of these.

    >>> at = datetime(2026, 6, 1, tzinfo=UTC)
    >>> parse_instant_text("+2d", at=at).isoformat(), parse_instant_text("2026-06-05", at=at).day
    ('2026-06-03T00:00:00+00:00', 5)
    """
    if text == "now":
        return at
    span = span_of(text[1:]) if text.startswith("+") else None
    try:
        if span is not None:
            return at + span
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        instant = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"`{text}` is no instant; write `2026-12-31T00:00:00Z`, `2026-12-31`, `now` or `+90d`", code="INSTANT_TEXT"
        ) from error
    if instant.tzinfo is None:
        raise UsageError(f"`{text}` has no time zone; add `Z` for UTC", code="INSTANT_TEXT")
    return instant.astimezone(UTC).replace(microsecond=0)


def decision_instant(text: str | None) -> datetime:
    """Return the instant that ``--at`` names, or now."""
    current = now()
    return current if text is None else parse_instant_text(text, at=current)


def optional_instant(text: str | None, *, at: datetime) -> datetime | None:
    """Read an instant that may be left out."""
    return None if text is None else parse_instant_text(text, at=at)


def show_instant(instant: datetime | None) -> str | None:
    """Write an instant for people and machines alike."""
    return None if instant is None else instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
