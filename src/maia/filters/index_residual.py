"""The rest of a filter, checked on candidate pairs: everything the way into the index did not already decide.

Constraints of the same attribute and operator share a store of operands, so a batch of candidate (row, filter) pairs
costs one array comparison per kind of constraint, not one call per filter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from maia.events import AttributeType
from maia.filters import sets
from maia.filters.index_arrays import TEXT_TYPES, BatchColumn, Growable, Integers, Truths, ragged
from maia.filters.tree import Operator, TypedConstraint
from maia.filters.values import Key, sort_key

_COMPARE: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.EQUAL: np.equal,
    Operator.NOT_EQUAL: np.not_equal,
    Operator.LESS: np.less,
    Operator.GREATER: np.greater,
    Operator.AT_MOST: np.less_equal,
    Operator.AT_LEAST: np.greater_equal,
}


class Operands(Protocol):
    """The operands of all constraints of one attribute and operator."""

    def add(self, keys: tuple[Key, ...]) -> int:
        """Keep the operands of one constraint and say where."""

    def hold(self, column: BatchColumn, rows: Integers, places: Integers) -> Truths:
        """Whether the constraint at each place covers the value of each row."""


class _Presence:
    """`any`."""

    def add(self, keys: tuple[Key, ...]) -> int:  # noqa: ARG002 - there are none
        return 0

    def hold(self, column: BatchColumn, rows: Integers, places: Integers) -> Truths:  # noqa: ARG002
        return column.valid[rows]


class _Numbers:
    """Comparisons of numbers, booleans and times."""

    def __init__(self, operator: Operator, kind: AttributeType) -> None:
        self._compare = _COMPARE[operator]
        self._operands: Growable[Any] = Growable(np.float64 if kind is AttributeType.FLOAT else np.int64)

    def add(self, keys: tuple[Key, ...]) -> int:
        self._operands.append(keys[0])
        return len(self._operands) - 1

    def hold(self, column: BatchColumn, rows: Integers, places: Integers) -> Truths:
        compared: Truths = self._compare(column.numbers[rows], self._operands.view[places])
        return compared & column.valid[rows]


class _Texts:
    """Comparisons of strings and decimals, by their rank among the values and operands that meet in this batch."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._operands: list[Key] = []

    def add(self, keys: tuple[Key, ...]) -> int:
        self._operands.append(keys[0])
        return len(self._operands) - 1

    def hold(self, column: BatchColumn, rows: Integers, places: Integers) -> Truths:
        used, local = np.unique(places, return_inverse=True)
        operands = [self._operands[place] for place in used.tolist()]
        if self._operator in {Operator.EQUAL, Operator.NOT_EQUAL}:
            # -2 is no code: an operand the batch does not hold equals nothing.
            right = np.array([column.code_of.get(operand, -2) for operand in operands], dtype=np.int64)
            left = column.codes
        else:
            rank = {key: place for place, key in enumerate(sorted({*column.distinct, *operands}))}
            right = np.array([rank[operand] for operand in operands], dtype=np.int64)
            left = np.array([*(rank[key] for key in column.distinct), 0], dtype=np.int64)[column.codes]
        compared: Truths = _COMPARE[self._operator](left[rows], right[local])
        return compared & column.valid[rows]


