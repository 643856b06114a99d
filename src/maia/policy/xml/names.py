"""The names in an XML policy: of users, cameras, filters and channels."""

from __future__ import annotations

MAX_NAME = 128


def is_name(text: str, *, blanks: bool = False) -> bool:
    """Tell whether a text is a name: letters that can be seen, and no star, which would look like a pattern.

    >>> is_name("greyscale"), is_name("Front Door"), is_name("Front Door", blanks=True), is_name("cam*")
    (True, False, True, False)

    Args:
        text: The text.
        blanks: Whether single blanks may stand between its words.
    """
    if not 0 < len(text) <= MAX_NAME or not text.isprintable() or "*" in text:
        return False
    words = text.split(" ")
    return (blanks or len(words) == 1) and all(words)
