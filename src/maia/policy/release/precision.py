"""Which types of values are coarsened to what, and what type the result has."""

from __future__ import annotations

from maia.events import ArrayOf, AttributeType, StructOf, ValueType, decimal_of, decimal_size
from maia.policy.release.rules import Coarsening, Precision

_TEXTS = {
    Precision.MONTH: (AttributeType.DATE, AttributeType.TIMESTAMP),
    Precision.YEAR: (AttributeType.DATE, AttributeType.TIMESTAMP),
    Precision.BUCKET: (AttributeType.INTEGER, AttributeType.FLOAT, AttributeType.DECIMAL),
    Precision.FIRST: (AttributeType.STRING,),
    Precision.LAST: (AttributeType.STRING,),
}


def coarsened_type(coarsening: Coarsening, kind: ValueType) -> ValueType | None:
    """Give the type of a value when it is coarsened; nothing when it is not coarsened so, or would lose nothing.

    >>> coarsened_type(Coarsening(Precision.MONTH), AttributeType.DATE).value
    'string'
    >>> coarsened_type(Coarsening(Precision.MONTH), AttributeType.INTEGER) is None
    True
    """
    if isinstance(kind, ArrayOf | StructOf):
        return None
    if coarsening.precision is not Precision.DECIMALS:
        return AttributeType.STRING if kind.base in _TEXTS[coarsening.precision] else None
    if kind.base is AttributeType.DECIMAL:
        digits, scale = decimal_size(kind)
        left = coarsening.size or 0
        # Rounding up may need one digit more before the point.
        return decimal_of(digits - scale + 1 + left, left) if left < scale else None
    return kind if kind in (AttributeType.FLOAT, AttributeType.STRING) else None
