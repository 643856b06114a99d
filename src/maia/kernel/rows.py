"""Which rows meet a clause's constraint, for a whole batch at once, and how cells are taken away.

A constraint on one attribute is a tag. Where a conjunction of filter constraints says the same, the filter evaluator
answers (there is one evaluator); else the distinct values of the column are put to `permits` one by one. A null, and an
attribute that is not there at all, meets no constraint.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from maia.authority import Tag, permits, splits
from maia.encoding import Sexp
from maia.errors import TagError, UsageError
from maia.events import AttributeType, ValueType, arrow_type, value_type_of
from maia.filters import Operator, TypedFilter, from_tag, select, value_atom

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


def kind_of(column: pa.Array) -> ValueType:
    """Tell the attribute type of a transit column.

    Raises:
        UsageError: No attribute type has such columns.
    """
    kind = value_type_of(column.type)
    if kind is None:
        raise UsageError("a column that is none of a transit batch")
    return kind


def column_of(batch: pa.RecordBatch, uid: str) -> pa.Array | None:
    """Find a column by uid, or ``None``."""
    at = batch.schema.get_field_index(uid)
    return None if at < 0 else batch.column(at)


def batch_of(columns: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    """Put columns together; a batch without columns still knows how many rows it has."""
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.nulls(rows, pa.struct([]))).replace_schema_metadata(schema.metadata)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def pick(batch: pa.RecordBatch, uids: Collection[str]) -> pa.RecordBatch:
    """Pick columns, in the order of the batch."""
    if len(uids) == batch.num_columns:
        return batch
    kept = [item for item in batch.schema if item.name in uids]
    columns = [batch.column(item.name) for item in kept]
    return batch_of(columns, pa.schema(kept, metadata=batch.schema.metadata), batch.num_rows)


def without(batch: pa.RecordBatch, uids: Collection[str]) -> pa.RecordBatch:
    """Leave columns out."""
    return pick(batch, [name for name in batch.schema.names if name not in uids])


def exchange(batch: pa.RecordBatch, part: pa.RecordBatch) -> pa.RecordBatch:
    """Put other columns in the places of those with the same names."""
    names = set(part.schema.names)
    columns = [part.column(name) if name in names else batch.column(name) for name in batch.schema.names]
    return batch_of(columns, batch.schema, batch.num_rows)


def take_visible(columns: list[pa.Array], visible: Mask, rows: Positions | None) -> list[pa.Array]:
    """Pick rows of columns that are seen and hidden together, and leave nothing of the cells that are hidden.

    Args:
        columns: True values, at least one column.
        visible: For each row, whether its cells may be seen.
        rows: The rows to pick; ``None`` for all.
    """
    shown = visible if rows is None else visible[rows]
    everything = bool(shown.all())
    if everything and rows is None:
        return columns
    if not everything and not shown.any():
        return [pa.nulls(len(shown), column.type) for column in columns]
    positions = np.arange(len(shown), dtype=np.int64) if rows is None else rows
    # SECURITY: taking a null writes no octets; `if_else` would keep the hidden value under it, and Arrow would ship it.
    picked = pa.array(positions) if everything else pa.array(positions, mask=~shown)
    together = pa.RecordBatch.from_arrays(columns, names=[str(at) for at in range(len(columns))])
    return list(together.take(picked).columns)


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


def forced_value(tag: Tag, kind: ValueType) -> pa.Scalar | None:
    """Return the one value that a constraint leaves, when it is an equality with a value of the type.

    ``None`` means that nothing can be forced: rows that do not meet the constraint by themselves are dropped.
    """
    try:
        constraints = from_tag(_pointed(tag.to_sexp()), "value", kind.base)
    except TagError:
        return None
    if len(constraints) != 1 or constraints[0].operator is not Operator.EQUAL:
        return None
    try:
        return pa.scalar(constraints[0].value, type=arrow_type(kind))
    except (pa.ArrowException, OverflowError, ValueError):
        return None  # finer or larger than any value of the type, so no row meets it


def _pointed(tag: Sexp) -> Sexp:
    """Write an equality with a whole number the way filters write decimals; certificates may leave the point out."""
    match tag:
        case (b"*", b"range", b"decimal", b"ge", bytes() as low, b"le", bytes() as high) if low == high:
            number = low if b"." in low else low + b".0"
            return (b"*", b"range", b"decimal", b"ge", number, b"le", number)
        case _:
            return tag


def _column_mask(batch: pa.RecordBatch, uid: str, column: pa.Array, tag: Tag) -> Mask:
    kind = kind_of(column).base
    if kind is AttributeType.BINARY:
        # Octets, arrays and structs have no form in tags: the most that can be asked of them is to be there.
        anything = tag.to_sexp() == (b"*",)
        return np.asarray(column.is_valid()) if anything else np.zeros(len(column), dtype=np.bool_)
    try:
        constraints = from_tag(tag.to_sexp(), uid, kind)
    except TagError:
        return _by_distinct_values(column, kind, tag)
    return np.asarray(select(TypedFilter(constraints=constraints), batch))


def _by_distinct_values(column: pa.Array, kind: AttributeType, tag: Tag) -> Mask:
    encoded = column.dictionary_encode()
    plain, rest = splits(tag)

    def fit(value: object) -> bool:
        if value is None:
            return False
        atom = value_atom(value, kind)  # type: ignore[arg-type] # of this column
        return atom in plain or permits(rest, atom)

    fits = np.array([fit(value) for value in encoded.dictionary.to_pylist()] + [False], dtype=np.bool_)
    positions = np.asarray(encoded.indices.fill_null(len(fits) - 1))
    mask: Mask = fits[positions]
    return mask
