"""Which rows meet a clause's constraint, for a whole batch at once.

A constraint on one attribute is a tag. Where a conjunction of filter constraints says the same, the filter evaluator
answers (there is one evaluator); else the distinct values of the column are put to `permits` one by one. A null, and an
attribute that is not there at all, meets no constraint.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from maia.authority import Tag, permits
from maia.errors import TagError
from maia.events import ARROW_TYPES, AttributeType, Value
from maia.filters import Operator, TypedFilter, from_tag, select, value_atom

Mask = npt.NDArray[np.bool_]
_KINDS = {str(arrow): kind for kind, arrow in ARROW_TYPES.items()}


def kind_of(column: pa.Array) -> AttributeType:
    """Tell the attribute type of a transit column."""
    return _KINDS[str(column.type)]


def column_of(batch: pa.RecordBatch, uid: str) -> pa.Array | None:
    """Find a column by uid, or ``None``."""
    at = batch.schema.get_field_index(uid)
    return None if at < 0 else batch.column(at)


def mask_of(batch: pa.RecordBatch, constraints: tuple[tuple[str, Tag], ...]) -> Mask:
    """Tell for each row whether it meets all constraints.

    Args:
        batch: A transit batch, columns named by uid.
        constraints: Tags by uid.
    """
    mask = np.ones(batch.num_rows, dtype=np.bool_)
    for uid, tag in constraints:
        column = column_of(batch, uid)
        if column is None:
            return np.zeros(batch.num_rows, dtype=np.bool_)
        mask &= _column_mask(batch, uid, column, tag)
    return mask


def forced_value(tag: Tag, kind: AttributeType) -> tuple[Value] | None:
    """Return the one value that a constraint leaves, when it is an equality; it can then be forced."""
    try:
        constraints = from_tag(tag.to_sexp(), "value", kind)
    except TagError:
        return None
    if len(constraints) == 1 and constraints[0].operator is Operator.EQUAL:
        return (constraints[0].value,)
    return None


def _column_mask(batch: pa.RecordBatch, uid: str, column: pa.Array, tag: Tag) -> Mask:
    kind = kind_of(column)
    try:
        constraints = from_tag(tag.to_sexp(), uid, kind)
    except TagError:
        return _by_distinct_values(column, kind, tag)
    return np.asarray(select(TypedFilter(constraints=constraints), batch))


def _by_distinct_values(column: pa.Array, kind: AttributeType, tag: Tag) -> Mask:
    if kind is AttributeType.BINARY:
        return np.zeros(len(column), dtype=np.bool_)
    encoded = column.dictionary_encode()
    fits = np.array(
        [value is not None and permits(tag, value_atom(value, kind))
         for value in encoded.dictionary.to_pylist()] + [False],
        dtype=np.bool_,
    )  # fmt: skip
    positions = np.asarray(encoded.indices.fill_null(len(fits) - 1))
    mask: Mask = fits[positions]
    return mask
