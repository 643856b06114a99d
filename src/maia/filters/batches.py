"""The same meaning as `matches`, for a whole Arrow record batch at once.

`select` and `matches` are one evaluator in two shapes: for every filter and every event they agree, which the tests
hold on a million random pairs. Spark, the gateway and the broker call these two and nothing else.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maia.events import AttributeType
from maia.filters.columns import column_of, keys_of
from maia.filters.tree import Operator, TypedConstraint, TypedFilter
from maia.filters.values import Key, sort_key

_COMPARE = {
    Operator.EQUAL: pc.equal,
    Operator.NOT_EQUAL: pc.not_equal,
    Operator.LESS: pc.less,
    Operator.GREATER: pc.greater,
    Operator.AT_MOST: pc.less_equal,
    Operator.AT_LEAST: pc.greater_equal,
}
_PATTERN = {
    Operator.PREFIX: pc.starts_with,
    Operator.SUFFIX: pc.ends_with,
    Operator.CONTAINS: pc.match_substring,
}


def select(filter_: TypedFilter, batch: pa.RecordBatch) -> pa.BooleanArray:
    """Say for each row of a batch whether it matches the filter.

    >>> from maia.filters import compile_filter
    >>> batch = pa.RecordBatch.from_pydict({"x": [1, None, 7]})
    >>> select(compile_filter("x != 1", {"x": "integer"}), batch).to_pylist()
    [False, False, True]

    Args:
        filter_: The typed filter.
        batch: Events as rows, attributes as columns of the same names. A missing column is null in every row.

    Returns:
        One truth value per row, never null.

    Raises:
        FilterTypeError: A column's Arrow type does not fit the attribute's type, or two columns share a name.
    """
    mask: pa.BooleanArray | None = None
    columns: dict[str, pa.Array | None] = {}
    for constraint in filter_.constraints:
        name = constraint.attribute
        if name not in columns:
            column = column_of(batch, name)
            columns[name] = None if column is None else keys_of(column, name, constraint.type)
        keys = columns[name]
        if keys is None:
            return _all(batch, value=False)
        held = constraint_mask(constraint, keys)
        mask = held if mask is None else pc.and_(mask, held)
    return _all(batch, value=True) if mask is None else mask


def constraint_mask(constraint: TypedConstraint, keys: pa.Array) -> pa.BooleanArray:
    """Say for each key of a column whether one constraint covers it; null keys are covered by nothing."""
    operator = constraint.operator
    if operator is Operator.ANY:
        return keys.is_valid()
    operands = [sort_key(value, constraint.type) for value in constraint.values]
    if constraint.type is AttributeType.DECIMAL:
        return _decimal_mask(operator, keys, operands)
    if operator is Operator.IN:
        wanted = pa.array(operands, type=keys.type) if keys.type != pa.bool_() else pa.array(map(bool, operands))
        return pc.fill_null(pc.and_(pc.is_in(keys, value_set=wanted), keys.is_valid()), False)
    if operator in _PATTERN:
        return pc.fill_null(_PATTERN[operator](keys, pattern=str(operands[0])), False)
    operand = bool(operands[0]) if keys.type == pa.bool_() else operands[0]
    return pc.fill_null(_COMPARE[operator](keys, pa.scalar(operand, keys.type)), False)


def _decimal_mask(operator: Operator, keys: pa.Array, operands: list[Key]) -> pa.BooleanArray:
    """Compare decimals exactly, whatever the column's scale: the operand is moved to the column's grid first."""
    masks = [_decimal_compare(operator, keys, operand) for operand in operands if isinstance(operand, Decimal)]
    result = masks[0]
    for mask in masks[1:]:
        result = pc.or_(result, mask)
    return pc.and_(result, keys.is_valid())


def _decimal_compare(operator: Operator, keys: pa.Array, operand: Decimal) -> pa.BooleanArray:
    precision, scale = keys.type.precision, keys.type.scale
    sign, digits, exponent = operand.as_tuple()
    if not isinstance(exponent, int):
        return _constant(keys, value=False)
    # The operand as a fraction over the column's grid: whole steps below it, and whether it lies on a step.
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    shift = exponent + scale
    steps, rest = (unscaled * 10**shift, 0) if shift >= 0 else divmod(unscaled, 10**-shift)
    if operator in {Operator.EQUAL, Operator.IN, Operator.NOT_EQUAL} and rest:
        return _constant(keys, value=operator is Operator.NOT_EQUAL)
    if rest:
        # Between two steps: below it is at most the lower step, above it is more than the lower step.
        below = operator in {Operator.LESS, Operator.AT_MOST}
        operator = Operator.AT_MOST if below else Operator.GREATER
    largest = 10**precision - 1
    if not -largest <= steps <= largest:
        above = steps > largest
        truth = {
            Operator.LESS: above,
            Operator.AT_MOST: above,
            Operator.GREATER: not above,
            Operator.AT_LEAST: not above,
            Operator.NOT_EQUAL: True,
        }
        return _constant(keys, value=truth.get(operator, False))
    step = Decimal(f"{steps}E{-scale}")
    compare = _COMPARE[Operator.EQUAL if operator is Operator.IN else operator]
    return pc.fill_null(compare(keys, pa.scalar(step, keys.type)), False)


def _constant(keys: pa.Array, *, value: bool) -> pa.BooleanArray:
    return pa.array(np.full(len(keys), value))


def _all(batch: pa.RecordBatch, *, value: bool) -> pa.BooleanArray:
    return pa.array(np.full(batch.num_rows, value))
