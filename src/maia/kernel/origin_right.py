"""What the origin of a parcel may have set: its right, applied by itself and once more by whoever opens the parcel.

A broker publishes nothing beyond its own right, whatever its clients may (`keep_to_right`). A reader of another domain
does not take its word for it (`within_right`).

Rules kept here:

- a row that meets the constraints of none of the origin's clauses was never admitted by them: the origin broke its
  right, and the whole parcel is refused (``ORIGIN_BROKE_RIGHT``); the broker itself refuses the row;
- a cell is kept when a clause whose constraints its row meets holds the attribute, or forces its value; others become
  null, as the origin's broker should have made them. Clauses are never mixed;
- a demand on a block that this broker cannot open cannot be looked at, and does not count against the origin. One on an
  attribute that the parcel does not carry at all is not met: the value is null for everybody;
- of a child's events, each type of the lineage has its own columns and the origin's clauses on that type: what an
  origin sets of a parent on which it has no right is left out, whatever it may set of the child (`descent`);
- conditions and rates are asked where the origin publishes, at that moment, by the broker itself; whoever opens the
  parcel does not ask them again (C43).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa

from maia.encryption import WHOLE_EVENT
from maia.errors import DeniedError
from maia.events import ValueType
from maia.kernel.bounds import bounds_mask
from maia.kernel.clauses import Clause
from maia.kernel.descent import Descent, parts_of
from maia.kernel.rows import Mask, batch_of, exchange, forced_value, kind_of, mask_of, pick, take_visible


def within_rights(
    columns: Mapping[bytes, pa.Array],
    clauses: Sequence[Clause],
    count: int,
    *,
    labels: Collection[bytes],
    closed: Collection[bytes],
    descent: Descent,
) -> dict[bytes, pa.Array]:
    """Keep of opened columns what an origin's clauses let it set, type by type of the lineage.

    Args:
        columns: By uid, as they were opened here.
        clauses: Of the origin's rights to publish.
        count: How many rows there are.
        labels: The uids of all blocks of the parcel.
        closed: As `within_right` takes it.
        descent: From which types the attributes come.

    Raises:
        DeniedError: A row meets no clause of some type.
    """
    if not descent.holders:
        return within_right(columns, clauses, count, closed=closed)
    named = {label.decode("ascii", "backslashreplace"): label for label in (*labels, *columns)}
    kept: dict[bytes, pa.Array] = {}
    for holder, uids in descent.parts(named).items():
        mine = [clause for clause in clauses if clause.holder == holder]
        if holder is None or mine:
            part = {named[uid] for uid in uids}
            opened = {label: column for label, column in columns.items() if label in part}
            kept |= within_right(opened, mine, count, closed=part.intersection(closed))
    return kept


def within_right(
    columns: Mapping[bytes, pa.Array], clauses: Sequence[Clause], count: int, *, closed: Collection[bytes] = ()
) -> dict[bytes, pa.Array]:
    """Keep of opened columns what an origin's clauses let it set.

    Args:
        columns: By uid, as they were opened here.
        clauses: Of the origin's right to publish.
        count: How many rows there are.
        closed: The uids of blocks that were not opened here; `WHOLE_EVENT` for every other attribute.

    Raises:
        DeniedError: A row meets no clause.
        UsageError: A column has a type that no attribute has.
    """
    # A label may be any octets; one that is no text is the uid of no attribute, and nobody has a right to set it.
    named = {uid.decode("ascii"): column for uid, column in columns.items() if uid.isascii()}
    batch = batch_of(list(named.values()), pa.schema([(uid, column.type) for uid, column in named.items()]), count)
    hidden = {label.decode("ascii") for label in closed if label.isascii()}
    masks = [_met(batch, clause, hidden) for clause in clauses]
    if not np.logical_or.reduce([np.zeros(count, dtype=np.bool_), *masks]).all():
        raise DeniedError("a parcel with rows that its origin's right does not admit", code="ORIGIN_BROKE_RIGHT")
    kept: dict[bytes, pa.Array] = {}
    for uid, column in named.items():
        kind = kind_of(column)
        holders = [mask for clause, mask in zip(clauses, masks, strict=True) if _sets(clause, uid, kind)]
        if holders:
            visible: Mask = np.logical_or.reduce(holders)
            kept[uid.encode()] = column if visible.all() else take_visible([column], visible, None)[0]
    return kept


def keep_to_right(
    batch: pa.RecordBatch, clauses: Sequence[Clause], *, reservation: bytes = b"", descent: Descent | None = None
) -> tuple[pa.RecordBatch, Mask]:
    """Take from a batch that is to be sealed what a broker's own clauses do not let it set.

    Args:
        batch: In transit form, with all that clients may publish.
        clauses: Of the broker's right to publish, those with conditions under a guard.
        reservation: Names what is sealed, the same when it is tried again: a rate counts it once.
        descent: From which types the attributes come, when some are inherited.

    Returns:
        The rows that are left, cells beyond the right null; and which rows of the batch they were.
    """
    met: Mask = np.ones(batch.num_rows, dtype=np.bool_)
    parts = parts_of(batch.schema.names, descent)
    held = {holder: [clause for clause in clauses if clause.holder == holder] for holder in parts}
    left = pick(batch, [uid for holder, uids in parts.items() if holder is None or held[holder] for uid in uids])
    for holder, mine in held.items():
        if holder is None or mine:
            met &= _admitted(pick(left, parts[holder]), mine, met, reservation)
    left = left if met.all() else left.filter(pa.array(met))
    for holder, mine in held.items():
        if left.num_rows and (holder is None or mine):
            left = exchange(left, _kept(pick(left, parts[holder]), mine))
    return left, met


def _admitted(batch: pa.RecordBatch, clauses: Sequence[Clause], among: Mask, reservation: bytes) -> Mask:
    """Tell which of some rows a broker's clauses on one type let it set."""
    met: Mask = np.zeros(batch.num_rows, dtype=np.bool_)
    # Rates last, for rows that no clause without one admits.
    for clause in sorted(clauses, key=lambda item: item.guard is not None and bool(item.guard.rates)):
        admitted = mask_of(batch, clause.constraints) & bounds_mask(batch, clause.cells.bounds) & among & ~met
        guard = clause.guard
        if not clause.counts or not admitted.any():
            continue
        if guard is not None:
            admitted &= guard.mask(batch)
            rows = np.flatnonzero(admitted)
            name = reservation + clause.identity if reservation else b""
            granted = guard.grant(len(rows), reservation=name) if guard.rates and len(rows) else len(rows)
            admitted[rows[granted:]] = False
        met |= admitted
    return met


def _kept(batch: pa.RecordBatch, clauses: Sequence[Clause]) -> pa.RecordBatch:
    """Null the cells of one type that a broker's clauses on it do not let it set."""
    columns = {name.encode(): column for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    kept = within_right(columns, clauses, batch.num_rows)
    arrays = [kept.get(uid, pa.nulls(batch.num_rows, column.type)) for uid, column in columns.items()]
    return batch_of(arrays, batch.schema, batch.num_rows)


def _met(batch: pa.RecordBatch, clause: Clause, hidden: Collection[str]) -> Mask:
    """Tell which rows meet the demands and bounds that can be looked at."""
    whole = WHOLE_EVENT.decode() in hidden
    mask = mask_of(batch, tuple((uid, tag) for uid, tag in clause.constraints if not whole and uid not in hidden))
    return mask & bounds_mask(batch, clause.cells.bounds, hidden=None if whole else hidden)


def _sets(clause: Clause, uid: str, kind: ValueType) -> bool:
    """Tell whether a clause holds an attribute, or sets it by a demand that leaves one value."""
    return clause.opens(uid) or any(
        name == uid and forced_value(tag, kind) is not None for name, tag in clause.constraints
    )
