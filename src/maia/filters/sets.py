"""Sets of values of one ordered type, as unions of intervals, exactly.

A set is a strictly increasing tuple of *cuts* of even length: the values between the first and the second cut belong to
it, those between the third and the fourth, and so on. A cut lies just before a value (side 0) or, for decimals only,
just after it (side 1). Every other type has successors, so "after v" is written "before the successor of v":

- integers, dates and timestamps: v + 1, up to the largest value of the domain;
- floats: the next double, so `x > 5.0 and x < 5.000000000000001` holds for no double and is empty;
- strings: v followed by U+0000, so nothing lies between `'a'` and `'a' U+0000`, while `'ab'` lies between
  `'a'` and `'b'`;
- booleans: false, then true.

Decimals are dense and unbounded. INVARIANT: a set is empty exactly when its tuple is empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from maia.events import AttributeType
from maia.filters.values import (
    DATE_MAX,
    DATE_MIN,
    FLOAT_MAX,
    INTEGER_MAX,
    INTEGER_MIN,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    Key,
)

# (1, key, side) lies before or after the key; a cut that starts with 0 is below every value, one with 2 above.
Cut: TypeAlias = tuple[int, Key, int]
Cuts: TypeAlias = tuple[Cut, ...]

BOTTOM: Cut = (0, 0, 0)
TOP: Cut = (2, 0, 0)
EMPTY: Cuts = ()
LAST_CODE_POINT = 0x10FFFF

_FIRST: dict[AttributeType, Key] = {
    AttributeType.INTEGER: INTEGER_MIN,
    AttributeType.FLOAT: -FLOAT_MAX,
    AttributeType.STRING: "",
    AttributeType.BOOLEAN: 0,
    AttributeType.DATE: DATE_MIN,
    AttributeType.TIMESTAMP: TIMESTAMP_MIN,
}
_LAST: dict[AttributeType, Key] = {
    AttributeType.INTEGER: INTEGER_MAX,
    AttributeType.FLOAT: FLOAT_MAX,
    AttributeType.BOOLEAN: 1,
    AttributeType.DATE: DATE_MAX,
    AttributeType.TIMESTAMP: TIMESTAMP_MAX,
}


def at_value(cut: Cut) -> bool:
    """Whether a cut lies at a value, and not below or above all of them."""
    return cut[0] == 1


def before(key: Key) -> Cut:
    """The cut just before a value."""
    return (1, key, 0)


def after(key: Key, kind: AttributeType) -> Cut:
    """The cut just after a value."""
    if kind is AttributeType.DECIMAL:
        return (1, key, 1)
    following = successor(key, kind)
    return TOP if following is None else before(following)


def successor(key: Key, kind: AttributeType) -> Key | None:
    """The next value of a type that has one; None after the last."""
    if key == _LAST.get(kind):
        return None
    if isinstance(key, str):
        return key + "\0"
    return math.nextafter(key, math.inf) + 0.0 if isinstance(key, float) else key + 1


def predecessor(key: Key, kind: AttributeType) -> Key | None:
    """The value just before, where there is one."""
    if key == _FIRST.get(kind):
        return None
    if isinstance(key, str):
        return key[:-1] if key.endswith("\0") else None
    return math.nextafter(key, -math.inf) + 0.0 if isinstance(key, float) else key - 1


def bottom(kind: AttributeType) -> Cut:
    """The cut before every value of the type."""
    first = _FIRST.get(kind)
    return BOTTOM if first is None else before(first)


def everything(kind: AttributeType) -> Cuts:
    """All values of the type."""
    return (bottom(kind), TOP)


def interval(low: Cut, high: Cut) -> Cuts:
    """The values between two cuts; empty when the cuts leave none."""
    return (low, high) if low < high else EMPTY


def points(keys: Iterable[Key], kind: AttributeType) -> Cuts:
    """Exactly these values."""
    result: list[Cut] = []
    for key in sorted(set(keys)):
        start, end = before(key), after(key, kind)
        if result and result[-1] == start:
            result[-1] = end
        else:
            result += (start, end)
    return tuple(result)


def prefixed(prefix: str) -> Cuts:
    """All strings that start with the prefix: they are one interval in code point order."""
    stem = prefix.rstrip(chr(LAST_CODE_POINT))
    if not stem:
        return (before(prefix), TOP)
    return (before(prefix), before(stem[:-1] + next_character(stem[-1])))


def next_character(character: str) -> str:
    """The next Unicode scalar value, stepping over the surrogates."""
    code = ord(character) + 1
    return chr(0xE000 if 0xD800 <= code < 0xE000 else code)


def complement(cuts: Cuts, kind: AttributeType) -> Cuts:
    """All values of the type that are not in the set."""
    low = bottom(kind)
    inner = cuts[1:] if cuts and cuts[0] == low else (low, *cuts)
    return inner[:-1] if inner[-1] == TOP else (*inner, TOP)


def intersection(first: Cuts, second: Cuts) -> Cuts:
    """The values in both sets."""
    return _sweep(first, second, 2)


def union(first: Cuts, second: Cuts) -> Cuts:
    """The values in either set."""
    return _sweep(first, second, 1)


def intersection_of(sets: Sequence[Cuts]) -> Cuts:
    """The values in all of the sets; there is at least one."""
    return _balanced(sets, intersection)


def union_of(sets: Sequence[Cuts]) -> Cuts:
    """The values in any of the sets; there is at least one."""
    return _balanced(sets, union)


def difference(first: Cuts, second: Cuts, kind: AttributeType) -> Cuts:
    """The values in the first set and not in the second."""
    return intersection(first, complement(second, kind))


def intervals(cuts: Cuts) -> tuple[tuple[Cut, Cut], ...]:
    """The set as pairs of cuts, in order."""
    return tuple(zip(cuts[0::2], cuts[1::2], strict=True))


def point_of(low: Cut, high: Cut, kind: AttributeType) -> Key | None:
    """The only value between two cuts, or None when there are more."""
    if not at_value(low) or low[2] != 0:
        return None
    return low[1] if after(low[1], kind) == high else None


def _balanced(sets: Sequence[Cuts], join: Callable[[Cuts, Cuts], Cuts]) -> Cuts:
    """Join neighbours, then the results, and so on: thousands of small sets cost no more than sorting them would."""
    level = list(sets)
    while len(level) > 1:
        level = [
            join(*level[place : place + 2]) if place + 1 < len(level) else level[place]
            for place in range(0, len(level), 2)
        ]
    return level[0]


def _sweep(first: Cuts, second: Cuts, needed: int) -> Cuts:
    """Walk over both sets at once and keep the stretches that lie in at least ``needed`` of them."""
    result: list[Cut] = []
    one = two = 0
    inside = False
    while one < len(first) or two < len(second):
        cut = min(first[one] if one < len(first) else TOP, second[two] if two < len(second) else TOP)
        while one < len(first) and first[one] == cut:
            one += 1
        while two < len(second) and second[two] == cut:
            two += 1
        now = one % 2 + two % 2 >= needed
        if now != inside:
            result.append(cut)
            inside = now
    return tuple(result)
