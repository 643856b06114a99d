"""What a publisher's rows become before they are sealed: the first half of the enforcement kernel.

In order (row 7.05): the type check; attributes that no clause opens become null; a constraint that is an equality forces
its value, any other drops the row and says so; names become uids. Each row that goes in comes out exactly once: admitted,
or refused with a code.

When a publisher has several clauses a row goes out under one of them, never under a mixture: the first that leaves it as
it is, else the first that admits it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from maia.broker.clauses import Clause
from maia.broker.rows import Mask, column_of, forced_value, kind_of, mask_of
from maia.errors import MalformedError
from maia.events import EventType, batch_to_transit, check_batch, to_arrow_schema

Positions = npt.NDArray[np.int64]
CONSTRAINT_VIOLATED = "CONSTRAINT_VIOLATED"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that goes no further, and why."""

    row: int
    code: str


@dataclass(frozen=True, slots=True)
class Enforced:
    """The rows that may be sealed, in transit form, and what happened to the others.

    Attributes:
        batch: Admitted rows, columns named by uid.
        rows: For each of them, its position in the input.
        refusals: The rest of the input.
        nulled: How many admitted rows lost a value that their publisher may not set.
        forced: How many admitted rows had a value forced.
    """

    batch: pa.RecordBatch
    rows: Positions
    refusals: tuple[Refusal, ...]
    nulled: int = 0
    forced: int = 0


def enforce_publication(event_type: EventType, batch: pa.RecordBatch, clauses: Iterable[Clause]) -> Enforced:
    """Apply a publisher's clauses to a batch of its events.

    Args:
        event_type: The version that was advertised.
        batch: Columns named by attribute name.
        clauses: The publisher's clauses, conditions already found true; none of them refuses every row.
    """
    checked, rows, refusals = _check_types(event_type, batch)
    if checked is None:
        return Enforced(_empty(event_type), rows, refusals)
    transit = batch_to_transit(event_type, checked)
    candidates = [_Candidate.of(clause, transit) for clause in clauses]
    if not candidates:
        refused = tuple(Refusal(int(row), "NOT_PERMITTED") for row in rows)
        return Enforced(_empty(event_type), rows[:0], (*refusals, *refused))
    if len(candidates) == 1:
        chosen = np.where(candidates[0].admits, 0, -1)
    else:
        chosen = _choose(candidates, transit.num_rows)
    dropped = tuple(Refusal(int(rows[at]), CONSTRAINT_VIOLATED) for at in np.flatnonzero(chosen < 0))
    parts: list[pa.RecordBatch] = []
    order: list[Positions] = []
    for number, candidate in enumerate(candidates):
        mine = chosen == number
        if mine.any():
            whole = bool(mine.all())
            parts.append(candidate.result if whole else candidate.result.filter(pa.array(mine)))
            order.append(np.flatnonzero(mine))
    if not parts:
        return Enforced(_empty(event_type), rows[:0], (*refusals, *dropped))
    positions = np.concatenate(order)
    result = parts[0]
    if len(parts) > 1:
        back = np.argsort(positions, kind="stable")
        result = pa.Table.from_batches(parts).combine_chunks().take(pa.array(back)).to_batches()[0]
        positions = positions[back]
    nulled = sum(int(np.sum(c.nulls[chosen == n])) for n, c in enumerate(candidates))
    forced = sum(int(np.sum(c.forces[chosen == n])) for n, c in enumerate(candidates))
    return Enforced(result, rows[positions], (*refusals, *dropped), nulled, forced)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What one clause would make of the batch."""

    result: pa.RecordBatch
    admits: Mask
    nulls: Mask
    forces: Mask

    @classmethod
    def of(cls, clause: Clause, transit: pa.RecordBatch) -> _Candidate:
        size = transit.num_rows
        nulls, forces = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
        columns: dict[str, pa.Array] = {}
        for name in transit.schema.names:
            column = transit.column(name)
            if not clause.opens(name):
                if column.null_count != size:
                    nulls |= np.asarray(column.is_valid())
                column = pa.nulls(size, column.type)
            columns[name] = column
        drops = []
        for uid, tag in clause.constraints:
            column = column_of(transit, uid)
            value = None if column is None else forced_value(tag, kind_of(column))
            if value is None or column is None:
                drops.append((uid, tag))
                continue
            constant = pa.repeat(pa.scalar(value[0], type=column.type), size)
            if clause.opens(uid):
                forces |= ~_same(column, constant)
                columns[uid] = constant
        result = pa.RecordBatch.from_arrays(list(columns.values()), schema=transit.schema)
        # A constraint on an attribute that the clause itself closes is tested on what the publisher said.
        tested = pa.RecordBatch.from_arrays(
            [columns[name] if clause.opens(name) else transit.column(name) for name in columns], schema=transit.schema
        )
        return cls(result, mask_of(tested, tuple(drops)), nulls, forces)


def _same(column: pa.Array, constant: pa.Array) -> Mask:
    return np.asarray(pc.equal(column, constant).fill_null(False))


def _choose(candidates: list[_Candidate], size: int) -> Positions:
    chosen = np.full(size, -1, dtype=np.int64)
    for unchanged in (True, False):
        for number, candidate in enumerate(candidates):
            free = (chosen < 0) & candidate.admits
            if unchanged:
                free &= ~(candidate.nulls | candidate.forces)
            chosen[free] = number
    return chosen


def _check_types(
    event_type: EventType, batch: pa.RecordBatch
) -> tuple[pa.RecordBatch | None, Positions, tuple[Refusal, ...]]:
    """Type-check a batch; when it fails, halve it until the rows at fault stand alone."""
    good: list[pa.RecordBatch] = []
    rows: list[Positions] = []
    refusals: list[Refusal] = []
    stack = [(0, batch.num_rows)]
    while stack:
        start, stop = stack.pop()
        if start == stop:
            continue
        try:
            good.append(check_batch(event_type, batch.slice(start, stop - start)))
            rows.append(np.arange(start, stop, dtype=np.int64))
        except MalformedError as error:
            if stop - start == 1 or error.code in _WHOLE_BATCH:
                refusals.extend(Refusal(row, error.code) for row in range(start, stop))
                continue
            middle = (start + stop) // 2
            stack += [(middle, stop), (start, middle)]
    if not good:
        return None, np.empty(0, dtype=np.int64), tuple(refusals)
    whole = good[0] if len(good) == 1 else pa.Table.from_batches(good).combine_chunks().to_batches()[0]
    return whole, np.concatenate(rows), tuple(refusals)


# Faults of the columns, not of a row: halving would only repeat them.
_WHOLE_BATCH = frozenset(("NO_ATTRIBUTE", "ATTRIBUTE_NAME_TWICE"))


def _empty(event_type: EventType) -> pa.RecordBatch:
    return batch_to_transit(event_type, pa.RecordBatch.from_pylist([], schema=to_arrow_schema(event_type)))
