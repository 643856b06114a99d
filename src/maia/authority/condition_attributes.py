"""Which attributes of an event a condition names, read from its text alone.

A condition is an expression of another floor; here it is text that travels in a certificate. What it may look at is
decided by its words: ``event["<uid>"]`` and ``"<uid>" in event`` are the only ways to an attribute, and uids are
written out. So the reader needs no grammar, only tokens.

Rules kept here: a text in which ``event`` does not occur names nothing; a text that holds anything but plain tokens
(escapes, prefixed or tripled quotes, comments, letters of other alphabets), or the word ``event`` in any other place,
may name anything.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<text>"[^"\\\n]*"|'[^'\\\n]*')|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9][0-9A-Za-z.]*)"""
    r"""|(?P<sign>[-+*/%()\[\],.?:!<>=&|])"""
)
_EVENT = "event"
_BEFORE_PRESENCE = frozenset("(&|?:,")


def attributes_of(condition: str) -> frozenset[str] | None:
    """List the uids that a condition names; ``None`` when it may name any.

    >>> sorted(attributes_of("event['7'] > 5 && '8' in event"))
    ['7', '8']
    >>> attributes_of("now.hour('Europe/London') < 17")
    frozenset()
    >>> attributes_of("size(event) > 2") is None
    True
    """
    if _EVENT not in condition:
        return frozenset()
    tokens = _tokens(condition)
    if tokens is None:
        return None
    found: set[str] = set()
    for at, token in enumerate(tokens):
        if token != _EVENT:
            continue
        uid = _looked_up(tokens[at + 1 : at + 4]) or _present(tokens[max(0, at - 3) : at])
        if uid is None:
            return None
        found.add(uid)
    return frozenset(found)


def _tokens(source: str) -> list[str] | None:
    """Cut a text into tokens, strings with their quotes; nothing when a part of it is none of the known ones."""
    if "//" in source:
        return None  # a comment, or an address in a string: not worth telling apart
    found: list[str] = []
    place, before = 0, ""
    while place < len(source):
        match = _TOKEN.match(source, place)
        if match is None:
            return None
        kind = match.lastgroup
        # SECURITY: quotes side by side, or with a letter before them, are other kinds of strings that end elsewhere.
        if kind == "text" and before in ("text", "word", "number"):
            return None
        if kind != "space":
            found.append(match[0])
        place, before = match.end(), kind or ""
    return found


def _looked_up(after: list[str]) -> str | None:
    """Read ``["uid"]``."""
    return _plain(after[1]) if len(after) == 3 and after[0] == "[" and after[2] == "]" else None


def _present(before: list[str]) -> str | None:
    """Read ``"uid" in``, at the start of an operand."""
    if len(before) < 2 or before[-1] != "in" or (len(before) == 3 and before[0] not in _BEFORE_PRESENCE):
        return None
    return _plain(before[-2])


def _plain(token: str) -> str | None:
    return token[1:-1] if token[0] in "\"'" else None
