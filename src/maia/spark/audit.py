"""The audit of a home as a table: the rows of its journal, and those of an audit before it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

from maia.domain import audit_of
from maia.errors import UnavailableError
from maia.home import Home

_TEXTS = [f"{name} string" for name in ("kind", "principal", "type_id", "source", "subject", "code")]
_EARLIER = ["at timestamp", *_TEXTS, "events bigint", "clauses array<string>"]
_LISTS = [f"{name} array<string>" for name in ("certificates", "attributes", "closed")]
_ROW = [*_EARLIER, *_LISTS, "filter string", "plan string", "decision string"]
_ENTRY = f"n bigint, of bigint, entry string, rows array<struct<{', '.join(item.replace(' ', ': ') for item in _ROW)}>>"


def audit_table(spark: SparkSession, home: Home, *, at: datetime) -> DataFrame:
    """Give every row of the audit, with the number of its entry and of the operation that it belongs to.

    Intents whose process is gone get their result first, where the audit can be written.
    """
    with suppress(UnavailableError):
        audit_of(home).settle(at=at)
    folder = home.audit_path.resolve()
    files = [str(path) for path in sorted((folder / "journal").glob("*.jsonl"))]
    entries = spark.read.schema(_ENTRY).json(files)
    operation = F.when(F.col("entry") == "intent", F.col("n")).otherwise(F.col("of"))
    rows = entries.select(F.col("n").alias("entry"), operation.alias("operation"), F.explode("rows").alias("row"))
    found = rows.select("row.*", "operation", "entry")
    earlier = [str(day) for day in sorted(folder.glob("date=*"))]
    if not earlier:
        return found
    return spark.read.schema(", ".join(_EARLIER)).parquet(*earlier).unionByName(found, allowMissingColumns=True)
