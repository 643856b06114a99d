"""Text for people: that of strangers made harmless, the nearest word to one that is not known, numbers of things."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

_UNITS = 2


def printable(text: str) -> str:
    r"""Escape what a terminal or a browser would obey rather than show.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Say which known word is near, to stand at the end of a message; nothing when none is.

    >>> did_you_mean("smiht", ["smith", "jones"])
    '; did you mean `smith`?'
    >>> did_you_mean("zebra", ["smith", "jones"])
    ''
    """
    from difflib import get_close_matches  # noqa: PLC0415 - only needed when something went wrong

    found = get_close_matches(word, list(known), n=1)
    return f"; did you mean `{found[0]}`?" if found else ""


def counted(number: int, one: str, many: str | None = None) -> str:
    """Count things, with the right ending.

    >>> counted(1, "file"), counted(2_000, "file"), counted(0, "key of it", "keys of it")
    ('1 file', '2,000 files', '0 keys of it')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def duration(span: timedelta) -> str:
    """Say how long something takes at worst, in the two largest units that it has; what these leave out rounds up.

    >>> duration(timedelta(days=30, seconds=1)), duration(timedelta(seconds=7)), duration(timedelta(0))
    ('30 days and 1 second', '7 seconds', 'no time')
    >>> duration(timedelta(days=29, hours=23, minutes=59, seconds=58))
    '30 days'
    """
    whole = span.days * 86_400 + span.seconds + bool(span.microseconds)
    left, parts = whole, []
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        count, left = divmod(left, size)
        if count:
            parts.append(counted(count, unit))
        if left and len(parts) == _UNITS:
            return duration(timedelta(seconds=whole - left + size))
    return " and ".join(parts) or "no time"
