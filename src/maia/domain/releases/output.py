"""What is released to a file: Parquet or JSON lines, whole or absent, for its owner alone to read."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.errors import UsageError
from maia.events import value_to_json
from maia.home import PRIVATE_FILE, write_file

FORMATS = (".jsonl", ".parquet")


def write_release(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write what is released, in one step.

    Raises:
        UsageError: The file's name says no format: ``RELEASE_FILE``.
    """
    check_output(path)
    out = io.BytesIO()
    if path.suffix == ".parquet":
        with pq.ParquetWriter(out, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    else:
        for batch in batches:
            for row in batch.to_pylist():
                line = json.dumps({name: value_to_json(value) for name, value in row.items()}, ensure_ascii=False)
                out.write(line.encode() + b"\n")
    write_file(path, out.getvalue(), mode=PRIVATE_FILE)


def check_output(path: Path) -> None:
    """Refuse a file whose name says no format.

    Raises:
        UsageError: ``RELEASE_FILE``.
    """
    if path.suffix not in FORMATS:
        raise UsageError(f"a release is written to a file that ends in {' or '.join(FORMATS)}", code="RELEASE_FILE")
