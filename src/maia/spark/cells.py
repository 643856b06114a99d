"""Rows that leave Spark as plain values: times as text in UTC, octets in base64, whatever the machine's time zone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import ArrayType, DataType, StructType, TimestampType

from maia.spark.errors import spark_errors
from maia.spark.plain_values import plain


def plain_rows(frame: DataFrame, *, limit: int | None = None) -> Iterator[dict[str, object]]:
    """Give the rows of a frame one by one, as values that JSON has.

    Args:
        frame: A static frame, or one micro-batch.
        limit: At most so many.

    Raises:
        MaiaError: The read was refused, or Spark failed.
    """
    with spark_errors():
        cut = _as_text(frame if limit is None else frame.limit(limit))
        # Few rows come in one conversation; many are not held in memory at once.
        rows = cut.toLocalIterator() if limit is None else iter(cut.collect())
        for row in rows:
            yield {name: plain(_fields(value)) for name, value in zip(frame.columns, row, strict=True)}


def write_parquet(frame: DataFrame, folder: Path, *, limit: int | None = None) -> None:
    """Write a frame to a new folder of Parquet files.

    Raises:
        MaiaError: The read was refused, or Spark failed.
    """
    with spark_errors():
        (frame if limit is None else frame.limit(limit)).write.mode("errorifexists").parquet(str(folder))


def _as_text(frame: DataFrame) -> DataFrame:
    """Let times leave Spark as text in UTC; Python would read them in the time zone of the machine."""
    cells = []
    for item in frame.schema.fields:
        column = F.col(f"`{item.name.replace('`', '``')}`")
        cells.append(_text_of(column, item.dataType).alias(item.name))
    return frame.select(*cells)


def _text_of(column: Column, kind: DataType) -> Column:
    """Write times as text, those inside arrays and structs too."""
    if isinstance(kind, TimestampType):
        return F.date_format(column, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
    if isinstance(kind, ArrayType):
        return F.transform(column, lambda item: _text_of(item, kind.elementType))
    if isinstance(kind, StructType):
        parts = [_text_of(column.getField(part.name), part.dataType).alias(part.name) for part in kind.fields]
        return F.when(column.isNotNull(), F.struct(*parts))
    return column


def _fields(value: object) -> object:
    """Give the fields of structs by name."""
    if isinstance(value, Row):
        return {name: _fields(item) for name, item in value.asDict().items()}
    return [_fields(item) for item in value] if isinstance(value, list) else value
