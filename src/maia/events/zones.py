"""Times without a zone: no instants, until somebody says in which zone they were written.

A zone is named once for all times of a publication, as `UTC` or as a fixed offset such as `+01:00`. Names of places are
not taken: in the night when clocks go back they leave an hour that may be either of two.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from maia.errors import UsageError

_OFFSET = re.compile(r"([+-])(0[0-9]|1[0-4]):([0-5][0-9])", re.ASCII)


def parse_offset(text: str) -> timedelta:
    """Read how far a zone is ahead of UTC.

    Raises:
        UsageError: It is neither `UTC` nor an offset: ``TIME_ZONE``.

    >>> parse_offset("UTC"), parse_offset("-05:30")
    (datetime.timedelta(0), datetime.timedelta(days=-1, seconds=66600))
    """
    if text in ("UTC", "Z"):
        return timedelta()
    found = _OFFSET.fullmatch(text)
    if found is None:
        raise UsageError(f"`{text}` is no zone; write UTC, or an offset such as +01:00", code="TIME_ZONE")
    ahead = timedelta(hours=int(found[2]), minutes=int(found[3]))
    return ahead if found[1] == "+" else -ahead


def in_zone(batch: pa.RecordBatch, ahead: timedelta) -> pa.RecordBatch:
    """Make instants of the times without a zone, those inside arrays and structs too; everything else stays.

    >>> from datetime import datetime
    >>> batch = pa.RecordBatch.from_pydict({"at": pa.array([datetime(2026, 6, 1, 9)])})
    >>> in_zone(batch, parse_offset("+01:00")).column("at").to_pylist()[0].isoformat()
    '2026-06-01T08:00:00+00:00'
    """
    if not any(is_naive(kind) for kind in batch.schema.types):
        return batch
    columns = [_placed(column, ahead) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def is_naive(kind: pa.DataType) -> bool:
    """Tell whether columns of a type hold times without a zone, inside arrays and structs too."""
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    return any(is_naive(kind.field(at).type) for at in range(kind.num_fields))


def _placed(column: Any, ahead: timedelta) -> Any:  # noqa: ANN401 - arrays of Arrow
    kind = column.type
    if not is_naive(kind):
        return column
    if pa.types.is_timestamp(kind):
        return pc.assume_timezone(pc.subtract(column, pa.scalar(ahead, pa.duration(kind.unit))), "UTC")
    if pa.types.is_struct(kind):
        parts = [_placed(part, ahead) for part in column.flatten()]
        return pa.StructArray.from_arrays(parts, names=[item.name for item in kind], mask=column.is_null())
    if pa.types.is_list(kind):
        ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(column), 0))
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
        return pa.ListArray.from_arrays(offsets, _placed(column.flatten(), ahead), mask=column.is_null())
    return column  # refused by name, as every kind that events do not hold
