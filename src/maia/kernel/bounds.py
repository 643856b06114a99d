"""Access-control filters where they meet sessions and data: each clause is held to its own bounds.

Rules kept here:

- an advertisement or subscription counts under the clauses whose bounds allow it, and no others; when none is left it
  is refused before anything is remembered. Clauses add up and are never mixed: what one of them bounds, another does
  not loosen, and it opens nothing for a filter that it does not allow;
- a publication is what would be sealed under a clause: closed attributes are null and forced values set before its
  bounds look at the row;
- whoever announces what it will publish is held to its word: its advertisement is a strict lower bound on its rows;
- of a child's events, a clause on each type of the lineage bounds that type's attributes: the columns of a row, and
  what an advertisement says of them. A subscription is one filter, which chooses the rows: it is held as a whole to the
  bounds of each clause. Without a clause on the type itself nothing is left; where none is on a parent, what is
  inherited stays closed (`descent`);
- of blocks that cannot be opened nothing is known, and they do not count against an origin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from maia.errors import DeniedError
from maia.filters import Bound, BoundKind, Side, TypedConstraint, TypedFilter, all_allow, select
from maia.kernel.clauses import Clause
from maia.kernel.descent import Holder
from maia.kernel.rows import Mask, column_of, kind_of

OUT_OF_BOUNDS = "FILTER_OUT_OF_BOUNDS"
ROW_OUT_OF_BOUNDS = "ROW_OUT_OF_BOUNDS"


def within_bounds(clauses: Iterable[Clause], wanted: TypedFilter, side: Side) -> tuple[Clause, ...]:
    """Keep the clauses whose bounds allow an advertisement or a subscription, over uids; none without one of the type.

    A right on a parent alone is no right on the child.
    """
    found = tuple(clause for clause in clauses if all_allow(clause.cells.bounds, wanted, side=side))
    return found if any(clause.holder is None for clause in found) else ()


def require_bounds(clauses: Iterable[Clause], wanted: TypedFilter, side: Side) -> tuple[Clause, ...]:
    """Keep the clauses whose bounds allow it.

    Raises:
        DeniedError: None does: ``FILTER_OUT_OF_BOUNDS``.
    """
    held = tuple(clauses)
    found = within_bounds(held, wanted, side)
    if held and not found:
        raise _out_of_bounds(side)
    return found


def announce(
    clauses: Iterable[Clause], wanted: TypedFilter, parts: Mapping[Holder, Collection[str]]
) -> tuple[Clause, ...]:
    """Keep the clauses whose bounds allow an advertisement, and hold the rows of its publisher to it as well.

    Args:
        clauses: Of the publisher, on each type of the lineage.
        wanted: What it says that it will publish.
        parts: The attributes of each type of the lineage.

    Raises:
        DeniedError: No clause on the type itself allows it: ``FILTER_OUT_OF_BOUNDS``.
    """
    held, found = tuple(clauses), tuple[Clause, ...]()
    for holder, uids in parts.items():
        part = _said_of(wanted, uids)
        mine = [clause for clause in held if clause.holder == holder]
        allowed = [clause for clause in mine if all_allow(clause.cells.bounds, part, side=Side.ADVERTISE)]
        if holder is None and not allowed:
            raise _out_of_bounds(Side.ADVERTISE)
        found += _advertised(allowed, part)
    return found


def _said_of(wanted: TypedFilter, uids: Collection[str]) -> TypedFilter:
    """Keep of a filter over uids what it says of some attributes."""
    return TypedFilter(constraints=tuple(item for item in wanted.constraints if item.attribute in uids))


def _advertised(clauses: Iterable[Clause], wanted: TypedFilter) -> tuple[Clause, ...]:
    """Hold the rows of a publisher to its own advertisement as well."""
    word = Bound(filter=wanted, kind=BoundKind.STRICT_LOWER)
    return tuple(
        replace(clause, cells=replace(clause.cells, bounds=(*clause.cells.bounds, word))) for clause in clauses
    )


def _out_of_bounds(side: Side) -> DeniedError:
    what = "a subscription" if side is Side.SUBSCRIBE else "an advertisement"
    return DeniedError(f"{what} that the bounds of the right do not allow", code=OUT_OF_BOUNDS)


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
    if column is None or kind_of(column).base is not constraint.type:
        return np.zeros(batch.num_rows, dtype=np.bool_)
    return np.asarray(select(TypedFilter(constraints=(constraint,)), batch))
