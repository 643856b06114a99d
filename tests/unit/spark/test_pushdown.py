"""Filters that Spark pushes down: the same rows as Spark would keep, or left to Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from maia.spark.pushdown import keep, take_filters

ORACLE = {
    EqualTo: lambda cell, value: cell == value,
    GreaterThan: lambda cell, value: cell > value,
    GreaterThanOrEqual: lambda cell, value: cell >= value,
    LessThan: lambda cell, value: cell < value,
    LessThanOrEqual: lambda cell, value: cell <= value,
    StringContains: lambda cell, value: value in cell,
    StringEndsWith: lambda cell, value: cell.endswith(value),
    StringStartsWith: lambda cell, value: cell.startswith(value),
}
TEXTS = st.text("abA%_.é", max_size=3)


def kept(cells: list[object], kind: pa.DataType, item: Filter) -> list[object]:
    """Push one filter on column `c` and return the cells that stay."""
    pushed, left = take_filters([item], ["c"])
    assert left == []
    batch = pa.RecordBatch.from_arrays([pa.array(cells, type=kind)], names=["c"])
    return keep(batch, pushed).column(0).to_pylist()


@given(st.lists(st.none() | TEXTS), TEXTS, st.sampled_from(list(ORACLE)))
def test_texts_are_kept_as_code_point_order_and_nulls_say(
    cells: list[str | None], value: str, kind: type[Filter]
) -> None:
    """A null is neither equal nor unequal; pattern signs are letters like others."""
    expected = [cell for cell in cells if cell is not None and ORACLE[kind](cell, value)]
    assert kept(cells, pa.string(), kind(("c",), value)) == expected


@given(st.lists(st.none() | st.integers(-5, 5)), st.integers(-5, 5), st.sampled_from(list(ORACLE)[:5]))
def test_integers_are_kept_as_arithmetic_says(cells: list[int | None], value: int, kind: type[Filter]) -> None:
    """Comparisons of numbers, nulls apart."""
    expected = [cell for cell in cells if cell is not None and ORACLE[kind](cell, value)]
    assert kept(cells, pa.int64(), kind(("c",), value)) == expected


@given(st.lists(st.none() | st.integers(-3, 3)), st.lists(st.integers(-3, 3), min_size=1).map(tuple))
def test_membership_and_nulls(cells: list[int | None], values: tuple[int, ...]) -> None:
    """`IN`, `IS NULL` and `IS NOT NULL`."""
    assert kept(cells, pa.int64(), In(("c",), values)) == [cell for cell in cells if cell in values]
    assert kept(cells, pa.int64(), IsNull(("c",))) == [cell for cell in cells if cell is None]
    assert kept(cells, pa.int64(), IsNotNull(("c",))) == [cell for cell in cells if cell is not None]


LEFT = {
    "an instant, whose zone is the session's": EqualTo(("c",), datetime(2026, 1, 1, tzinfo=UTC)),
    "a decimal, whose scale may differ": EqualTo(("c",), Decimal("1.0")),
    "a negation": Not(EqualTo(("c",), 1)),
    "a column that is not shown": EqualTo(("d",), 1),
    "a part of a struct": EqualTo(("c", "x"), 1),
    "membership in nothing": In(("c",), ()),
}


@pytest.mark.parametrize("item", LEFT.values(), ids=LEFT.keys())
def test_what_may_mean_something_else_stays_with_spark(item: Filter) -> None:
    """Pushing is an offer; leaving a filter costs time, never rows."""
    assert take_filters([item], ["c"]) == ((), [item])


def test_dates_are_pushed() -> None:
    """A date has no zone."""
    days = [date(2026, 1, 1), None, date(2026, 1, 3)]
    assert kept(days, pa.date32(), GreaterThan(("c",), date(2026, 1, 2))) == [date(2026, 1, 3)]
