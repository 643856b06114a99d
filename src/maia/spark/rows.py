"""Rows to publish, from CSV, JSON lines or Parquet, read by Spark with the schema of a version.

Rules kept here: a column that is no attribute is refused, with the nearest name; a row that cannot be read as the
version says, or has a key that is no attribute, is counted as ``ROW_MALFORMED``, by the first column that is at fault
where one is, and goes no further. No cell becomes null because it could not be read, and no decimal is rounded to fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from maia.errors import MalformedError
from maia.events import (
    ArrayOf,
    AttributeType,
    EventType,
    StructOf,
    ValueType,
    decimal_size,
    parse_offset,
    to_spark_json,
)
from maia.spark.input_files import breaks_lines, check_columns, read_header

ROW_MALFORMED = "ROW_MALFORMED"
_NAIVE = r"^\s*\d{4}-\d{1,2}-\d{1,2}([ T]\d{1,2}:\d{1,2}(:\d{1,2}(\.\d+)?)?)?\s*$"
_SECONDS = r"^-?\d{1,12}$"
_DECIMAL = r"^\s*[+-]?(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?\s*$"
_WHOLE = -1
"""The mark of a malformed row of which no column is at fault; others are marked by the place of theirs."""
_WIDENED = {("int", "bigint"), ("smallint", "bigint"), ("tinyint", "bigint"), ("float", "double")}


class Malformed(NamedTuple):
    """Malformed rows, counted by the column at fault (none: ``""``), and the columns with times that have no zone."""

    rows: Mapping[str, int]
    without_zone: tuple[str, ...]

    @property
    def advice(self) -> str | None:
        """Say what lets the times without a zone pass, where there are any."""
        if not self.without_zone:
            return None
        names = ", ".join(f"`{name}`" for name in self.without_zone)
        return f"times without a zone in {names}: say of which zone they are with --naive-timestamps"


class ReadRows(NamedTuple):
    """Rows that fit, and the counts of the malformed ones, known when it ran."""

    frame: DataFrame
    counts: Observation
    marked: DataFrame
    mark: str
    names: tuple[str, ...]

    def count_malformed(self) -> Malformed:
        """Count the malformed rows now, by reading all of them once more: Spark does not answer for the mark alone."""
        counts = Observation("maia_check")
        self.marked.observe(counts, *_by_mark(self.mark, self.names)).write.format("noop").mode("overwrite").save()
        return self._told(counts)

    @property
    def malformed(self) -> Malformed:
        """Which rows were malformed; known when the frame was used."""
        return self._told(self.counts)

    def _told(self, counts: Observation) -> Malformed:
        found = {int(mark): int(count) for mark, count in counts.get.items() if count}
        rows: dict[str, int] = {}
        for mark, count in sorted(found.items()):
            name = "" if mark == _WHOLE else self.names[max(mark, _without_zone(mark))]
            rows[name] = rows.get(name, 0) + count
        places = sorted(_without_zone(mark) for mark in found if mark < _WHOLE)
        return Malformed(rows, tuple(self.names[place] for place in places))


def read_file(
    spark: SparkSession, path: Path, kind: str, event_type: EventType, *, naive: str | None = None
) -> ReadRows:
    """Read a file, or a folder of Parquet files; times without a zone are of ``naive``, and malformed without it.

    Raises:
        MalformedError: Its columns are not those of the version.
    """
    if kind == "json":
        return _json(spark.read.text(str(path)), event_type, naive)
    return _csv(spark, path, event_type, naive) if kind == "csv" else _parquet(spark, path, event_type, naive)


def read_lines(
    spark: SparkSession, lines: Sequence[bytes], event_type: EventType, *, naive: str | None = None
) -> ReadRows:
    """Read JSON lines that are held in memory; what is not UTF-8 is malformed."""
    texts = []
    for line in lines:
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append("?")  # no JSON
    frame = spark.createDataFrame(pa.table({"value": pa.array(texts, type=pa.string())}))
    return _json(frame, event_type, naive)


def _csv(spark: SparkSession, path: Path, event_type: EventType, naive: str | None) -> ReadRows:
    names = read_header(path, event_type)
    schema, mark = _schema(event_type), _mark(event_type)
    fields = [schema[name] for name in names]
    for item in fields:
        if isinstance(item.dataType, ArrayType | StructType):
            message = f"column `{item.name}` is {item.dataType.simpleString()}, which a CSV cell does not hold"
            raise MalformedError(f"{message}; publish JSON lines or Parquet", code="INPUT_TYPE")
    frame = (
        spark.read.option("header", value=True)
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", mark)
        .option("encoding", "UTF-8")
        .option("escape", '"')
        .option("multiLine", value=breaks_lines(path))
        .schema(StructType([*map(_as_text, fields), StructField(mark, StringType())]))
        .csv(str(path))
    )
    places = {name: place for place, name in enumerate(schema.names)}
    # Of a record that Spark could not read, cells that hold a text and became nothing are at fault.
    texts = F.from_csv(F.col(mark), ", ".join(f"`{name}` string" for name in names), {"escape": '"'})
    cells, faults = [], []
    for item in fields:
        read = F.col(f"`{item.name}`")
        cell, fault = _exact(item, read, places[item.name], naive)
        lost = F.col(mark).isNotNull() & texts.getField(item.name).isNotNull() & read.isNull()
        cells.append(cell.alias(item.name))
        faults += [fault, F.when(lost, places[item.name])]
    faults.append(F.when(F.col(mark).isNotNull(), _WHOLE))
    return _counted(frame.select(*cells, F.coalesce(*faults).alias(mark)), mark, schema)


def _json(lines: DataFrame, event_type: EventType, naive: str | None) -> ReadRows:
    schema, mark = _schema(event_type), _mark(event_type)
    wide = StructType([*map(_time_as_text, schema.fields), StructField(mark, StringType())])
    known = F.array(*(F.lit(name) for name in schema.names))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": mark}
    plain = StructType([StructField(name, StringType()) for name in schema.names])
    frame = lines.where(F.trim("value") != "").select(
        F.from_json("value", wide, options).alias("row"), F.json_object_keys("value").alias("keys"), "value"
    )
    row, texts = F.col("row"), F.from_json("value", plain)
    odd = row.isNull() | F.col("keys").isNull() | (F.size(F.array_except("keys", known)) > 0)
    odd = odd | (F.size("keys") != F.size(F.array_distinct("keys")))
    cells, faults = [], [F.when(odd, _WHOLE)]
    for place, item in enumerate(schema.fields):
        read, text = row.getField(item.name), texts.getField(item.name)
        lost = text.isNotNull() & read.isNull()
        if isinstance(item.dataType, ArrayType | StructType):  # a part of it may be lost
            alone = StructType([StructField("v", item.dataType), StructField("m", StringType())])
            again = F.from_json(
                F.concat(F.lit('{"v":'), text, F.lit("}")), alone, options | {"columnNameOfCorruptRecord": "m"}
            )
            lost = lost | again.getField("m").isNotNull()
        # Spark reads a decimal's digits here as they are written, and `_odd_inside` tells what it rounds.
        exact = isinstance(item.dataType, DecimalType)
        cell, fault = (read, _no_fault()) if exact else _exact(item, read, place, naive)
        cells.append(cell.alias(item.name))
        faults += [fault, F.when(row.getField(mark).isNotNull() & lost, place)]
    faults.append(F.when(row.getField(mark).isNotNull(), _WHOLE))
    if any(isinstance(item.type, ArrayOf | StructOf) or _is_decimal(item.type) for item in event_type.attributes):
        faults.append(_odd_inside(event_type)("value"))
    return _counted(frame.select(*cells, F.coalesce(*faults).alias(mark)), mark, schema)


def _time_as_text(field: StructField) -> StructField:
    """Read times as texts first, since Spark would give a zone to those that have none."""
    return StructField(field.name, StringType()) if isinstance(field.dataType, TimestampType) else field


def _as_text(field: StructField) -> StructField:
    """Read decimals as texts too, since Spark would round them."""
    return StructField(field.name, StringType()) if isinstance(field.dataType, DecimalType) else _time_as_text(field)


def _exact(field: StructField, read: Column, place: int, naive: str | None) -> tuple[Column, Column]:
    """Give a cell as what its column holds, and its mark where it was read as a text that is none of it."""
    if isinstance(field.dataType, TimestampType):
        return _instant(read, place, naive)
    if isinstance(field.dataType, DecimalType):
        return _decimal(read, field.dataType, place)
    return read, _no_fault()


def _no_fault() -> Column:
    return F.lit(None).cast("int")


def _instant(read: Column, place: int, naive: str | None) -> tuple[Column, Column]:
    value = F.when(read.rlike(_SECONDS), F.timestamp_seconds(read.try_cast("bigint")))
    value = value.otherwise(read.try_cast("timestamp"))
    unplaced = read.rlike(_NAIVE)
    if naive is not None:
        behind = F.make_dt_interval(secs=F.lit(int(parse_offset(naive).total_seconds())))
        value = F.when(unplaced, value - behind).otherwise(value)
    fault = F.when(read.isNotNull() & value.isNull(), place)
    return value, fault if naive is not None else F.when(unplaced, _without_zone(place)).otherwise(fault)


def _decimal(read: Column, kind: DecimalType, place: int) -> tuple[Column, Column]:
    """Count the digits behind the point, without the zeros at their end: more than the type has would be rounded."""
    value = F.when(read.rlike(_DECIMAL), read.try_cast(kind))
    whole, behind, power = (F.regexp_extract(read, _DECIMAL, group) for group in (1, 2, 3))
    digits = F.concat(whole, behind)
    kept = F.regexp_replace(digits, "0+$", "")
    scale = F.length(behind) - (F.length(digits) - F.length(kept)) - F.coalesce(power.try_cast("int"), F.lit(0))
    rounded = (kept != "") & (scale > kind.scale)
    return value, F.when(read.isNotNull() & (value.isNull() | rounded), place)


def _without_zone(place: int) -> int:
    """Give the mark of a time without a zone, from the place of its column; and the place from the mark."""
    return -2 - place


def _is_decimal(kind: ValueType | None) -> bool:
    return kind is not None and kind.base is AttributeType.DECIMAL


def _odd_inside(event_type: EventType) -> Callable[[str], Column]:
    """Mark a line that has, inside a struct, a key that is no field of it, which Spark would leave out.

    A time without a zone inside an array or a struct is malformed too, whatever zone was named for the others; so is a
    decimal, there or outside, that has more digits behind the point than its type.
    """
    kinds = {item.name: item.type for item in event_type.attributes}
    places = {name: place for place, name in enumerate(kinds)}
    times = {name for name, kind in kinds.items() if kind is AttributeType.TIMESTAMP}

    def odd(kind: ValueType | None, value: object) -> bool:
        if isinstance(kind, ArrayOf) and isinstance(value, list):
            return any(odd(kind.element, item) for item in value)
        if isinstance(kind, StructOf) and isinstance(value, dict):
            fields = dict(kind.fields)
            return any(name not in fields or odd(fields[name], item) for name, item in value.items())
        if kind is not None and _is_decimal(kind) and value is not None:
            return _is_rounded(value, decimal_size(kind)[1])
        return kind is AttributeType.TIMESTAMP and isinstance(value, str) and bool(re.match(_NAIVE, value))

    def look(line: str) -> int | None:
        try:
            row = json.loads(line, parse_float=Decimal)
            if isinstance(row, dict):
                found = (name for name, value in row.items() if name not in times and odd(kinds.get(name), value))
                return next((places[name] for name in found), None)
        except (ValueError, RecursionError):
            pass
        return _WHOLE  # no JSON object

    return F.udf(look, "int", useArrow=False)


def _is_rounded(value: object, scale: int) -> bool:
    """Tell whether a number, or the text of one, has more digits behind the point, or is none."""
    try:
        digits, exponent = Decimal(str(value)).as_tuple()[1:]
    except InvalidOperation:
        return True
    if not isinstance(exponent, int):  # not finite
        return True
    text = "".join(map(str, digits))
    kept = text.rstrip("0")
    return kept != "" and -exponent - (len(text) - len(kept)) > scale


def _parquet(spark: SparkSession, path: Path, event_type: EventType, naive: str | None) -> ReadRows:
    schema, mark = _schema(event_type), _mark(event_type)
    frame = spark.read.parquet(str(path))
    check_columns(frame.columns, event_type)
    for field in frame.schema.fields:
        have, want = field.dataType.simpleString(), schema[field.name].dataType.simpleString()
        naive_time = (have, want) == ("timestamp_ntz", "timestamp")
        if naive_time and naive is not None:
            continue
        if not _fits(field.dataType, schema[field.name].dataType):
            advice = "; say its zone with --naive-timestamps" if naive_time else ""
            raise MalformedError(f"column `{field.name}` is {have}, the attribute is {want}{advice}", code="INPUT_TYPE")
    return _counted(frame.withColumn(mark, _no_fault()), mark, schema)


def _fits(have: DataType, want: DataType) -> bool:
    """Tell whether every value of one type is one of the other, inside arrays and structs too."""
    if isinstance(have, ArrayType) and isinstance(want, ArrayType):
        return _fits(have.elementType, want.elementType)
    if isinstance(have, StructType) and isinstance(want, StructType):  # Spark casts fields by their places
        pairs = zip(have.fields, want.fields, strict=False)
        return have.names == want.names and all(_fits(one.dataType, other.dataType) for one, other in pairs)
    if isinstance(have, DecimalType) and isinstance(want, DecimalType):
        return have.scale <= want.scale and have.precision - have.scale <= want.precision - want.scale
    names = (have.simpleString(), want.simpleString())
    return names[0] == names[1] or names in _WIDENED


def _counted(frame: DataFrame, mark: str, schema: StructType) -> ReadRows:
    """Count the malformed rows on their way, and let the others pass with every column of the version."""
    counts = Observation("maia_input")
    observed = frame.observe(counts, *_by_mark(mark, schema.names))
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    cells = []
    for field in schema.fields:
        cell = F.col(f"`{field.name}`") if field.name in kinds else F.lit(None)
        # A time without a zone gets it where rows are published, and not from the session.
        naive = isinstance(kinds.get(field.name), TimestampNTZType)
        cells.append((cell if naive else cell.cast(field.dataType)).alias(field.name))
    return ReadRows(observed.where(F.col(mark).isNull()).select(*cells), counts, frame, mark, tuple(schema.names))


def _by_mark(mark: str, names: Sequence[str]) -> list[Column]:
    marks = [_WHOLE, *(item for place in range(len(names)) for item in (place, _without_zone(place)))]
    return [F.count(F.when(F.col(mark) == item, 1)).alias(str(item)) for item in marks]


def _schema(event_type: EventType) -> StructType:
    return StructType.fromJson(json.loads(to_spark_json(event_type)))


def _mark(event_type: EventType) -> str:
    """Choose a column name that no attribute has."""
    names = {item.name for item in event_type.attributes}
    return next(f"_malformed{'_' * more}" for more in range(len(names) + 1) if f"_malformed{'_' * more}" not in names)
