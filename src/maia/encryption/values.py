"""Which values of a column its attribute type does not have, for whole columns at once.

Arrow holds more than Maia's types do: NaN and the infinities, days and instants outside the years 1 to 9999, decimals
of more than 38 digits, texts of any size. Such a value would pass every cast and then stop the first reader that looks
at it, so it is refused where events come in, and again where a parcel is opened.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from maia.events import ArrayOf, AttributeType, StructOf, ValueType, decimal_size

MAX_VALUE = 4 << 20
"""The most octets of one text, binary value, array or struct."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = (date.min.toordinal() - _EPOCH.toordinal(), date.max.toordinal() - _EPOCH.toordinal())
_TICK = timedelta(microseconds=1)
_INSTANTS = (
    (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _TICK,
    (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _TICK,
)
_WORD = 1 << 64


def foreign_values(column: pa.Array, kind: ValueType) -> npt.NDArray[np.bool_] | None:
    """Mark the rows whose value does not belong to the type; nulls belong to every type.

    Args:
        column: Of exactly the Arrow type of ``kind``; texts are known to be UTF-8.
        kind: The attribute's type.

    Returns:
        A truth value per row, or ``None`` when there is no such value, which is the usual and cheap answer.

    >>> foreign_values(pa.array([1.5, None, float("nan")]), AttributeType.FLOAT).tolist()
    [False, False, True]
    >>> foreign_values(pa.array([1, 2]), AttributeType.INTEGER) is None
    True
    """
    if isinstance(kind, ArrayOf | StructOf):
        return _foreign_inside(column, kind)
    marks: npt.NDArray[np.bool_]
    match kind.base:
        case AttributeType.FLOAT:
            marks = ~np.isfinite(_cells(column, np.float64))
        case AttributeType.DATE:
            marks = _outside(_cells(column, np.int32), _DAYS)
        case AttributeType.TIMESTAMP:
            marks = _outside(_cells(column, np.int64), _INSTANTS)
        case AttributeType.DECIMAL:
            marks = _too_many_digits(_cells(column, np.uint64, words=2), 10 ** decimal_size(kind)[0])
        case AttributeType.STRING | AttributeType.BINARY:
            return oversized(column, kind)
        case _:
            return None
    if not marks.any():
        return None
    if column.null_count:
        marks &= np.asarray(column.is_valid())
    return marks if marks.any() else None


def oversized(column: pa.Array, kind: ValueType) -> npt.NDArray[np.bool_] | None:
    """Mark the rows whose value has more octets than one value may have; ``None`` when there is none.

    >>> oversized(pa.array(["", "x" * (MAX_VALUE + 1)]), AttributeType.STRING).tolist()
    [False, True]
    """
    if not len(column) or column.nbytes <= MAX_VALUE:
        return None
    marks = _sizes(column, kind) > MAX_VALUE
    return marks if marks.any() else None


def _sizes(column: pa.Array, kind: ValueType) -> npt.NDArray[np.int64]:
    """Count the octets of each value, those of its parts included."""
    if isinstance(kind, ArrayOf):
        ends = np.concatenate(([0], np.cumsum(_sizes(column.flatten(), kind.element) + 1)))
        sizes: npt.NDArray[np.int64] = np.diff(ends[_ends(column)])
        return sizes
    if isinstance(kind, StructOf):
        total = np.zeros(len(column), dtype=np.int64)
        for part, (_, inside) in zip(column.flatten(), kind.fields, strict=True):
            total += _sizes(part, inside)
        return total
    if kind.base in (AttributeType.STRING, AttributeType.BINARY):
        lengths: npt.NDArray[np.int64] = np.asarray(pc.fill_null(pc.binary_length(column), 0)).astype(np.int64)
        return lengths
    return np.full(len(column), 8, dtype=np.int64)


def _ends(column: pa.Array) -> npt.NDArray[np.int64]:
    """Tell where the elements of each array start in `flatten`, and the end of the last."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def _foreign_inside(column: pa.Array, kind: ArrayOf | StructOf) -> npt.NDArray[np.bool_] | None:
    """Mark the arrays and structs that are too large, or of which a part does not belong to its type."""
    found = [oversized(column, kind)]
    if isinstance(kind, ArrayOf):
        inside = foreign_values(column.flatten(), kind.element)
        if inside is not None:
            found.append(np.diff(np.concatenate(([0], np.cumsum(inside)))[_ends(column)]) > 0)
    else:
        parts = zip(column.flatten(), kind.fields, strict=True)
        found += [foreign_values(part, inside) for part, (_, inside) in parts]
    marks = [item for item in found if item is not None]
    return np.logical_or.reduce(marks) if marks else None


def _cells(column: pa.Array, kind: type[np.generic], *, words: int = 1) -> npt.NDArray[np.generic]:
    """See the numbers of a fixed-width column as they lie in memory, under nulls too."""
    data = column.buffers()[1]
    cells = np.frombuffer(b"" if data is None else data, dtype=kind)
    return cells[column.offset * words : (column.offset + len(column)) * words]


def _outside(cells: npt.NDArray[np.generic], bounds: tuple[int, int]) -> npt.NDArray[np.bool_]:
    marks: npt.NDArray[np.bool_] = (cells < bounds[0]) | (cells > bounds[1])  # type: ignore[operator]
    return marks


def _too_many_digits(words: npt.NDArray[np.generic], limit: int) -> npt.NDArray[np.bool_]:
    """Compare 128-bit numbers with a limit, by their high words and, where those are equal, by their low words."""
    low, high = words[0::2].astype(np.uint64), words[1::2].astype(np.int64)
    top, rest = divmod(limit, _WORD)
    bottom, bottom_rest = divmod(-limit, _WORD)
    above = (high > top) | ((high == top) & (low >= np.uint64(rest)))
    below = (high < bottom) | ((high == bottom) & (low <= np.uint64(bottom_rest)))
    marks: npt.NDArray[np.bool_] = above | below
    return marks
