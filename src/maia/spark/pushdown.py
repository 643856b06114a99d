"""Filters that Spark pushes down: rows that a query does not want never leave for the JVM.

They are applied to what the client may see, after the client's own filter and its clauses, so they decide nothing: a
query without pushing gives the same rows. Only comparisons whose meaning is the same here and in Spark are taken; the
others stay with Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

_Test = Callable[[pa.Array, object], pa.Array]
_COMPARISONS: dict[type[Filter], _Test] = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
    StringContains: pc.match_substring,
    StringEndsWith: pc.ends_with,
    StringStartsWith: pc.starts_with,
}


@dataclass(frozen=True, slots=True)
class Pushed:
    """One filter on one column."""

    kind: type[Filter]
    column: str
    value: object = None

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        """Tell for each row whether the filter holds; where it is unknown it does not."""
        column = batch.column(self.column)
        if self.kind is IsNull:
            return column.is_null()
        if self.kind is IsNotNull:
            return column.is_valid()
        if self.kind is In:
            return pc.is_in(column, pa.array(self.value, type=column.type), skip_nulls=True)
        value = self.value if isinstance(self.value, str) else pa.scalar(self.value, type=column.type)
        return _COMPARISONS[self.kind](column, value).fill_null(False)


def take_filters(filters: Sequence[Filter], columns: Iterable[str]) -> tuple[tuple[Pushed, ...], list[Filter]]:
    """Split filters into those that are applied here and those that stay with Spark."""
    known = frozenset(columns)
    taken: list[Pushed] = []
    left: list[Filter] = []
    for item in filters:
        found = _read(item, known)
        if found is None:
            left.append(item)
        else:
            taken.append(found)
    return tuple(taken), left


def keep(batch: pa.RecordBatch, pushed: Sequence[Pushed]) -> pa.RecordBatch:
    """Keep the rows for which every filter holds."""
    for item in pushed:
        batch = batch.filter(item.mask(batch))
    return batch


def _read(item: Filter, known: frozenset[str]) -> Pushed | None:
    path: tuple[str, ...] = getattr(item, "attribute", ())
    if len(path) != 1 or path[0] not in known:
        return None
    if isinstance(item, IsNull | IsNotNull):
        return Pushed(type(item), path[0])
    if isinstance(item, In):
        return Pushed(In, path[0], item.value) if item.value and all(map(_plain, item.value)) else None
    value = getattr(item, "value", None)
    return Pushed(type(item), path[0], value) if type(item) in _COMPARISONS and _plain(value) else None


def _plain(value: object) -> bool:
    """Tell whether a value means the same to Arrow and to Spark; instants and decimals stay with Spark."""
    return isinstance(value, str | int | date) and not isinstance(value, datetime)
