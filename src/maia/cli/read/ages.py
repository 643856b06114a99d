"""Ages and sizes as people type them."""

from __future__ import annotations

import re
from datetime import datetime

from maia.cli.read.instants import span_of
from maia.errors import UsageError

_SIZES = {"": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


def instant_ago(text: str, *, at: datetime) -> datetime:
    """Read an age such as `30d` and return the instant so long ago.

    Raises:
        UsageError: It is no age.

    >>> from datetime import UTC
    >>> instant_ago("2d", at=datetime(2026, 6, 3, tzinfo=UTC)).day
    1
    """
    span = span_of(text)
    if span is None:
        raise UsageError(f"`{text}` is no age; write a number and s, m, h, d, w or y: `30d`", code="AGE_TEXT")
    try:
        return at - span
    except OverflowError as error:
        raise UsageError(f"`{text}` lies before all time", code="AGE_TEXT") from error


def parse_size(text: str) -> int:
    """Read a size in octets, or with kB, MB or GB.

    Raises:
        UsageError: It is no size.

    >>> parse_size("2MB"), parse_size("512")
    (2097152, 512)
    """
    found = re.fullmatch(r"(\d{1,12})(kb|mb|gb)?", text.lower())
    if found is None or int(found[1]) == 0:
        raise UsageError(f"`{text}` is no size; write `64MB`", code="SIZE_TEXT")
    return int(found[1]) * _SIZES[found[2] or ""]


def show_size(octets: int) -> str:
    """Write a size for people.

    >>> show_size(1536), show_size(12)
    ('1.5 kB', '12 B')
    """
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if octets >= size:
            return f"{octets / size:.1f} {unit}"
    return f"{octets} B"
