"""Text of strangers, made harmless."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Escape what a terminal or a browser would obey rather than show.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
