"""Rows of a labelled frame that were put together, and what aggregates make of them."""

# ruff: noqa: SLF001 - frames and their groups belong together
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from maia.errors import UsageError
from maia.labels import group
from maia.spark.carriers import fresh_carrier, new_column
from maia.spark.exits import column_of
from maia.spark.reads import require_no

if TYPE_CHECKING:
    from maia.spark.labelled import LabelledFrame


class LabelledGroups:
    """Rows of a labelled frame, put together by keys."""

    __slots__ = ("_frame", "_keys")

    def __init__(self, frame: LabelledFrame, keys: Sequence[str]) -> None:
        """Group a frame."""
        self._frame = frame
        self._keys = list(keys)

    def agg(self, *, gather: bool = False, **aggregates: Column) -> LabelledFrame:
        """Aggregate, each under its name.

        Args:
            gather: Whether each group remembers whose rows it holds, so that it is as secret as those and no more; it
                costs a set for each group.
            aggregates: Spark's aggregate functions of columns.
        """
        frame, keys = self._frame, self._keys
        if not aggregates:
            raise UsageError("name at least one aggregate", code="MISSING_OPTION")
        inner = frame._frame
        reads = {new_column(name): frame._reads(inner.agg(column), "Aggregate") for name, column in aggregates.items()}
        require_no(keys, frame._hidden)
        gathered = {name: fresh_carrier() for name in frame._hidden} if gather else {}
        label = group(frame._label, keys, reads, gathered=gathered)
        sets = [
            F.array_distinct(F.flatten(F.collect_set(column_of(name)))).alias(new) for name, new in gathered.items()
        ]
        made = inner.groupBy(*map(column_of, keys)).agg(
            *(column.alias(name) for name, column in aggregates.items()), *sets
        )
        return frame._with(made.select(*map(column_of, label.columns)), label)
