"""Numbers and things in words."""

from __future__ import annotations


def counted(number: int, one: str, many: str | None = None) -> str:
    """Count things, with the right ending.

    >>> counted(1, "file"), counted(2_000, "file"), counted(0, "key of it", "keys of it")
    ('1 file', '2,000 files', '0 keys of it')
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
