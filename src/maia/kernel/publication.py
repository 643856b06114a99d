"""What a publisher's rows become before they are sealed: the first half of the enforcement kernel.

In order (row 7.05): the type check; the name of a topic; names become uids, by which rights name attributes; those that
the clause does not open become null; a constraint that is an equality forces its value, any other drops the rows that
do not meet it and says so, and so do the bounds of the right (`bounds`). Each row that goes in comes out exactly once:
admitted, or refused with a code.

A certificate may ask for more (choice C1): that what could be forced is dropped instead, or that a batch with a row
that no clause admits is rejected as a whole. A batch is what one call publishes; of more rows, as many as go into one
parcel.

Constraints come after the nulls. On an attribute that the clause keeps closed an equality still forces its value, which
is the issuer's word and not the publisher's; any other constraint meets a null there and drops the row. Whoever set
such a value may set the attribute itself: by the law of speech (`maia.authority.speech`) no other link gets into a
clause.

When a publisher has several clauses a row goes out under one of them, never under a mixture: of those that admit it,
the one that changes the fewest cells, and among equals the first in the order of `clauses_from`, which does not depend
on the order of the evidence. Conditions come after constraints, at the time the batch is published; a rate is drawn
upon for the rows that a clause was chosen for, and a row that it does not grant may still go out under another clause.

An event of a child goes through the same once for each type of its lineage, with the attributes and the clauses of that
type: a row that one of them refuses is refused. Attributes of a parent on which the publisher has no right at all are
left out, and the event is none of the parent's (see `maia.kernel.descent`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maia.authority import OnViolation
from maia.events import EventType, batch_to_transit, to_arrow_schema
from maia.kernel import steps
from maia.kernel.bounds import ROW_OUT_OF_BOUNDS, bounds_mask
from maia.kernel.clauses import Clause
from maia.kernel.conditions import CONDITION_FALSE, RATE_LIMITED
from maia.kernel.descent import Descent, parts_of
from maia.kernel.rows import (
    Mask,
    Positions,
    batch_of,
    column_of,
    exchange,
    forced_value,
    kind_of,
    mask_of,
    pick,
    without,
)
from maia.kernel.steps import Tell, untold
from maia.kernel.topics import in_topic
from maia.kernel.type_check import Refusal, check_types

CONSTRAINT_VIOLATED = "CONSTRAINT_VIOLATED"
BATCH_REJECTED = "BATCH_REJECTED"


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


def enforce_publication(
    event_type: EventType,
    batch: pa.RecordBatch,
    clauses: Iterable[Clause],
    *,
    at: datetime | None = None,
    reservation: bytes = b"",
    descent: Descent | None = None,
    tell: Tell = untold,
) -> Enforced:
    """Apply a publisher's clauses to a batch of its events.

    Args:
        event_type: The version that was advertised.
        batch: Columns named by attribute name.
        clauses: The publisher's clauses, as its session has them; none of them refuses every row.
        at: When the batch is published; by default the time of the clock where conditions are asked.
        reservation: Names this part of the publication, the same when it is tried again: a rate counts it once. Without
            a name every call counts.
        descent: From which types the attributes come, when some are inherited.
        tell: Hears of the steps.
    """
    tell(steps.TYPE_CHECK, batch.num_rows)
    checked = in_topic(event_type, check_types(event_type, batch))
    rows, refusals = checked.rows, checked.refusals
    if checked.batch is None:
        return Enforced(_empty(event_type), rows, refusals)
    transit, held = batch_to_transit(event_type, checked.batch), tuple(clauses)
    tell(steps.TRANSLATE, transit.num_columns)
    names = {str(item.uid): item.name for item in event_type.attributes}
    nulled = forced = np.zeros(len(rows), dtype=np.bool_)
    parts = parts_of(transit.schema.names, descent)
    transit = pick(transit, [uid for uids in parts.values() for uid in uids])
    for holder, uids in parts.items():
        mine = [clause for clause in held if clause.counts and clause.holder == holder]
        if holder is not None and not mine:
            nulled = nulled | _valued(transit, uids)
            transit = without(transit, uids)
            continue
        done = _admit(pick(transit, uids), mine, names, at, reservation)
        refusals = (*refusals, *(replace(item, row=int(rows[item.row])) for item in done.refusals))
        if not len(done.rows):
            return Enforced(_empty(event_type), rows[:0], refusals)
        whole = len(done.rows) == transit.num_rows
        transit = exchange(transit if whole else transit.take(pa.array(done.rows)), done.batch)
        rows = rows[done.rows]
        nulled, forced = nulled[done.rows] | done.nulled, forced[done.rows] | done.forced
    tell(steps.NULL, int(np.count_nonzero(nulled)))
    tell(steps.FORCE_OR_DROP, int(np.count_nonzero(forced)) + len(refusals) - len(checked.refusals))
    return Enforced(transit, rows, refusals, int(np.count_nonzero(nulled)), int(np.count_nonzero(forced)))


def _valued(transit: pa.RecordBatch, uids: Iterable[str]) -> Mask:
    """Tell which rows have a value in some of these columns."""
    found: Mask = np.logical_or.reduce([np.asarray(transit.column(uid).is_valid()) for uid in uids])
    return found


@dataclass(frozen=True, slots=True)
class _Admitted:
    """What the clauses of one type make of its columns: as `Enforced`, with rows by their position in the input."""

    batch: pa.RecordBatch
    rows: Positions
    refusals: tuple[Refusal, ...]
    nulled: Mask
    forced: Mask


def _admit(
    transit: pa.RecordBatch,
    clauses: Iterable[Clause],
    names: Mapping[str, str],
    at: datetime | None,
    reservation: bytes,
) -> _Admitted:
    size = transit.num_rows
    candidates = [_Candidate.of(clause, transit, at) for clause in clauses]
    if not candidates:
        return _none(transit, [Refusal(row, "NOT_PERMITTED") for row in range(size)])
    if all(candidate.clause.on_violation is OnViolation.REJECT for candidate in candidates):
        unmet = ~np.logical_or.reduce([candidate.fits for candidate in candidates])
        if unmet.any():
            codes = [_reason(candidates, row, {})[0] if unmet[row] else BATCH_REJECTED for row in range(size)]
            return _none(transit, [Refusal(row, code) for row, code in enumerate(codes)])
    chosen = _draw(candidates, size, at, reservation)
    dropped = tuple(Refusal(row, *_reason(candidates, row, names)) for row in np.flatnonzero(chosen < 0).tolist())
    parts: list[pa.RecordBatch] = []
    order: list[Positions] = []
    for number, candidate in enumerate(candidates):
        mine = chosen == number
        if mine.any():
            whole = bool(mine.all())
            parts.append(candidate.result if whole else candidate.result.filter(pa.array(mine)))
            order.append(np.flatnonzero(mine))
    if not parts:
        return _none(transit, dropped)
    positions = np.concatenate(order)
    result = parts[0]
    if len(parts) > 1:
        back = np.argsort(positions, kind="stable")
        result = pa.concat_batches(parts).take(pa.array(back))
        positions = positions[back]
    nulled, forced = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
    for number, candidate in enumerate(candidates):
        nulled |= (chosen == number) & (candidate.nulls > 0)
        forced |= (chosen == number) & (candidate.forces > 0)
    return _Admitted(result, positions, dropped, nulled[positions], forced[positions])


def _none(transit: pa.RecordBatch, refusals: Iterable[Refusal]) -> _Admitted:
    nobody = np.zeros(0, dtype=np.bool_)
    return _Admitted(transit.slice(0, 0), np.empty(0, dtype=np.int64), tuple(refusals), nobody, nobody)


@dataclass(slots=True)
class _Candidate:
    """What one clause would make of the batch: for each row, whether it is admitted and how many cells change.

    ``met`` are the rows that meet the constraints, ``fits`` those that are within the bounds too, ``holds`` those that
    meet the conditions as well, and ``admits`` what is left when rates refused some.
    """

    clause: Clause
    result: pa.RecordBatch
    met: Mask
    fits: Mask
    holds: Mask
    admits: Mask
    nulls: Positions
    forces: Positions
    drops: tuple[str, ...]

    @classmethod
    def of(cls, clause: Clause, transit: pa.RecordBatch, at: datetime | None) -> _Candidate:
        size = transit.num_rows
        nulls, forces = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        forced: dict[str, pa.Array] = {}
        drops = []
        forcing = clause.on_violation is OnViolation.FORCE
        for uid, tag in clause.constraints:
            column = column_of(transit, uid)
            value = None if column is None or not forcing else forced_value(tag, kind_of(column))
            if value is None or column is None:
                drops.append((uid, tag))
                continue
            forced[uid] = pa.repeat(value, size)
            forces += ~_same(column, forced[uid])
        columns: list[pa.Array] = []
        for name in transit.schema.names:
            column = transit.column(name)
            if name in forced:
                column = forced[name]
            elif not clause.opens(name):
                if column.null_count != size:
                    nulls += np.asarray(column.is_valid())
                column = pa.nulls(size, column.type)
            columns.append(column)
        result = batch_of(columns, transit.schema, size)
        met = mask_of(result, tuple(drops))
        fits = met & bounds_mask(result, clause.cells.bounds)
        guard = clause.guard
        holds = fits if guard is None or not fits.any() else fits & guard.mask(result, at=at)
        return cls(clause, result, met, fits, holds, holds, nulls, forces, tuple(uid for uid, _ in drops))


def _same(column: pa.Array, constant: pa.Array) -> Mask:
    return np.asarray(pc.equal(column, constant).fill_null(False))


def _draw(candidates: list[_Candidate], size: int, at: datetime | None, reservation: bytes) -> Positions:
    """Choose a clause for each row, and draw from the rates of the chosen; what they refuse is chosen for anew.

    Each clause is drawn upon once: it keeps the rows that it got, and no other row comes to it afterwards.
    """
    drawn: set[int] = set()
    while True:
        chosen = _choose(candidates, size)
        number = next(
            (n for n in np.unique(chosen).tolist() if n >= 0 and n not in drawn and _rates(candidates[n])), -1
        )
        if number < 0:
            return chosen
        drawn.add(number)
        candidate, mine = candidates[number], np.flatnonzero(chosen == number)
        guard = candidate.clause.guard
        # Under the clause's own name: a clause that is gone when the part is tried again renames no other.
        name = reservation + candidate.clause.identity if reservation else b""
        granted = 0 if guard is None else guard.grant(len(mine), reservation=name, at=at)
        candidate.admits = np.zeros(size, dtype=np.bool_)
        candidate.admits[mine[:granted]] = True


def _rates(candidate: _Candidate) -> bool:
    guard = candidate.clause.guard
    return guard is not None and bool(guard.rates)


def _reason(candidates: list[_Candidate], row: int, names: Mapping[str, str]) -> tuple[str, str]:
    """Say what refused a row, by the clause that came nearest to admitting it, and the column when one is at fault."""
    if any(candidate.holds[row] for candidate in candidates):
        return RATE_LIMITED, ""
    if any(candidate.fits[row] for candidate in candidates):
        return CONDITION_FALSE, ""
    if any(candidate.met[row] for candidate in candidates):
        return ROW_OUT_OF_BOUNDS, ""
    demanded = {uid for candidate in candidates for uid in candidate.drops}
    return CONSTRAINT_VIOLATED, names.get(demanded.pop(), "") if len(demanded) == 1 else ""


def _choose(candidates: list[_Candidate], size: int) -> Positions:
    chosen, fewest = np.full(size, -1, dtype=np.int64), np.full(size, np.iinfo(np.int64).max)
    for number, candidate in enumerate(candidates):
        changes = candidate.nulls + candidate.forces
        better = candidate.admits & (changes < fewest)
        chosen[better], fewest[better] = number, changes[better]
    return chosen


def _empty(event_type: EventType) -> pa.RecordBatch:
    return batch_to_transit(event_type, pa.RecordBatch.from_pylist([], schema=to_arrow_schema(event_type)))
