"""JSON as senders and readers must agree on it (RFC 7493): one reading for every text.

Refused: a name twice in one object, NaN and the infinities, numbers that a double cannot hold exactly enough (2^53 and
beyond for integers, out of range for others), lone surrogates, anything but UTF-8, nesting deeper than `MAX_DEPTH`.
"""

from __future__ import annotations

import json
import math
from array import array
from itertools import accumulate

from maia.errors import MalformedError

MAX_DEPTH = 32
_EXACT = 2**53 - 1
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as signed octets: one deeper, one less
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


def read_json(data: bytes) -> object:
    """Read a JSON text.

    Raises:
        MalformedError: It has no reading, or more than one (`JSON`).
    """
    try:
        text = data.decode("utf-8")
        _check_depth(data)
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise MalformedError("the body is not JSON", code="JSON") from error
    _check_text(value)
    return value


def _check_depth(data: bytes) -> None:
    """Count brackets outside strings, before the recursive reader sees them."""
    # Without a step of Python for each letter, since these are texts of strangers. Behind a backslash outside strings
    # the count may be wrong, but there the reader stops.
    bare = data.replace(rb"\\", b"").replace(rb"\"", b"")
    outside = b"".join(bare.split(b'"')[::2])
    steps = array("b", outside.translate(_STEPS, _NO_BRACKETS))
    if max(accumulate(steps), default=0) > MAX_DEPTH:
        raise MalformedError(f"JSON nested deeper than {MAX_DEPTH}", code="JSON")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise MalformedError("a JSON object with a name twice", code="JSON")
    return table


def _constant(name: str) -> object:
    raise MalformedError(f"`{name}` is no number of JSON", code="JSON")


def _integer(digits: str) -> int:
    if len(digits) > 17 or abs(value := int(digits)) > _EXACT:
        raise MalformedError("an integer that not every reader of JSON can hold; write it as a string", code="JSON")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise MalformedError("a number that is out of range", code="JSON")
    return value


def _check_text(value: object) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise MalformedError("a text with half a character", code="JSON") from error
