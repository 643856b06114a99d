"""The subscription index: which of up to a million filters match which rows of a batch.

Exact: the answer is that of evaluating every filter on every row. What makes it fast:

1. Equal filters are kept once; contradictory ones are never looked at.
2. Each filter has one way in: a value its attribute must equal (the least crowded one), else an interval, else none.
3. The ways in yield candidate (row, filter) pairs; the other constraints are checked on the pairs as arrays.
4. Filters without a way in hang below filters that cover them and are skipped with them.

Adding and removing touch only what belongs to the filter; the sorted parts are merged now and then, and when more than
half of the numbers given out are dead the index renumbers itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from maia.errors import FilterTypeError, NotFoundError, UsageError
from maia.events import AttributeType
from maia.filters import sets
from maia.filters.batches import constraint_mask
from maia.filters.checking import attribute_type
from maia.filters.columns import column_of, keys_of
from maia.filters.covering import satisfiable
from maia.filters.index_access import HashAccess, RangeAccess, Runs
from maia.filters.index_arrays import BatchColumn, Growable, Integers, Truths, ragged
from maia.filters.index_residual import Residuals
from maia.filters.index_scan import ScanForest
from maia.filters.sets import Cuts
from maia.filters.shapes import join_shapes
from maia.filters.tree import ORDER_OPERATORS, Operator, TypedConstraint, TypedFilter
from maia.filters.values import sort_key

MAX_PAIRS = 50_000_000
_STEP = 2_000_000
_COMPACT = 4_096


class Matches(NamedTuple):
    """Matching pairs, ordered by row and then by the order in which the subscriptions were added."""

    rows: Integers
    subscriptions: npt.NDArray[np.object_]


class SubscriptionIndex:
    """Filters of one event type, ready to be matched against batches of its events.

    >>> from maia.filters import compile_filter
    >>> types = {"symbol": "string", "price": "integer"}
    >>> index = SubscriptionIndex(types)
    >>> index.add("cheap", compile_filter("price < 10", types))
    >>> index.add("nokia", compile_filter("symbol = 'Nokia' and price > 5", types))
    >>> batch = pa.RecordBatch.from_pydict({"symbol": ["Nokia", "IBM"], "price": [7, 70]})
    >>> rows, subscriptions = index.match(batch)
    >>> rows.tolist(), subscriptions.tolist()
    ([0, 0], ['cheap', 'nokia'])
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        """Start empty, for events with these attribute types."""
        self._types = {name: attribute_type(name, types) for name in types}
        self._subscriptions: dict[Hashable, tuple[int, int]] = {}
        self._reset()

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, subscription: Hashable) -> bool:
        return subscription in self._subscriptions

    def add(self, subscription: Hashable, filter_: TypedFilter) -> None:
        """Add a subscription.

        Args:
            subscription: Any hashable name that is not in use.
            filter_: Its filter, of the index's types.

        Raises:
            UsageError: The name is in use.
            FilterTypeError: The filter has other attributes or types than the index.
            UncheckedError: The filter is too large to say whether it can match.
        """
        if subscription in self._subscriptions:
            raise UsageError("the subscription is already in the index", code="INDEX_DUPLICATE")
        for constraint in filter_.constraints:
            if self._types.get(constraint.attribute) is not constraint.type:
                raise FilterTypeError(
                    f"attribute `{constraint.attribute}` has another type in this index, or none",
                    code="INDEX_TYPE",
                )
        number = len(self._ids)
        group = self._join(number, filter_)
        self._ids.append(subscription)
        self._subscriptions[subscription] = (number, group)

    def remove(self, subscription: Hashable) -> None:
        """Remove a subscription.

        Args:
            subscription: The name it was added under.

        Raises:
            NotFoundError: There is no such subscription.
        """
        found = self._subscriptions.pop(subscription, None)
        if found is None:
            raise NotFoundError("the subscription is not in the index", code="INDEX_UNKNOWN")
        number, group = found
        members = self._members[group]
        if isinstance(members, dict) and len(members) > 1:
            del members[number]
        else:
            self._drop(group)
        if len(self._ids) > 2 * len(self._subscriptions) + _COMPACT:
            self._compact()

    def match(self, batch: pa.RecordBatch, *, max_pairs: int = MAX_PAIRS) -> Matches:
        """Find all pairs of a row and a subscription whose filter matches it.

        Args:
            batch: Events as rows, attributes as columns of the same names.
            max_pairs: How many pairs the caller is prepared to hold; a batch with more should be split.

        Returns:
            The pairs, exactly those for which `select` is true.

        Raises:
            FilterTypeError: A column's Arrow type does not fit the attribute's type.
            UsageError: There are more than ``max_pairs`` pairs.
        """
        columns = self._columns(batch)
        rows: list[Integers] = []
        numbers: list[Integers] = []
        total = 0
        for row, group in self._groups_of(batch, columns):
            found, members = self._expand(row, group)
            total += len(found)
            if total > max_pairs:
                raise UsageError(f"the batch has more than {max_pairs} matches, split it", code="INDEX_PAIRS")
            rows.append(found)
            numbers.append(members)
        row, number = _joined(rows), _joined(numbers)
        order = np.lexsort((number, row))
        return Matches(rows=row[order], subscriptions=self._ids.view[number[order]])

    def check(self, batch: pa.RecordBatch) -> None:
        """See that the columns of a batch fit the attributes' types, those that no filter names too.

        Raises:
            FilterTypeError: One does not.
        """
        self._columns(batch.slice(0, 0))

    # ---- filters in and out

    def _reset(self) -> None:
        self._ids: Growable[np.object_] = Growable(np.object_)
        self._groups: dict[tuple[TypedConstraint, ...], int] = {}
        self._filters: list[TypedFilter] = []
        self._members: list[int | dict[int, None] | None] = []
        self._single: Growable[np.int64] = Growable(np.int64)
        self._alive: Growable[np.bool_] = Growable(np.bool_)
        self._residuals = Residuals()
        self._hashes: dict[str, HashAccess] = {}
        self._ranges: dict[str, RangeAccess] = {}
        self._ways: list[tuple[str, TypedConstraint] | str | None] = []
        self._scan = ScanForest()

    def _join(self, number: int, filter_: TypedFilter) -> int:
        """Put a subscription into the group of its filter, which is made if it is new."""
        key = filter_.constraints if len(filter_.constraints) == 1 else _canonical(filter_)
        group = self._groups.get(key)
        if group is None:
            possible = satisfiable(filter_)
            group = self._groups[key] = len(self._filters)
            self._filters.append(filter_)
            self._members.append(number)
            self._single.append(number)
            self._alive.append(True)
            self._enter(group, TypedFilter(constraints=key), possible=possible)
            return group
        members = self._members[group]
        if isinstance(members, dict):
            members[number] = None
        elif members is not None:
            self._members[group] = {members: None, number: None}
            self._single[group] = -1
        return group

    def _enter(self, group: int, filter_: TypedFilter, *, possible: bool) -> None:
        """Choose the way in for a new filter and keep the rest for the residual check."""
        if not possible:
            self._alive[group] = False
            self._ways.append(None)
            self._residuals.add(())
            return
        chosen = self._equality(filter_)
        if chosen is not None:
            access = self._hashes.setdefault(chosen.attribute, HashAccess())
            for value in chosen.values:
                access.add(sort_key(value, chosen.type), group)
            self._ways.append((chosen.attribute, chosen))
            self._residuals.add(constraint for constraint in filter_.constraints if constraint is not chosen)
            return
        ranged = _ranged(filter_)
        if ranged is None:
            self._scan.add(group, filter_)
            self._ways.append("scan")
            self._residuals.add(())
            return
        ordered, cuts = ranged
        ranges = self._ranges.setdefault(ordered[0].attribute, RangeAccess(ordered[0].type))
        ranges.add(cuts[0], cuts[-1], group)
        self._ways.append(None)
        self._residuals.add(constraint for constraint in filter_.constraints if constraint not in ordered)

    def _equality(self, filter_: TypedFilter) -> TypedConstraint | None:
        """The equality with the fewest filters behind it; booleans halve at best and are left to better ways."""
        best: tuple[tuple[int, int], TypedConstraint] | None = None
        for constraint in filter_.constraints:
            if constraint.operator not in {Operator.EQUAL, Operator.IN} or constraint.type is AttributeType.BOOLEAN:
                continue
            access = self._hashes.get(constraint.attribute)
            load = sum(access.load(sort_key(value, constraint.type)) for value in constraint.values) if access else 0
            rank = (load + len(constraint.values) - 1, -len(access or ()))
            if best is None or rank < best[0]:
                best = (rank, constraint)
        return None if best is None else best[1]

    def _drop(self, group: int) -> None:
        filter_ = self._filters[group]
        key = filter_.constraints if len(filter_.constraints) == 1 else _canonical(filter_)
        del self._groups[key]
        self._members[group] = None
        self._alive[group] = False
        way = self._ways[group]
        if isinstance(way, tuple):
            attribute, constraint = way
            for value in constraint.values:
                self._hashes[attribute].remove(sort_key(value, constraint.type), group)
        elif way == "scan":
            self._scan.remove(group)

    def _compact(self) -> None:
        """Number everything anew, leaving out what was removed."""
        kept = [(name, self._filters[group]) for name, (_, group) in self._subscriptions.items()]
        self._subscriptions.clear()
        self._reset()
        for name, filter_ in kept:
            self.add(name, filter_)

    # ---- matching

    def _columns(self, batch: pa.RecordBatch) -> dict[str, BatchColumn | None]:
        result: dict[str, BatchColumn | None] = {}
        for name, kind in self._types.items():
            column = None if kind is AttributeType.BINARY else column_of(batch, name)
            result[name] = None if column is None else BatchColumn(keys_of(column, name, kind), kind)
        return result

    def _groups_of(
        self, batch: pa.RecordBatch, columns: Mapping[str, BatchColumn | None]
    ) -> list[tuple[Integers, Integers]]:
        """Matching (row, group) pairs, in pieces small enough to check at once."""
        runs = self._runs(columns)
        result: list[tuple[Integers, Integers]] = []
        if runs:
            load = np.cumsum(np.sum([run.counts for run in runs], axis=0))
            steps = np.searchsorted(load, np.arange(_STEP, load[-1], _STEP), side="left") + 1
            edges = [0, *sorted(set(steps.tolist()) - {0, batch.num_rows}), batch.num_rows]
            for start, stop in pairwise(edges):
                result.append(self._check(runs, start, stop, columns))
        for group, found in self._scan_matches(batch, columns):
            result.append((found, np.full(len(found), group, dtype=np.int64)))
        return result

    def _runs(self, columns: Mapping[str, BatchColumn | None]) -> list[Runs]:
        runs: list[Runs] = []
        accesses: list[tuple[str, HashAccess | RangeAccess]] = [*self._hashes.items(), *self._ranges.items()]
        for attribute, access in accesses:
            column = columns[attribute]
            if column is not None and column.rows:
                runs += access.runs(column)
        return runs

    def _check(
        self, runs: list[Runs], start: int, stop: int, columns: Mapping[str, BatchColumn | None]
    ) -> tuple[Integers, Integers]:
        rows: list[Integers] = []
        groups: list[Integers] = []
        for run in runs:
            counts = run.counts[start:stop]
            groups.append(run.flat[ragged(run.starts[start:stop], counts)])
            rows.append(np.repeat(np.arange(start, stop), counts))
        row, group = _joined(rows), _joined(groups)
        alive = self._alive.view[group]
        if not alive.all():
            row, group = row[alive], group[alive]
        keep = self._residuals.keep(row, group, columns)
        return row[keep], group[keep]

    def _scan_matches(
        self, batch: pa.RecordBatch, columns: Mapping[str, BatchColumn | None]
    ) -> list[tuple[int, Integers]]:
        def mask(constraint: TypedConstraint) -> Truths:
            column = columns[constraint.attribute]
            if column is None:
                return np.zeros(batch.num_rows, dtype=bool)
            found: Truths = np.asarray(constraint_mask(constraint, column.keys))
            return found

        return self._scan.matches(batch.num_rows, mask)

    def _expand(self, rows: Integers, groups: Integers) -> tuple[Integers, Integers]:
        """From groups to the subscriptions that share them."""
        numbers = self._single.view[groups]
        shared = numbers < 0
        if not shared.any():
            return rows, numbers
        distinct, local = np.unique(groups[shared], return_inverse=True)
        members = [np.fromiter(self._shared(group), dtype=np.int64) for group in distinct.tolist()]
        counts = np.array([len(member) for member in members], dtype=np.int64)
        starts = np.cumsum(counts) - counts
        many = _joined(members)[ragged(starts[local], counts[local])]
        return (
            np.concatenate((rows[~shared], np.repeat(rows[shared], counts[local]))),
            np.concatenate((numbers[~shared], many)),
        )

    def _shared(self, group: int) -> dict[int, None]:
        members = self._members[group]
        return members if isinstance(members, dict) else {}


def _canonical(filter_: TypedFilter) -> tuple[TypedConstraint, ...]:
    """The constraints without doubles in an order that does not depend on how they were written."""
    return tuple(sorted(set(filter_.constraints), key=lambda c: (c.attribute, c.operator, str(c.values))))


def _ranged(filter_: TypedFilter) -> tuple[list[TypedConstraint], Cuts] | None:
    """The constraints whose interval is the way in: bounded on both sides if there are such, else the first."""
    best: tuple[int, list[TypedConstraint], Cuts] | None = None
    for constraints in filter_.by_attribute().values():
        ordered = [constraint for constraint in constraints if _is_interval(constraint)]
        if not ordered:
            continue
        cuts = join_shapes(ordered).cuts
        everything = sets.everything(ordered[0].type)
        open_sides = (cuts[0] == everything[0]) + (cuts[-1] == everything[-1])
        if best is None or open_sides < best[0]:
            best = (open_sides, ordered, cuts)
    return None if best is None else best[1:]


def _is_interval(constraint: TypedConstraint) -> bool:
    if constraint.operator in ORDER_OPERATORS or constraint.operator is Operator.PREFIX:
        return True
    return constraint.operator is Operator.EQUAL


def _joined(arrays: list[Integers]) -> Integers:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
