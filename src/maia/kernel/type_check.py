"""The type check of a publisher's batch: the rows that are not of the type, each with its reason, and the others.

A fault of the columns themselves (unknown, twice, of another kind) is a fault of every row. A fault of single values
stays with its row: one bad value never costs its neighbours. What can be seen for a whole column at once is; where only
a cast or a decoder knows, the column is halved until the rows at fault stand alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maia.encryption import foreign_values
from maia.errors import MalformedError
from maia.events import AttributeType, EventType, check_batch
from maia.kernel.rows import Mask, Positions

_VALUE_TYPE = "VALUE_TYPE"
_VALUE_TOO_LARGE = "VALUE_TOO_LARGE"
_SIZED = frozenset((AttributeType.STRING, AttributeType.BINARY))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that goes no further, why, and the column at fault; empty when no single one is."""

    row: int
    code: str
    column: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """The rows that are of the type, in its schema, and the others.

    Attributes:
        batch: ``None`` when no row is of the type.
        rows: For each row of the batch, its position in the input.
        refusals: The other rows of the input.
    """

    batch: pa.RecordBatch | None
    rows: Positions
    refusals: tuple[Refusal, ...]


def check_types(event_type: EventType, batch: pa.RecordBatch) -> Checked:
    """Check a batch against the advertised version. Every input row is in exactly one part of the result."""
    size = batch.num_rows
    try:
        checked = check_batch(event_type, batch)
        rows = np.arange(size, dtype=np.int64)
        refusals: list[Refusal] = []
    except MalformedError as error:
        fault = _fault_of_columns(event_type, batch)
        if fault is not None:
            every = tuple(Refusal(row, error.code, fault) for row in range(size))
            return Checked(None, np.empty(0, dtype=np.int64), every)
        columns = _faulty_columns(event_type, batch)
        bad = columns >= 0
        names = batch.schema.names
        refusals = [Refusal(row, _VALUE_TYPE, names[columns[row]]) for row in np.flatnonzero(bad).tolist()]
        rows = np.flatnonzero(~bad)
        if not len(rows):
            return Checked(None, rows, tuple(refusals))
        try:
            checked = check_batch(event_type, batch.filter(pa.array(~bad)))
        except MalformedError as together:  # each row fits, but not all of them into one column
            return Checked(None, rows[:0], tuple(Refusal(row, together.code) for row in range(size)))
    kept = np.ones(len(rows), dtype=np.bool_)
    for item, column in zip(event_type.attributes, checked.columns, strict=True):
        marks = foreign_values(column, item.type)
        if marks is not None:
            code = _VALUE_TOO_LARGE if item.type in _SIZED else _VALUE_TYPE
            refusals += [Refusal(int(rows[at]), code, item.name) for at in np.flatnonzero(marks & kept).tolist()]
            kept &= ~marks
    if not kept.all():
        checked, rows = checked.filter(pa.array(kept)), rows[kept]
    return Checked(checked if len(rows) else None, rows, tuple(sorted(refusals, key=lambda item: item.row)))


def _fault_of_columns(event_type: EventType, batch: pa.RecordBatch) -> str | None:
    """Name the column that is refused even without rows; empty when it is not one alone, ``None`` when all are fine."""
    empty = batch.slice(0, 0)
    if _fits(event_type, empty):
        return None
    return next((name for at, name in enumerate(batch.schema.names) if not _fits(event_type, empty.select([at]))), "")


def _faulty_columns(event_type: EventType, batch: pa.RecordBatch) -> Positions:
    """For each row, the position of the first column whose value is at fault; -1 when none is."""
    found = np.full(batch.num_rows, -1, dtype=np.int64)
    for at in range(batch.num_columns):
        single = batch.select([at])
        column = single.column(0)
        bad = np.zeros(batch.num_rows, dtype=np.bool_)
        if pa.types.is_float64(column.type) or pa.types.is_float32(column.type):
            bad |= np.asarray(pc.invert(pc.is_finite(column)).fill_null(False))
        elif not _fits(event_type, single):
            _halve(event_type, single, bad)
        found[bad & (found < 0)] = at
    return found


def _halve(event_type: EventType, single: pa.RecordBatch, bad: Mask) -> None:
    stack = [(0, single.num_rows)]
    while stack:
        start, stop = stack.pop()
        if _fits(event_type, single.slice(start, stop - start)):
            continue
        if stop - start == 1:
            bad[start] = True
            continue
        middle = (start + stop) // 2
        stack += [(start, middle), (middle, stop)]


def _fits(event_type: EventType, batch: pa.RecordBatch) -> bool:
    try:
        check_batch(event_type, batch)
    except MalformedError:
        return False
    return True
