"""Where a text stops making sense, and what could have stood there, for every language that has a grammar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lark import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

_SHOWN = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Misread:
    """A place in a text, from 1 on, and what is said of it."""

    line: int
    column: int
    message: str


def find_misread(text: str, error: UnexpectedInput, spell: Callable[[str], str]) -> Misread:
    """Say where a text stops making sense and what could have stood there.

    Args:
        text: What was read.
        error: What the parser says of it.
        spell: Says in people's words what a terminal of the grammar is.
    """
    if isinstance(error, UnexpectedCharacters):
        expected, position = set(error.allowed or ()), error.pos_in_stream
    elif isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        position = len(text) if error.token.type == "$END" else error.token.start_pos
    else:
        expected, position = set(), len(text)
    offset = len(text) if position is None else position
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    wanted = sorted({spell(terminal) for terminal in expected})
    wish = f"expected {' or '.join(wanted)}" if wanted else "unexpected text"
    rest = text[offset : offset + _SHOWN].split("\n", 1)[0]
    found = f"found `{rest}`" if rest.strip() else "the text ends" if offset >= len(text) else "the line ends"
    return Misread(line=line, column=column, message=f"line {line}, column {column}: {wish} but {found}")
