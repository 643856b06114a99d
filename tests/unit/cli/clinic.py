"""A clinic for the tests of the stream commands: a home made by the command line, and publishing without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from maia.domain import commit_publication, own_lanes, publication_operation, write_partition
from maia.events import to_arrow_schema
from maia.home import Home
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
    now = datetime.now(UTC)
    told = publication_operation(home, made, client="lab", at=now).number
    written = write_partition(home, made, 0, iter([batch]), at=now)
    lanes = own_lanes(home, LogDirectory(home.log_path))
    commit_publication(home, lanes, made, [written], client="lab", operation=told, at=now)


def data_files(home: Home) -> list[Path]:
    """List the files of parcels."""
    return sorted(home.log_path.glob("type=*/origin=*/date=*/*"))
