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

from maia.events import AttributeType

MAX_VALUE = 4 << 20
"""The most octets of one text or binary value."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = (date.min.toordinal() - _EPOCH.toordinal(), date.max.toordinal() - _EPOCH.toordinal())
_TICK = timedelta(microseconds=1)
_INSTANTS = (
    (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _TICK,
    (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _TICK,
)
_DECIMAL_LIMIT = 10**38
_WORD = 1 << 64


def foreign_values(column: pa.Array, kind: AttributeType) -> npt.NDArray[np.bool_] | None:
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
    marks: npt.NDArray[np.bool_]
    match kind:
        case AttributeType.FLOAT:
            marks = ~np.isfinite(_cells(column, np.float64))
        case AttributeType.DATE:
            marks = _outside(_cells(column, np.int32), _DAYS)
        case AttributeType.TIMESTAMP:
            marks = _outside(_cells(column, np.int64), _INSTANTS)
        case AttributeType.DECIMAL:
            marks = _too_many_digits(_cells(column, np.uint64, words=2))
        case AttributeType.STRING | AttributeType.BINARY:
            if not len(column) or column.nbytes <= MAX_VALUE:
                return None
            marks = np.asarray(pc.greater(pc.binary_length(column), MAX_VALUE).fill_null(False))
        case _:
            return None
    if not marks.any():
        return None
    if column.null_count:
        marks &= np.asarray(column.is_valid())
    return marks if marks.any() else None


def _cells(column: pa.Array, kind: type[np.generic], *, words: int = 1) -> npt.NDArray[np.generic]:
    """See the numbers of a fixed-width column as they lie in memory, under nulls too."""
    data = column.buffers()[1]
    cells = np.frombuffer(b"" if data is None else data, dtype=kind)
    return cells[column.offset * words : (column.offset + len(column)) * words]


def _outside(cells: npt.NDArray[np.generic], bounds: tuple[int, int]) -> npt.NDArray[np.bool_]:
    marks: npt.NDArray[np.bool_] = (cells < bounds[0]) | (cells > bounds[1])  # type: ignore[operator]
    return marks


def _too_many_digits(words: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """Compare 128-bit numbers with 10^38, by their high words and, where those are equal, by their low words."""
    low, high = words[0::2].astype(np.uint64), words[1::2].astype(np.int64)
    top, rest = divmod(_DECIMAL_LIMIT, _WORD)
    bottom, bottom_rest = divmod(-_DECIMAL_LIMIT, _WORD)
    above = (high > top) | ((high == top) & (low >= np.uint64(rest)))
    below = (high < bottom) | ((high == bottom) & (low <= np.uint64(bottom_rest)))
    marks: npt.NDArray[np.bool_] = above | below
    return marks
