"""Rows to publish, from CSV, JSON lines or Parquet, read by Spark with the schema of a version.

Rules kept here: a column that is no attribute is refused, with the nearest name; a row that cannot be read as the
version says, or has a key that is no attribute, is counted as ``ROW_MALFORMED`` and goes no further. No cell becomes
null because it could not be read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import DataType, DecimalType, StringType, StructField, StructType

from maia.errors import MalformedError
from maia.events import EventType, to_spark_json
from maia.spark.input_files import breaks_lines, check_columns, read_header

ROW_MALFORMED = "ROW_MALFORMED"
_WIDENED = {("int", "bigint"), ("smallint", "bigint"), ("tinyint", "bigint"), ("float", "double")}


class ReadRows(NamedTuple):
    """Rows that fit, and the counts of all (``rows``) and of the malformed ones (``malformed``), known when it ran."""

    frame: DataFrame
    counts: Observation
    marked: DataFrame
    mark: str

    def count_malformed(self) -> int:
        """Count the malformed rows now, by reading all of them once more: Spark does not answer for the mark alone."""
        counts = Observation("maia_check")
        malformed = F.count(F.when(F.col(self.mark), 1)).alias("malformed")
        self.marked.observe(counts, malformed).write.format("noop").mode("overwrite").save()
        return int(counts.get["malformed"])

    @property
    def malformed(self) -> int:
        """How many rows were malformed; known when the frame was used."""
        return int(self.counts.get["malformed"])


def read_file(spark: SparkSession, path: Path, kind: str, event_type: EventType) -> ReadRows:
    """Read a file, or a folder of Parquet files.

    Raises:
        MalformedError: Its columns are not those of the version.
    """
    if kind == "json":
        return _json(spark.read.text(str(path)), event_type)
    return _csv(spark, path, event_type) if kind == "csv" else _parquet(spark, path, event_type)


def read_lines(spark: SparkSession, lines: Sequence[bytes], event_type: EventType) -> ReadRows:
    """Read JSON lines that are held in memory; what is not UTF-8 is malformed."""
    texts = []
    for line in lines:
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append("?")  # no JSON
    return _json(spark.createDataFrame(pa.table({"value": pa.array(texts, type=pa.string())})), event_type)


def _csv(spark: SparkSession, path: Path, event_type: EventType) -> ReadRows:
    names = read_header(path, event_type)
    schema, mark = _schema(event_type), _mark(event_type)
    fields = [schema[name] for name in names]
    frame = (
        spark.read.option("header", value=True)
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", mark)
        .option("encoding", "UTF-8")
        .option("escape", '"')
        .option("multiLine", value=breaks_lines(path))
        .schema(StructType([*fields, StructField(mark, StringType())]))
        .csv(str(path))
    )
    return _counted(frame.withColumn(mark, F.col(mark).isNotNull()), mark, schema)


def _json(lines: DataFrame, event_type: EventType) -> ReadRows:
    schema, mark = _schema(event_type), _mark(event_type)
    wide = StructType([*schema.fields, StructField(mark, StringType())])
    known = F.array(*(F.lit(name) for name in schema.names))
    parsed = F.from_json("value", wide, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": mark})
    frame = lines.where(F.trim("value") != "").select(parsed.alias("row"), F.json_object_keys("value").alias("keys"))
    broken = F.col("row").isNull() | F.col("row").getField(mark).isNotNull() | F.col("keys").isNull()
    broken = broken | (F.size(F.array_except("keys", known)) > 0) | (F.size("keys") != F.size(F.array_distinct("keys")))
    cells = [F.col("row").getField(name).alias(name) for name in schema.names]
    return _counted(frame.select(*cells, F.coalesce(broken, F.lit(True)).alias(mark)), mark, schema)


def _parquet(spark: SparkSession, path: Path, event_type: EventType) -> ReadRows:
    schema, mark = _schema(event_type), _mark(event_type)
    frame = spark.read.parquet(str(path))
    check_columns(frame.columns, event_type)
    for field in frame.schema.fields:
        have, want = field.dataType.simpleString(), schema[field.name].dataType.simpleString()
        if have != want and (have, want) not in _WIDENED and not _fits(field.dataType, schema[field.name].dataType):
            raise MalformedError(f"column `{field.name}` is {have}, the attribute is {want}", code="INPUT_TYPE")
    return _counted(frame.withColumn(mark, F.lit(False)), mark, schema)


def _fits(have: DataType, want: DataType) -> bool:
    """Tell whether every decimal number of one type is one of the other."""
    if not isinstance(have, DecimalType) or not isinstance(want, DecimalType):
        return False
    return have.scale <= want.scale and have.precision - have.scale <= want.precision - want.scale


def _counted(frame: DataFrame, mark: str, schema: StructType) -> ReadRows:
    """Count all rows and the malformed ones on their way, and let the others pass with every column of the version."""
    counts = Observation("maia_input")
    observed = frame.observe(
        counts, F.count(F.lit(1)).alias("rows"), F.count(F.when(F.col(mark), 1)).alias("malformed")
    )
    cells = [
        (F.col(f"`{field.name}`") if field.name in frame.columns else F.lit(None))
        .cast(field.dataType)
        .alias(field.name)
        for field in schema.fields
    ]
    return ReadRows(observed.where(~F.col(mark)).select(*cells), counts, frame, mark)


def _schema(event_type: EventType) -> StructType:
    return StructType.fromJson(json.loads(to_spark_json(event_type)))


def _mark(event_type: EventType) -> str:
    """Choose a column name that no attribute has."""
    names = {item.name for item in event_type.attributes}
    return next(f"_malformed{'_' * more}" for more in range(len(names) + 1) if f"_malformed{'_' * more}" not in names)
