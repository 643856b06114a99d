"""Filters that have no way into the index, arranged by covering so that whole subtrees can be skipped.

Filters of only `!=`, `any`, `suffix`, `contains`, or without constraints concern many rows each. They are evaluated one
by one, but below a filter that covers them: where no row of a batch matches a filter, none matches what it covers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maia.filters.covering import surely_covers
from maia.filters.index_arrays import Integers, Truths
from maia.filters.tree import TypedConstraint, TypedFilter

MAX_COMPARISONS = 64
ROOT = -1


class ScanForest:
    """A forest of filters in which every parent covers its children."""

    def __init__(self) -> None:
        self._filters: dict[int, TypedFilter] = {}
        self._parents: dict[int, int] = {}
        self._children: dict[int, dict[int, None]] = {ROOT: {}}

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, number: int, filter_: TypedFilter) -> None:
        """Put a filter below the deepest filter found to cover it; the search is bounded, a miss only costs time."""
        parent, budget = ROOT, MAX_COMPARISONS
        while budget > 0:
            lower = ROOT
            for child in self._children[parent]:
                if budget == 0:
                    break
                budget -= 1
                if surely_covers(self._filters[child], filter_):
                    lower = child
                    break
            if lower == ROOT:
                break
            parent = lower
        self._filters[number] = filter_
        self._parents[number] = parent
        self._children[parent][number] = None
        self._children[number] = {}

    def remove(self, number: int) -> None:
        """Take a filter out; what it covered moves up."""
        parent = self._parents.pop(number)
        del self._filters[number]
        del self._children[parent][number]
        for child in self._children.pop(number):
            self._parents[child] = parent
            self._children[parent][child] = None

    def matches(self, rows: int, mask: Callable[[TypedConstraint], Truths]) -> list[tuple[int, Integers]]:
        """Each filter with the rows it matches; subtrees below a filter without rows are not looked at."""
        cache: dict[TypedConstraint, Truths] = {}
        result: list[tuple[int, Integers]] = []
        waiting = [(number, np.ones(rows, dtype=bool)) for number in self._children[ROOT]]
        while waiting:
            number, truths = waiting.pop()
            for constraint in self._filters[number].constraints:
                if constraint not in cache:
                    cache[constraint] = mask(constraint)
                truths = truths & cache[constraint]
            found = np.flatnonzero(truths)
            if len(found):
                result.append((number, found))
                waiting += [(child, truths) for child in self._children[number]]
        return result
