"""Types from files: the schema of a Parquet or Arrow file, a Spark schema as JSON, or a sample in CSV or JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.errors import MalformedError, NotFoundError
from maia.events import (
    EventType,
    Options,
    TypeName,
    UidPolicy,
    attributes_of_rows,
    from_arrow_schema,
    from_spark_json,
)
from maia.home.files import read_file

_MAX_ROWS = 10_000
_MAX_SCHEMA = 64 << 20
_SAMPLES = {".csv", ".json", ".jsonl", ".ndjson"}


def read_schema(file: Path, name: TypeName, *, options: Options, uids: UidPolicy, assume_utc: bool) -> EventType:
    """Derive a definition from a file; of CSV and JSON the first 10,000 rows are looked at, of others none.

    Raises:
        NotFoundError: There is no such file.
        MalformedError: It is nothing of the kind, or columns do not fit; all of them are named.
    """
    if not file.is_file():
        raise NotFoundError(f"no file `{file}`", code="NO_SUCH_FILE")
    if file.suffix.lower() == ".json" and (text := _spark_schema(file)) is not None:
        return from_spark_json(text, name, options=options, uids=uids)
    if file.suffix.lower() in _SAMPLES:
        texts = file.suffix.lower() == ".csv"
        rows = islice(_csv_rows(file) if texts else _json_rows(file), _MAX_ROWS)
        attributes = attributes_of_rows(rows, uids=uids, texts=texts, assume_utc=assume_utc)
        return EventType(name=name, attributes=attributes, options=options)
    try:
        schema = pq.read_schema(file) if file.suffix not in {".arrow", ".feather"} else _arrow_schema(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MalformedError(f"`{file}` is no Parquet or Arrow file", code="SCHEMA_FORM") from error
    return from_arrow_schema(schema, name, options=options, uids=uids, assume_utc=assume_utc)


def _arrow_schema(file: Path) -> pa.Schema:
    with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as reader:
        return reader.schema


def _spark_schema(file: Path) -> str | None:
    """Read a file as one JSON value; ``None`` when it is rows."""
    text = read_file(file, limit=_MAX_SCHEMA).decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None if "\n" in text.strip() else text
    return None if isinstance(found, dict) and "fields" not in found else text


def _csv_rows(file: Path) -> Iterator[dict[str, object]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as source:
            for row in csv.DictReader(source, strict=True):
                yield {str(name): value for name, value in row.items() if name is not None}
    except (UnicodeDecodeError, csv.Error) as error:
        raise MalformedError(f"`{file}` is no CSV in UTF-8", code="SCHEMA_FORM") from error


def _json_rows(file: Path) -> Iterator[dict[str, object]]:
    with file.open("rb") as source:
        for number, line in enumerate(source, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise MalformedError(f"line {number} of `{file}` is no JSON", code="SCHEMA_FORM") from error
            if not isinstance(row, dict):
                raise MalformedError(f"line {number} of `{file}` is no JSON object", code="SCHEMA_FORM")
            yield row
