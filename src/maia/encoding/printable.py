"""Text for people: that of strangers made harmless, and the nearest word to one that is not known."""

from __future__ import annotations

from collections.abc import Iterable


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
