"""Frames of pandas as Arrow tables, with what pandas cannot say put right, and the times of tables before Spark.

Rules kept here: NaN, NaT and None are null, as pandas means them; a column of whole numbers that pandas holds as
floats, because a cell is missing, is one of integers again, when the attribute is one and every number is exact.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from maia.errors import MalformedError
from maia.events import AttributeType, EventType, in_zone, is_naive, parse_offset

_EXACT = 1 << 53
"""Up to here every whole number is a float of its own."""


def from_pandas(rows: pd.DataFrame, event_type: EventType) -> pa.Table:
    """Make a table of a frame whose columns are named as the attributes of a version.

    Raises:
        MalformedError: A column holds values of several kinds: ``INPUT_TYPE``.
    """
    integers = {item.name for item in event_type.attributes if item.type is AttributeType.INTEGER}
    columns = []
    for place, name in enumerate(rows.columns):
        try:
            column = pa.Array.from_pandas(rows.iloc[:, place])
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise MalformedError(f"the column `{name}` holds values of several kinds", code="INPUT_TYPE") from error
        columns.append(_whole(column) if name in integers and pa.types.is_floating(column.type) else column)
    return pa.Table.from_arrays(columns, names=[str(name) for name in rows.columns])


def with_zones(rows: pa.Table, naive: str | None) -> pa.Table:
    """Make instants of the times of a table that have no zone, before Spark gives them that of its session.

    Raises:
        MalformedError: There are such times, and nobody says their zone: ``TIME_WITHOUT_ZONE``.
    """
    if naive is not None:
        ahead = parse_offset(naive)
        batches = [in_zone(batch, ahead) for batch in rows.to_batches()]
        return pa.Table.from_batches(batches) if batches else rows
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if is_naive(column.type) and column.null_count < len(column):
            message = f'column `{name}` holds times without a zone; say it with `naive_timestamps`, such as "UTC"'
            raise MalformedError(message, code="TIME_WITHOUT_ZONE")
    return rows


def _whole(column: pa.Array) -> pa.Array:
    """Give floats as the integers that they are; unchanged when one is none, so that its row is refused."""
    exact = pc.less_equal(pc.abs(column), float(_EXACT))
    if not pc.all(pc.and_(exact, pc.equal(pc.floor(column), column)), min_count=0).as_py():
        return column
    return column.cast(pa.int64())
