"""A clinic for the tests of the stream commands: a home made by the command line, and publishing without Spark."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from maia.events import to_arrow_schema
from maia.home import Home
from maia.kernel import parcel_row, publish_batches
from maia.log import LogDirectory
from maia.testing import publish_plan

TYPE = "clinic.Result"
ATTRIBUTES = ("patient:string:1", "ward:string:2", "test:string:3", "value:float:4", "taken:timestamp:5")
GRANTS = {
    "broker": ("publish",),
    "lab": ("publish",),
    "doctor": ("subscribe",),
    "researcher": ("subscribe", "--attribute", "2", "--attribute", "3=glucose", "--attribute", "4"),
}


def build(maia: Any) -> Home:
    """Make the home with its keys, the type and the grants."""
    assert maia("domain", "init", str(maia.home)).code == 0
    maia.keys("owner", "lab", "doctor", "researcher", "visitor")
    flags = [flag for text in ATTRIBUTES for flag in ("--attribute", text)]
    ran = maia("type", "define", f"owner/{TYPE}@1", *flags)
    assert ran.code == 0, ran.err
    for name, (action, *rest) in GRANTS.items():
        maia.grant("--from", "owner", "--to", name, "--type", f"owner/{TYPE}", "--action", action, *rest)
    return Home.open(maia.home)


def publish_here(home: Home, publication: str, patients: Iterable[str]) -> None:
    """Publish one result for each patient, without Spark."""
    made = publish_plan(home, TYPE, as_="lab", version=None, publication=publication, at=datetime.now(UTC))
    at = datetime(2026, 6, 1, 8, tzinfo=UTC)
    rows = [{"patient": who, "ward": "A", "test": "glucose", "value": 5.4, "taken": at} for who in patients]
    batch = pa.RecordBatch.from_pylist(rows, schema=to_arrow_schema(made.event_type()))
    log = LogDirectory(home.log_path)
    writer = log.writer(publication, made.sealing.type_id, 0, secrets.token_hex(8), at=datetime.now(UTC))
    for sealed in publish_batches(made, 0, iter([batch]), home.broker, home.keyring(), home.next_stamp):
        if sealed.parcel is not None:
            writer.add(parcel_row(sealed.parcel))
    file = writer.close()
    assert file is not None
    log.commit(
        publication, made.sealing.type_id.hex(), (file,), origin=home.broker.public_key.key_id.hex(),
        evidence=made.sealing.evidence.hex(),
    )  # fmt: skip


def data_files(home: Home) -> list[Path]:
    """List the files of parcels."""
    return sorted(home.log_path.glob("type=*/date=*/*.parquet"))