class _Pairs:
    """`suffix` and `contains`, tested once per distinct pair of value and operand."""

    def __init__(self, operator: Operator) -> None:
        self._ends = operator is Operator.SUFFIX
        self._operands: list[str] = []

    def add(self, keys: tuple[Key, ...]) -> int:
        self._operands.append(str(keys[0]))
        return len(self._operands) - 1

    def hold(self, column: BatchColumn, rows: Integers, places: Integers) -> Truths:
        width = len(column.distinct) + 1
        pairs, local = np.unique(places * width + column.codes[rows] + 1, return_inverse=True)
        values, operands = column.distinct, self._operands
        truths = np.zeros(len(pairs), dtype=bool)
        for position, (place, code) in enumerate(zip((pairs // width).tolist(), (pairs % width).tolist(), strict=True)):
            if code:
                text = str(values[code - 1])
                truths[position] = text.endswith(operands[place]) if self._ends else operands[place] in text
        return truths[local]


class _Members:
    """`in`, by the codes of the members that occur in the batch."""

    def __init__(self) -> None:
        self._operands: list[tuple[Key, ...]] = []

    def add(self, keys: tuple[Key, ...]) -> int:
        self._operands.append(keys)
        return len(self._operands) - 1

    def hold(self, column: BatchColumn, rows: Integers, places: Integers) -> Truths:
        used, local = np.unique(places, return_inverse=True)
        width = len(column.distinct) + 1
        allowed = [
            position * width + column.code_of[key] + 1
            for position, place in enumerate(used.tolist())
            for key in self._operands[place]
            if key in column.code_of
        ]
        return np.isin(local * width + column.codes[rows] + 1, np.array(allowed, dtype=np.int64))


def _operands(operator: Operator, kind: AttributeType) -> Operands:
    if operator is Operator.ANY:
        return _Presence()
    if operator is Operator.IN:
        return _Members()
    if operator in {Operator.SUFFIX, Operator.CONTAINS}:
        return _Pairs(operator)
    return _Texts(operator) if kind in TEXT_TYPES else _Numbers(operator, kind)


class Residuals:
    """For each filter number, the constraints that candidate pairs must still satisfy."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, Operator], int] = {}
        self._operands: list[tuple[str, Operands]] = []
        self._starts: Growable[np.int64] = Growable(np.int64)
        self._counts: Growable[np.int64] = Growable(np.int64)
        self._kind: Growable[np.int64] = Growable(np.int64)
        self._place: Growable[np.int64] = Growable(np.int64)

    def add(self, constraints: Iterable[TypedConstraint]) -> None:
        """Keep the constraints of the next filter number."""
        start = len(self._kind)
        for constraint in constraints:
            for operator, keys in _plain(constraint):
                self._add(constraint.attribute, constraint.type, operator, keys)
        self._starts.append(start)
        self._counts.append(len(self._kind) - start)

    def keep(self, rows: Integers, numbers: Integers, columns: Mapping[str, BatchColumn | None]) -> Truths:
        """Which candidate pairs satisfy all their remaining constraints."""
        truths = np.ones(len(rows), dtype=bool)
        counts = self._counts.view[numbers]
        entries = ragged(self._starts.view[numbers], counts)
        if not len(entries):
            return truths
        pairs = np.repeat(np.arange(len(rows)), counts)
        kinds = self._kind.view[entries]
        for kind in np.unique(kinds).tolist():
            chosen = kinds == kind
            pair = pairs[chosen]
            attribute, operands = self._operands[kind]
            column = columns[attribute]
            if column is None:
                truths[pair] = False
                continue
            held = operands.hold(column, rows[pair], self._place.view[entries[chosen]])
            truths[pair[~held]] = False
        return truths

    def _add(self, attribute: str, kind: AttributeType, operator: Operator, keys: tuple[Key, ...]) -> None:
        number = self._kinds.get((attribute, operator))
        if number is None:
            number = self._kinds[attribute, operator] = len(self._operands)
            self._operands.append((attribute, _operands(operator, kind)))
        self._kind.append(number)
        self._place.append(self._operands[number][1].add(keys))


def _plain(constraint: TypedConstraint) -> list[tuple[Operator, tuple[Key, ...]]]:
    """A constraint as operators the stores know: a prefix is an interval."""
    keys = tuple(sort_key(value, constraint.type) for value in constraint.values)
    if constraint.operator is not Operator.PREFIX:
        return [(constraint.operator, keys)]
    low, high = sets.prefixed(str(keys[0]))
    bounds: list[tuple[Operator, tuple[Key, ...]]] = [(Operator.AT_LEAST, (low[1],))]
    return [*bounds, (Operator.LESS, (high[1],))] if sets.at_value(high) else bounds
