"""Rows to publish, from CSV, JSON lines or Parquet, read by Spark with the schema of a version.

Rules kept here: a column that is no attribute is refused, with the nearest name; a row that cannot be read as the
version says, or has a key that is no attribute, is counted as ``ROW_MALFORMED`` and goes no further. No cell becomes
null because it could not be read.

CSV is that of RFC 4180: quotes within quotes are doubled, and a quoted value may hold line breaks.
"""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from maia.errors import MalformedError, NotFoundError, UsageError
from maia.events import EventType, to_spark_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession
    from pyspark.sql.types import DataType, StructType

FORMATS = ("csv", "json", "parquet")
ROW_MALFORMED = "ROW_MALFORMED"
_MAX_HEADER = 1 << 20
_CHUNK = 1 << 20
_WIDENED = {("int", "bigint"), ("smallint", "bigint"), ("tinyint", "bigint"), ("float", "double")}


class Rows(NamedTuple):
    """Rows that fit, and the counts of all (``rows``) and of the malformed ones (``malformed``), known when it ran."""

    frame: DataFrame
    counts: Observation


def guess_format(source: str, wanted: str | None) -> str:
    """Take the format that was asked for, or tell it by the name of the file; standard input is JSON lines.

    Raises:
        UsageError: It is unknown.
    """
    endings = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
    found = wanted or ("json" if source == "-" else endings.get(Path(source).suffix.lower()))
    if found not in FORMATS:
        raise UsageError(f"say what `{source}` is with --format: csv, json or parquet", code="INPUT_FORMAT")
    if source == "-" and found != "json":
        raise UsageError("standard input is read as JSON lines only", code="INPUT_FORMAT")
    if source != "-" and not Path(source).exists():
        raise NotFoundError(f"no file `{source}`", code="NO_SUCH_FILE")
    return found


def check_columns(names: Sequence[str], event_type: EventType) -> None:
    """Refuse columns that are no attributes, or stand there twice.

    Raises:
        MalformedError: There is such a column.
    """
    known = [item.name for item in event_type.attributes]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean `{near[0]}`?" if near else f"; it has {', '.join(f'`{item}`' for item in known)}"
            version = event_type.name.version.text
            raise MalformedError(f"version {version} has no attribute `{name}`{hint}", code="NO_ATTRIBUTE")
    twice = {name for name in names if list(names).count(name) > 1}
    if twice:
        raise MalformedError(f"column `{min(twice)}` stands there twice", code="INPUT_HEADER")


def read_header(path: Path, event_type: EventType) -> list[str]:
    """Read and check the first line of a CSV file.

    Raises:
        MalformedError: There is none, or it names what is no attribute.
    """
    if not path.is_file():
        raise UsageError(f"`{path}` is no file; a folder can be read as Parquet only", code="INPUT_FORMAT")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader([file.readline(_MAX_HEADER)]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise MalformedError(f"the first line of `{path}` is no CSV header in UTF-8", code="INPUT_HEADER") from error
    if not names:
        raise MalformedError(f"`{path}` has no header line", code="INPUT_HEADER")
    check_columns(names, event_type)
    return names


def breaks_lines(path: Path) -> bool:
    """Tell whether a quoted value of a CSV file may go on in the next line.

    Spark then reads the file as a whole and not in parts, so it is asked for only where it is needed.
    """
    odd = False
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            first, *rest = chunk.replace(b"\r", b"\n").split(b"\n")
            odd ^= bool(first.count(b'"') % 2)
            if rest:
                *lines, last = rest
                if odd or (b'"' in chunk and any(line.count(b'"') % 2 for line in lines)):
                    return True
                odd = bool(last.count(b'"') % 2)
    return False


def read_file(spark: SparkSession, path: Path, kind: str, event_type: EventType) -> Rows:
    """Read a file, or a folder of Parquet files.

    Raises:
        MalformedError: Its columns are not those of the version.
    """
    if kind == "json":
        return _json(spark.read.text(str(path)), event_type)
    return _csv(spark, path, event_type) if kind == "csv" else _parquet(spark, path, event_type)


def read_lines(spark: SparkSession, lines: Sequence[bytes], event_type: EventType) -> Rows:
    """Read JSON lines that are held in memory; what is not UTF-8 is malformed."""
    import pyarrow as pa

    texts = []
    for line in lines:
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append("?")  # no JSON
    return _json(spark.createDataFrame(pa.table({"value": pa.array(texts, type=pa.string())})), event_type)


def _csv(spark: SparkSession, path: Path, event_type: EventType) -> Rows:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
    from pyspark.sql.types import StringType, StructField, StructType

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


def _json(lines: DataFrame, event_type: EventType) -> Rows:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
    from pyspark.sql.types import StringType, StructField, StructType

    schema, mark = _schema(event_type), _mark(event_type)
    wide = StructType([*schema.fields, StructField(mark, StringType())])
    known = F.array(*(F.lit(name) for name in schema.names))
    parsed = F.from_json("value", wide, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": mark})
    frame = lines.where(F.trim("value") != "").select(parsed.alias("row"), F.json_object_keys("value").alias("keys"))
    broken = F.col("row").isNull() | F.col("row").getField(mark).isNotNull() | F.col("keys").isNull()
    broken = broken | (F.size(F.array_except("keys", known)) > 0) | (F.size("keys") != F.size(F.array_distinct("keys")))
    cells = [F.col("row").getField(name).alias(name) for name in schema.names]
    return _counted(frame.select(*cells, F.coalesce(broken, F.lit(True)).alias(mark)), mark, schema)


def _parquet(spark: SparkSession, path: Path, event_type: EventType) -> Rows:
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

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
    from pyspark.sql.types import DecimalType

    if not isinstance(have, DecimalType) or not isinstance(want, DecimalType):
        return False
    return have.scale <= want.scale and have.precision - have.scale <= want.precision - want.scale


def _counted(frame: DataFrame, mark: str, schema: StructType) -> Rows:
    """Count all rows and the malformed ones on their way, and let the others pass with every column of the version."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

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
    return Rows(observed.where(~F.col(mark)).select(*cells), counts)


def _schema(event_type: EventType) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(to_spark_json(event_type)))


def _mark(event_type: EventType) -> str:
    """Choose a column name that no attribute has."""
    names = {item.name for item in event_type.attributes}
    return next(f"_malformed{'_' * more}" for more in range(len(names) + 1) if f"_malformed{'_' * more}" not in names)
