"""Types from what a user has: a Parquet or Arrow file, a Spark schema as JSON, a sample in CSV or JSON lines, a frame.

All columns that do not fit are named at once, each with what to do about it.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from maia.encoding import did_you_mean
from maia.errors import MalformedError, NotFoundError, UsageError
from maia.events import (
    DECIMAL_PRECISION,
    EventType,
    Options,
    TypeName,
    UidPolicy,
    ValueType,
    arrow_type,
    attributes_of_rows,
    from_arrow_schema,
    from_spark_json,
)
from maia.home.files import read_file

_MAX_ROWS = 10_000
_MAX_SCHEMA = 64 << 20
_SAMPLES = {".csv", ".json", ".jsonl", ".ndjson"}


def is_sample(file: Path) -> bool:
    """Tell whether types are guessed from the rows of a file, which has no schema."""
    suffix = file.suffix.lower()
    return suffix in _SAMPLES and (suffix != ".json" or _spark_schema(file) is None)


def read_schema(
    file: Path,
    name: TypeName,
    *,
    options: Options,
    uids: UidPolicy,
    assume_utc: bool,
    chosen: Mapping[str, ValueType | None] | None = None,
) -> EventType:
    """Derive a definition from a file; of CSV and JSON the first 10,000 rows are looked at, of others none.

    Args:
        file: The file.
        name: Of the version to define.
        options: How its events travel.
        uids: Where uids come from.
        assume_utc: Read times without a zone as UTC.
        chosen: The types that columns have whatever the file says; ``None`` leaves a column out.

    Raises:
        NotFoundError: There is no such file.
        UsageError: It has no column that was chosen, ``NO_SUCH_COLUMN``; or it is a Spark schema: ``SCHEMA_CHOSEN``.
        MalformedError: It is nothing of the kind, or columns do not fit; all of them are named.
    """
    if not file.is_file():
        raise NotFoundError(f"no file `{file}`", code="NO_SUCH_FILE")
    if file.suffix.lower() == ".json" and (text := _spark_schema(file)) is not None:
        if chosen:
            raise UsageError(f"`{file}` is a schema: change its columns there", code="SCHEMA_CHOSEN")
        return from_spark_json(text, name, options=options, uids=uids, assume_utc=assume_utc)
    if file.suffix.lower() in _SAMPLES:
        texts = file.suffix.lower() == ".csv"
        columns, doubled = set[str](), _doubled(file) if texts else []
        rows = _watched(islice(_csv_rows(file) if texts else _json_rows(file), _MAX_ROWS), columns)
        try:
            attributes = attributes_of_rows(rows, uids=uids, texts=texts, assume_utc=assume_utc, chosen=chosen)
        except MalformedError as error:
            if not doubled:
                raise
            raise MalformedError("; ".join([*doubled, error.message]), code="SCHEMA_FORM") from error
        if doubled:
            raise MalformedError("; ".join(doubled), code="SCHEMA_FORM")
        _check_chosen(chosen, columns)
        return EventType(name=name, attributes=attributes, options=options)
    try:
        schema = pq.read_schema(file) if file.suffix not in {".arrow", ".feather"} else _arrow_schema(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MalformedError(f"`{file}` is no Parquet or Arrow file", code="SCHEMA_FORM") from error
    if chosen:
        _check_chosen(chosen, set(schema.names))
        fields = [field for field in schema if chosen.get(field.name, True) is not None]
        kinds = {column: arrow_type(kind) for column, kind in chosen.items() if kind is not None}
        schema = pa.schema([field.with_type(kinds.get(field.name, field.type)) for field in fields])
    return from_arrow_schema(schema, name, options=options, uids=uids, assume_utc=assume_utc)


def _check_chosen(chosen: Mapping[str, ValueType | None] | None, columns: set[str]) -> None:
    for column in chosen or ():
        if column not in columns:
            message = f"there is no column `{column}`{did_you_mean(column, columns)}"
            raise UsageError(message, code="NO_SUCH_COLUMN")


def frame_schema(frame: Any, name: TypeName, *, options: Options, uids: UidPolicy, assume_utc: bool) -> EventType:  # noqa: ANN401 - frames of three makers, none of which is loaded for this
    """Derive a definition from a frame of Spark or pandas, or from Arrow; no row of Spark's is looked at.

    Raises:
        UsageError: It is no frame: ``NO_ROWS``.
        MalformedError: Columns do not fit; all of them are named.
    """
    if isinstance(frame, pa.Schema):
        schema = frame
    elif isinstance(frame, pa.Table | pa.RecordBatch):
        schema = frame.schema
    elif hasattr(frame, "iloc"):  # of pandas
        schema = pa.schema([_pandas_field(str(label), frame.iloc[:, at]) for at, label in enumerate(frame.columns)])
    elif hasattr(frame, "schema") and hasattr(frame.schema, "json"):
        return from_spark_json(frame.schema.json(), name, options=options, uids=uids, assume_utc=assume_utc)
    else:
        message = (
            f"a type comes from a file, or from a frame of Spark, pandas or Arrow, not from `{type(frame).__name__}`"
        )
        raise UsageError(message, code="NO_ROWS")
    return from_arrow_schema(schema, name, options=options, uids=uids, assume_utc=assume_utc)


def _pandas_field(name: str, column: object) -> pa.Field:
    """Tell what Arrow makes of a column; what it cannot make anything of is refused by name, with the others."""
    try:
        kind = pa.Array.from_pandas(column).type
        # Of decimals pandas knows those that are there: the next may have more digits before the point.
        return pa.field(name, pa.decimal128(DECIMAL_PRECISION, kind.scale) if pa.types.is_decimal128(kind) else kind)
    except (pa.ArrowException, TypeError, ValueError):
        return pa.field(name, pa.null())


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
    if isinstance(found, list):
        message = f"`{file}` holds one JSON array: write its elements as JSON lines, one object a line"
        raise MalformedError(message, code="SCHEMA_FORM")
    return None if isinstance(found, dict) and "fields" not in found else text


def _doubled(file: Path) -> list[str]:
    """Say which names the header of a CSV file has more than once."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as source:
            counts = Counter(next(csv.reader(source, strict=True), []))
    except (UnicodeDecodeError, csv.Error):
        return []  # told when its rows are read
    return [
        f"the header of `{file}` has the column `{name}` {times} times: give each its own name"
        for name, times in counts.items()
        if times > 1
    ]


def _watched(rows: Iterator[dict[str, object]], columns: set[str]) -> Iterator[dict[str, object]]:
    """Note the columns of rows that pass."""
    for row in rows:
        columns.update(row)
        yield row


def _csv_rows(file: Path) -> Iterator[dict[str, object]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as source:
            reader = csv.DictReader(source, strict=True)
            for row in reader:
                if None in row:
                    message = f"line {reader.line_num} of `{file}` has more cells than the header has columns"
                    raise MalformedError(message, code="SCHEMA_FORM")
                yield dict(row)
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
