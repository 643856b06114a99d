"""Arrow columns as keys: every column of a type in one representation, with what is outside the domain made null.

A key column is int64 for integers, dates (days since 1970) and timestamps (microseconds since 1970 UTC), float64 for
floats, bool for booleans, string or large_string for strings, and decimal128 or decimal256 for decimals. NaN, the
infinities, days and instants outside the years 1 to 9999, and instants finer than a microsecond become null, so they
match nothing, as in `matches`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maia.errors import FilterTypeError
from maia.events import AttributeType
from maia.filters.values import DATE_MAX, DATE_MIN, TIMESTAMP_MAX, TIMESTAMP_MIN

_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def column_of(batch: pa.RecordBatch, attribute: str) -> pa.Array | None:
    """The column of that exact name; None when there is none.

    Raises:
        FilterTypeError: The batch has two columns of that name, so neither can be meant.
    """
    found = batch.schema.get_all_field_indices(attribute)
    if len(found) > 1:
        raise FilterTypeError(f"the batch has two columns `{attribute}`", code="BATCH_TWO_COLUMNS")
    return batch.column(found[0]) if found else None


def keys_of(column: pa.Array, attribute: str, kind: AttributeType) -> pa.Array:
    """The column as keys of the type.

    Raises:
        FilterTypeError: The column's Arrow type cannot hold values of the attribute's type exactly.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    given = column.type
    if pa.types.is_null(given):
        return pa.nulls(len(column), key_type(kind))
    match kind:
        case AttributeType.INTEGER if pa.types.is_integer(given) and given != pa.uint64():
            return column.cast(pa.int64())
        case AttributeType.FLOAT if given in {pa.float32(), pa.float64()}:
            # Adding zero turns -0.0 into 0.0, which `is_in` would otherwise tell apart.
            values = pc.add(column.cast(pa.float64()), 0.0)
            return pc.if_else(pc.is_finite(values), values, pa.scalar(None, pa.float64()))
        case AttributeType.STRING if pa.types.is_string(given) or pa.types.is_large_string(given):
            return column
        case AttributeType.STRING if pa.types.is_string_view(given):
            return column.cast(pa.large_string())
        case AttributeType.BOOLEAN if pa.types.is_boolean(given):
            return column
        case AttributeType.DECIMAL if pa.types.is_decimal(given) and given.scale >= 0:
            wide = pa.types.is_decimal128(given) or pa.types.is_decimal256(given)
            return column if wide else column.cast(pa.decimal128(given.precision, given.scale))
        case AttributeType.DATE if given == pa.date32():
            return _within(column.cast(pa.int32()).cast(pa.int64()), DATE_MIN, DATE_MAX)
        case AttributeType.TIMESTAMP if pa.types.is_timestamp(given) and given.tz is not None:
            return _microseconds(column.cast(pa.int64()), _TICKS[given.unit])
        case _:
            raise FilterTypeError(
                f"a column of Arrow type `{given}` cannot be attribute `{attribute}` of type {kind.value}",
                code="BATCH_COLUMN_TYPE",
            )


def key_type(kind: AttributeType) -> pa.DataType:
    """The Arrow type of a column of keys where there are no values to tell."""
    match kind:
        case AttributeType.FLOAT:
            return pa.float64()
        case AttributeType.STRING:
            return pa.string()
        case AttributeType.BOOLEAN:
            return pa.bool_()
        case AttributeType.DECIMAL:
            return pa.decimal128(38, 0)
        case _:
            return pa.int64()


def validity(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows have a value."""
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.asarray(column.is_valid())
    return found


def _within(values: pa.Array, low: int, high: int) -> pa.Array:
    inside = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
    return pc.if_else(inside, values, pa.scalar(None, pa.int64()))


def _microseconds(values: pa.Array, ticks: int) -> pa.Array:
    """Instants of any unit as microseconds, exactly; what does not fit becomes null."""
    if ticks <= _TICKS["us"]:
        factor = _TICKS["us"] // ticks
        return pc.multiply(_within(values, -(-TIMESTAMP_MIN // factor), TIMESTAMP_MAX // factor), factor)
    factor = ticks // _TICKS["us"]
    whole = pc.divide(values, factor)
    exact = pc.equal(pc.multiply(whole, factor), values)
    return _within(pc.if_else(exact, whole, pa.scalar(None, pa.int64())), TIMESTAMP_MIN, TIMESTAMP_MAX)
