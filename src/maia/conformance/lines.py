"""Reads one JSON object a line, strictly: no repeated keys, no NaN, no number out of range, no endless line."""

from __future__ import annotations

import json
import math
from typing import NoReturn

from maia.errors import MalformedError

MAX_LINE = 64 << 20
_INTEGER_RANGE = range(-(2**63), 2**64)


def parse_line(line: bytes) -> dict[str, object]:
    """Read a request line.

    Raises:
        MalformedError: The line is no JSON object, repeats a key, or holds a number that JSON cannot carry exactly.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError("the line is not UTF-8", code="JSON_SYNTAX") from error
    try:
        value = json.loads(
            text,
            object_pairs_hook=_without_doubles,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except (ValueError, RecursionError) as error:
        raise MalformedError("the line is not JSON", code="JSON_SYNTAX") from error
    if not isinstance(value, dict):
        raise MalformedError("the line is not a JSON object", code="JSON_SYNTAX")
    return value


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedError("a key stands twice in one object", code="JSON_REPEATED_KEY")
    return found


def _refuse_constant(_name: str) -> NoReturn:
    raise MalformedError("NaN and Infinity are no JSON", code="JSON_NUMBER")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise MalformedError("a number out of range", code="JSON_NUMBER")
    return value


def _bounded(text: str) -> int:
    if len(text) > 24 or int(text) not in _INTEGER_RANGE:
        raise MalformedError("a number out of range", code="JSON_NUMBER")
    return int(text)
