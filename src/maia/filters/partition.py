"""The values of one attribute, sorted by which of several demands they meet: a finite map of an infinite type.

Demands that are compared with one another (do these rights show what those show?) tell only finitely many kinds of
values apart. Each kind is a cell, with one value that stands for all of it. Whatever holds for the values of the cells
holds for every value, so questions about all rows become questions about finitely many.

The ends of all intervals cut an ordered type into stretches that no interval divides. In a stretch of strings, each
`suffix` and `contains` that some demand asks for there divides again, into strings that have it and strings that do not
(see `patterns`); what holds no string is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from itertools import pairwise

from maia.errors import UncheckedError
from maia.events import AttributeType
from maia.filters import sets
from maia.filters.patterns import TextDemand, example
from maia.filters.sets import Cut, Cuts
from maia.filters.shapes import Shape, join_shapes
from maia.filters.tree import TypedConstraint
from maia.filters.values import Key, Value, from_key

Demand = Sequence[Sequence[TypedConstraint]]
"""Alternatives, each a conjunction of constraints; without alternatives it admits no value."""

MAX_CELLS = 4096


@dataclass(frozen=True, slots=True)
class ValueCell:
    """Values that meet the same demands.

    Attributes:
        value: One of them.
        meets: The numbers of the demands that they meet.
    """

    value: Value
    meets: frozenset[int]


def partition(kind: AttributeType, demands: Sequence[Demand]) -> tuple[ValueCell, ...]:
    """Sort the values of a type by the demands that they meet; no two cells meet the same ones.

    >>> from maia.filters import compile_filter
    >>> low, high = (compile_filter(text, {"x": "integer"}).constraints for text in ("x < 5", "x >= 5"))
    >>> [(cell.value, sorted(cell.meets)) for cell in partition(AttributeType.INTEGER, [[low], [high]])]
    [(0, [0]), (5, [1])]

    Args:
        kind: The type; one whose values can be compared.
        demands: What is asked of values.

    Raises:
        UncheckedError: There are more cells than can be looked at: ``FILTER_TOO_LARGE``.
    """
    shapes = [[join_shapes(conjunction) for conjunction in demand] for demand in demands]
    ends = {sets.bottom(kind), sets.TOP, *(cut for demand in shapes for shape in demand for cut in shape.cuts)}
    cuts = sorted(ends)
    found: dict[frozenset[int], Value] = {}
    for stretch in pairwise(cuts):
        there = [
            [shape for shape in demand if sets.intersection(shape.cuts, stretch)] for demand in shapes
        ]  # whole: no cut lies within
        for texts, value in _values(kind, stretch, there):
            meets = frozenset(
                number for number, demand in enumerate(there) if any(_has(texts, shape) for shape in demand)
            )
            found.setdefault(meets, value)
            if len(found) > MAX_CELLS:
                raise _too_large()
    return tuple(ValueCell(value, meets) for meets, value in found.items())


def _too_large() -> UncheckedError:
    return UncheckedError("the demands on one attribute are too many to be compared", code="FILTER_TOO_LARGE")


def _values(
    kind: AttributeType, stretch: tuple[Cut, Cut], there: Sequence[Sequence[Shape]]
) -> Iterator[tuple[TextDemand, Value]]:
    """Give the ways in which values of a stretch meet the texts that are asked for there, with a value each."""
    endings = sorted({text for demand in there for shape in demand for text in shape.endings})
    parts = sorted({text for demand in there for shape in demand for text in shape.parts})
    if not endings and not parts:
        yield TextDemand(), from_key(_inside(*stretch, kind), kind)
        return
    ways: list[tuple[TextDemand, str]] = [(TextDemand(), "")]
    for field, texts in (("endings", endings), ("parts", parts)):
        for text in texts:
            ways = [more for way, _ in ways for more in _split(stretch, way, field, text)]
            if len(ways) > MAX_CELLS:
                raise _too_large()
    yield from ways


def _split(stretch: Cuts, way: TextDemand, field: str, text: str) -> Iterator[tuple[TextDemand, str]]:
    for name in (field, f"not_{field}"):
        narrower = replace(way, **{name: (*getattr(way, name), text)})
        found = example(stretch, narrower)
        if found is not None:
            yield narrower, found


def _has(texts: TextDemand, shape: Shape) -> bool:
    return shape.endings <= set(texts.endings) and shape.parts <= set(texts.parts)


def _inside(low: Cut, high: Cut, kind: AttributeType) -> Key:
    """Choose a value between two cuts; one that people would choose, where there is one."""
    for key in _likely(low, high, kind):
        if low <= sets.before(key) and (1, key, 1) < high and (low[2] == 0 or low < (1, key, 0)):
            return key
    if kind is AttributeType.DECIMAL:
        return _between(low, high)
    return low[1]


def _likely(low: Cut, high: Cut, kind: AttributeType) -> Iterator[Key]:
    match kind:
        case AttributeType.STRING:
            stem = str(low[1]).rstrip("\0") if sets.at_value(low) else ""
            yield from (f"{stem}a", "a")
        case AttributeType.FLOAT:
            yield 0.0
        case AttributeType.DECIMAL:
            yield Decimal(0)
        case _:
            yield 0
    if low == sets.bottom(kind) and sets.at_value(high) and kind is not AttributeType.STRING:
        previous = None if kind is AttributeType.DECIMAL else sets.predecessor(high[1], kind)
        if previous is not None:
            yield previous


def _between(low: Cut, high: Cut) -> Decimal:
    """Choose the decimal with the fewest digits behind the point: a type of few digits has it, if it has any."""
    start, end = (Decimal(cut[1]) if sets.at_value(cut) else None for cut in (low, high))
    exact = Context(prec=2 * sum(_width(item) for item in (start, end) if item is not None) + 8)
    if start is None:
        return Decimal(0) if end is None else exact.subtract(end, Decimal(1)).to_integral_value(ROUND_FLOOR)
    if low[2] == 0:
        return start
    step = Decimal(1)
    while True:
        found = _above(start, step, exact)
        if end is None or found < end or (found == end and high[2] == 1):
            return found
        step = exact.divide(step, Decimal(10))


def _above(start: Decimal, step: Decimal, exact: Context) -> Decimal:
    """The first multiple of a step above a number."""
    whole = exact.multiply(exact.divide_int(start, step), step)
    return whole if whole > start else exact.add(whole, step)


def _width(number: Decimal) -> int:
    return len(number.as_tuple().digits) + abs(number.adjusted())
