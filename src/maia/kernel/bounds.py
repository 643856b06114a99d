"""Access-control filters where they meet sessions and data: each clause is held to its own bounds.

Rules kept here:

- an advertisement or subscription counts under the clauses whose bounds allow it, and no others; when none is left it
  is refused before anything is remembered. Clauses add up and are never mixed: what one of them bounds, another does
  not loosen, and it opens nothing for a filter that it does not allow;
- a publication is what would be sealed under a clause: closed attributes are null and forced values set before its
  bounds look at the row;
- whoever announces what it will publish is held to its word: its advertisement is a strict lower bound on its rows;
- of blocks that cannot be opened nothing is known, and they do not count against an origin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa

from maia.errors import DeniedError
from maia.filters import Bound, BoundKind, Side, TypedConstraint, TypedFilter, all_allow, select
from maia.kernel.clauses import Clause
from maia.kernel.rows import Mask, column_of, kind_of

OUT_OF_BOUNDS = "FILTER_OUT_OF_BOUNDS"
ROW_OUT_OF_BOUNDS = "ROW_OUT_OF_BOUNDS"


def within_bounds(clauses: Iterable[Clause], wanted: TypedFilter, side: Side) -> tuple[Clause, ...]:
    """Keep the clauses whose bounds allow an advertisement or a subscription, over uids."""
    return tuple(clause for clause in clauses if all_allow(clause.cells.bounds, wanted, side=side))


def require_bounds(clauses: Iterable[Clause], wanted: TypedFilter, side: Side) -> tuple[Clause, ...]:
    """Keep the clauses whose bounds allow it.

    Raises:
        DeniedError: None does: ``FILTER_OUT_OF_BOUNDS``.
    """
    held = tuple(clauses)
    found = within_bounds(held, wanted, side)
    if held and not found:
        what = "a subscription" if side is Side.SUBSCRIBE else "an advertisement"
        raise DeniedError(f"{what} that the bounds of the right do not allow", code=OUT_OF_BOUNDS)
    return found


def advertised(clauses: Iterable[Clause], wanted: TypedFilter) -> tuple[Clause, ...]:
    """Hold the rows of a publisher to its own advertisement as well."""
    word = Bound(filter=wanted, kind=BoundKind.STRICT_LOWER)
    return tuple(
        replace(clause, cells=replace(clause.cells, bounds=(*clause.cells.bounds, word))) for clause in clauses
    )


def bounds_mask(batch: pa.RecordBatch, bounds: Iterable[Bound], *, hidden: Collection[str] | None = ()) -> Mask:
    """Tell for each row whether all bounds allow it as a publication.

    Args:
        batch: A transit batch, columns named by uid.
        bounds: Of one clause.
        hidden: The uids of blocks that cannot be opened here; ``None`` when that may be any.
    """
    mask = np.ones(batch.num_rows, dtype=np.bool_)
    for bound in bounds:
        mask &= _bound_mask(batch, bound, hidden)
    return mask


def _bound_mask(batch: pa.RecordBatch, bound: Bound, hidden: Collection[str] | None) -> Mask:
    named = bound.filter.by_attribute()
    seen = {uid: found for uid, found in named.items() if hidden is not None and uid not in hidden}
    mask = np.ones(batch.num_rows, dtype=np.bool_)
    if bound.kind in (BoundKind.UPPER, BoundKind.STRICT_UPPER):
        for uid, constraints in seen.items():
            for constraint in constraints:
                mask &= _holds(batch, uid, constraint)
    else:
        met = np.full(batch.num_rows, len(seen) < len(named), dtype=np.bool_)
        for uid, constraints in seen.items():
            covered = np.logical_or.reduce([_holds(batch, uid, constraint) for constraint in constraints])
            mask &= covered | ~_present(batch, uid)
            met |= covered
        if bound.kind is BoundKind.LOWER:
            mask &= met
    if bound.kind in (BoundKind.STRICT_UPPER, BoundKind.STRICT_LOWER):
        for uid in batch.schema.names:
            if uid not in named:
                mask &= ~_present(batch, uid)
    return mask


def _present(batch: pa.RecordBatch, uid: str) -> Mask:
    column = column_of(batch, uid)
    return np.zeros(batch.num_rows, dtype=np.bool_) if column is None else np.asarray(column.is_valid())


def _holds(batch: pa.RecordBatch, uid: str, constraint: TypedConstraint) -> Mask:
    column = column_of(batch, uid)
    if column is None or kind_of(column) is not constraint.type:
        return np.zeros(batch.num_rows, dtype=np.bool_)
    return np.asarray(select(TypedFilter(constraints=(constraint,)), batch))
