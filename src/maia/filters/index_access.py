"""Ways into the subscription index: which filters a value can possibly concern.

Each way answers with *runs*: for each row of the batch a stretch of an array of filter numbers. A run never misses a
filter whose constraint on that attribute the row satisfies.

- `HashAccess`: equality and `in`; one lookup per distinct value of the batch, whatever the number of filters.
- `RangeAccess`: one interval per filter, in segment trees over the sorted bounds; a row finds exactly the intervals
  that hold its value in as many steps as the tree is deep. New intervals wait in a small tree; trees merge as they
  grow, each at least four times the next, so an interval is moved a logarithmic number of times.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from maia.events import AttributeType
from maia.filters.index_arrays import TEXT_TYPES, BatchColumn, Integers
from maia.filters.sets import Cut, at_value
from maia.filters.values import Key

_BUFFER = 512
_GROWTH = 4


@dataclass(frozen=True, slots=True)
class Runs:
    """For row i the candidates are ``flat[starts[i] : starts[i] + counts[i]]``."""

    flat: Integers
    starts: Integers
    counts: Integers


Interval: TypeAlias = tuple[Cut, Cut, int]


class HashAccess:
    """Filters by the value their attribute must have."""

    def __init__(self) -> None:
        # Most values belong to one filter: a bare number costs far less memory than a collection of one.
        self._table: dict[Key, int | dict[int, None]] = {}

    def load(self, key: Key) -> int:
        """How many filters wait for this value."""
        found = self._table.get(key)
        return 0 if found is None else 1 if isinstance(found, int) else len(found)

    def __len__(self) -> int:
        return len(self._table)

    def add(self, key: Key, number: int) -> None:
        """Let a filter wait for a value."""
        found = self._table.get(key)
        if found is None:
            self._table[key] = number
        elif isinstance(found, int):
            self._table[key] = {found: None, number: None}
        else:
            found[number] = None

    def remove(self, key: Key, number: int) -> None:
        """Stop a filter waiting for a value."""
        found = self._table.get(key)
        if isinstance(found, dict):
            found.pop(number, None)
            if not found:
                del self._table[key]
        elif found == number:
            del self._table[key]

    def runs(self, column: BatchColumn) -> list[Runs]:
        """The filters that wait for each row's value."""
        flat: list[int] = []
        codes: list[int] = []
        sizes: list[int] = []
        for code, found in enumerate(map(self._table.get, column.distinct)):
            if found is None:
                continue
            codes.append(code)
            if isinstance(found, int):
                sizes.append(1)
                flat.append(found)
            else:
                sizes.append(len(found))
                flat.extend(found)
        if not flat:
            return []
        # Rows without a value have code -1, which is the last place and stays empty.
        starts = np.zeros(len(column.distinct) + 1, dtype=np.int64)
        counts = np.zeros(len(column.distinct) + 1, dtype=np.int64)
        counts[codes] = sizes
        starts[codes] = np.cumsum(sizes) - sizes
        return [Runs(np.array(flat, dtype=np.int64), starts[column.codes], counts[column.codes])]


class RangeAccess:
    """Filters by the interval their attribute must lie in."""

    def __init__(self, kind: AttributeType) -> None:
        self._kind = kind
        self._trees: list[_Tree] = []
        self._buffer: list[Interval] = []
        self._fresh: _Tree | None = None

    def add(self, low: Cut, high: Cut, number: int) -> None:
        """Let a filter wait for values between two cuts. Removal is the caller's: dead numbers are skipped there."""
        self._buffer.append((low, high, number))
        self._fresh = None
        if len(self._buffer) < _BUFFER:
            return
        waiting, self._buffer = self._buffer, []
        while self._trees and len(self._trees[-1]) < _GROWTH * len(waiting):
            waiting = self._trees.pop().intervals + waiting
        self._trees.append(_Tree(waiting, self._kind))

    def runs(self, column: BatchColumn) -> list[Runs]:
        """The filters whose interval holds each row's value."""
        if self._buffer and self._fresh is None:
            self._fresh = _Tree(self._buffer, self._kind)
        trees = [*self._trees, *([self._fresh] if self._fresh else [])]
        return [runs for tree in trees for runs in tree.runs(column)]


class _Tree:
    """A static segment tree over the stretches between sorted bounds."""

    def __init__(self, intervals: list[Interval], kind: AttributeType) -> None:
        self.intervals = list(intervals)
        ends = {cut for low, high, _ in intervals for cut in (low, high) if at_value(cut)}
        self._bounds = sorted(ends)
        self._numeric = None if kind in TEXT_TYPES else _numeric_bounds(self._bounds, kind)
        place = {cut: position + 1 for position, cut in enumerate(self._bounds)}
        self._leaves = len(self._bounds) + 1
        lows = [place.get(low, 0) for low, _, _ in intervals]
        highs = [place.get(high, self._leaves) for _, high, _ in intervals]
        numbers = np.array([number for _, _, number in intervals], dtype=np.int64)
        self._flat, self._starts = _spread(np.array(lows), np.array(highs), numbers, self._leaves)

    def __len__(self) -> int:
        return len(self.intervals)

    def runs(self, column: BatchColumn) -> list[Runs]:
        node = np.where(column.valid, self._positions(column) + self._leaves, 0)
        result: list[Runs] = []
        while node.any():
            starts = self._starts[node]
            counts = self._starts[node + 1] - starts
            if counts.any():
                result.append(Runs(self._flat, starts, counts))
            node >>= 1
        return result

    def _positions(self, column: BatchColumn) -> Integers:
        """How many bounds lie at or before each row's value."""
        if self._numeric is not None:
            return np.searchsorted(self._numeric, column.numbers, side="right")
        places = [bisect_right(self._bounds, (1, key, 0)) for key in column.distinct]
        return np.array([*places, 0], dtype=np.int64)[column.codes]


def _numeric_bounds(bounds: list[Cut], kind: AttributeType) -> npt.NDArray[Any]:
    return np.array([cut[1] for cut in bounds], dtype=np.float64 if kind is AttributeType.FLOAT else np.int64)


def _spread(low: Integers, high: Integers, numbers: Integers, leaves: int) -> tuple[Integers, Integers]:
    """Put each interval on the few nodes that together make it up; nodes are numbered from the root, 1."""
    low, high = low.astype(np.int64) + leaves, high.astype(np.int64) + leaves
    nodes: list[Integers] = []
    owners: list[Integers] = []
    while True:
        open_ = low < high
        if not open_.any():
            break
        low, high, numbers = low[open_], high[open_], numbers[open_]
        left = (low & 1).astype(bool)
        nodes.append(low[left])
        owners.append(numbers[left])
        right = (high & 1).astype(bool)
        nodes.append(high[right] - 1)
        owners.append(numbers[right])
        low, high = (low + 1) >> 1, high >> 1
    if not nodes:
        return np.empty(0, dtype=np.int64), np.zeros(2 * leaves + 1, dtype=np.int64)
    node, owner = np.concatenate(nodes), np.concatenate(owners)
    order = np.argsort(node, kind="stable")
    starts = np.zeros(2 * leaves + 1, dtype=np.int64)
    np.cumsum(np.bincount(node, minlength=2 * leaves), out=starts[1:])
    return owner[order], starts
