"""How far it is to the first protected stream: what a new user types for a Parquet file of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from maia.testing import Command

COMMANDS = """\
domain init . --key
key new lab --no-passphrase
key new ward --no-passphrase
type define domain/Result@1 --attribute patient:string --attribute test:string --attribute value:float
grant --from domain --to broker --type domain/Result --action publish,subscribe
grant --from domain --to lab --type domain/Result --action publish
grant --from domain --to ward --type domain/Result --action subscribe --attribute test=glucose --attribute value
publish {file} --type Result --as lab
subscribe --type Result --as ward --format json
"""


def test_ten_commands_lead_from_a_parquet_file_to_a_protected_stream(spark: Any, tmp_path: Path) -> None:
    """Of the file's rows the ward sees those of its test, without the patient; the log holds no plaintext."""
    file = tmp_path / "results.parquet"
    rows = {"patient": ["Ann", "Bob"], "test": ["glucose", "lead"], "value": [5.4, 0.1]}
    pq.write_table(pa.table(rows), file)
    command = Command(tmp_path / "clinic")
    lines = [line.split() for line in COMMANDS.format(file=file).splitlines()]
    assert len(lines) <= 10
    for words in lines:
        ran = command(*(str(command.home) if word == "." else word for word in words))
        assert ran.code == 0, (words, ran.out, ran.err)
    assert [json.loads(line) for line in ran.out.splitlines()] == [{"patient": None, "test": "glucose", "value": 5.4}]
    assert not [
        path for path in (command.home / "log").rglob("*") if path.is_file() and b"glucose" in path.read_bytes()
    ]
