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

from maia.broker.rows import Mask, Positions
from maia.encryption import foreign_values
from maia.errors import MalformedError
from maia.events import AttributeType, EventType, check_batch

_VALUE_TYPE = "VALUE_TYPE"
_VALUE_TOO_LARGE = "VALUE_TOO_LARGE"
_SIZED = frozenset((AttributeType.STRING, AttributeType.BINARY))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that goes no further, and why."""

    row: int
    code: str


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
        if _fault_of_columns(event_type, batch):
            every = tuple(Refusal(row, error.code) for row in range(size))
            return Checked(None, np.empty(0, dtype=np.int64), every)
        bad = _faulty_rows(event_type, batch)
        refusals = [Refusal(row, _VALUE_TYPE) for row in np.flatnonzero(bad).tolist()]
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
            refusals += [Refusal(int(rows[at]), code) for at in np.flatnonzero(marks & kept).tolist()]
            kept &= ~marks
    if not kept.all():
        checked, rows = checked.filter(pa.array(kept)), rows[kept]
    return Checked(checked if len(rows) else None, rows, tuple(sorted(refusals, key=lambda item: item.row)))


def _fault_of_columns(event_type: EventType, batch: pa.RecordBatch) -> bool:
    """Tell whether the columns are refused even without rows."""
    try:
        check_batch(event_type, batch.slice(0, 0))
    except MalformedError:
        return True
    return False


def _faulty_rows(event_type: EventType, batch: pa.RecordBatch) -> Mask:
    bad = np.zeros(batch.num_rows, dtype=np.bool_)
    for name in batch.schema.names:
        single = batch.select([name])
        column = single.column(0)
        if pa.types.is_float64(column.type) or pa.types.is_float32(column.type):
            bad |= np.asarray(pc.invert(pc.is_finite(column)).fill_null(False))
        elif not _fits(event_type, single):
            _halve(event_type, single, bad)
    return bad


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
