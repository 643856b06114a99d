"""Schemas of files: Parquet, Arrow, or a Spark schema as JSON."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.cli.read.files import read_source
from maia.errors import MalformedError, NotFoundError
from maia.events import EventType, Options, TypeName, UidPolicy, from_arrow_schema, from_spark_json


def read_schema(file: Path, name: TypeName, *, options: Options, uids: UidPolicy, assume_utc: bool) -> EventType:
    """Derive a definition from the schema of a file; its rows are not read.

    Raises:
        NotFoundError: There is no such file.
        MalformedError: It is no Parquet or Arrow file and no Spark schema, or a column does not fit.
    """
    if not file.is_file():
        raise NotFoundError(f"no file `{file}`", code="NO_SUCH_FILE")
    if file.suffix == ".json":
        return from_spark_json(read_source(str(file)).decode("utf-8", "replace"), name, options=options, uids=uids)
    try:
        schema = pq.read_schema(file) if file.suffix not in {".arrow", ".feather"} else _arrow_schema(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise MalformedError(f"`{file}` is no Parquet or Arrow file", code="SCHEMA_FORM") from error
    return from_arrow_schema(schema, name, options=options, uids=uids, assume_utc=assume_utc)


def _arrow_schema(file: Path) -> pa.Schema:
    with pa.OSFile(str(file)) as source, pa.ipc.open_file(source) as reader:
        return reader.schema
