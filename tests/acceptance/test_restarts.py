"""What is killed is tried again, and what cannot be audited does not happen."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import maia
from maia.errors import UnavailableError
from maia.testing import TYPE_NAME, NumberplateHomes, numberplate_homes

AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
PLATES = ["AE05 XYZ", "BX51 ABC", "CD02 DEF"]
SCHEMA = pa.schema(
    [("numberplate", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC")), ("location", pa.string())]
)


@pytest.fixture
def homes(spark: Any, tmp_path: Path) -> NumberplateHomes:
    """Give the homes, with three sightings in the log."""
    made = numberplate_homes(tmp_path)
    rows = [{"numberplate": plate, "timestamp": AT, "location": "Euston"} for plate in PLATES]
    maia.open(made.ccs).client("CCTV").publish(pa.Table.from_pylist(rows, schema=SCHEMA), TYPE_NAME)
    return made


@pytest.mark.fault("F03")
def test_a_stream_survives_a_killed_worker(spark: Any, homes: NumberplateHomes, tmp_path: Path) -> None:
    """The first worker that sees a row is killed with -9: its task runs again, and every row comes once."""
    mark, found = tmp_path / "killed", tmp_path / "found"

    def die_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    frame = maia.open(homes.ccs).client("BO").subscribe(TYPE_NAME)
    killing = frame.mapInArrow(die_once, frame.schema)
    writer = killing.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "place"))
    query = writer.trigger(availableNow=True).start(str(found))
    query.awaitTermination()
    assert mark.exists()
    assert sorted(row["numberplate"] for row in spark.read.parquet(str(found)).collect()) == PLATES


@pytest.mark.fault("F06")
def test_what_cannot_be_audited_is_not_planned(homes: NumberplateHomes) -> None:
    """The audit cannot be written: a read ends before anything is planned, and says why."""
    client = maia.open(homes.ccs).client("BO")
    put_in_the_way(homes)
    with pytest.raises(UnavailableError) as refused:
        client.read(TYPE_NAME)
    assert refused.value.code == "AUDIT_UNAVAILABLE"


@pytest.mark.fault("F06")
def test_what_cannot_be_audited_is_not_shown(homes: NumberplateHomes) -> None:
    """The audit cannot be written any more when a planned read runs: the reader gets no row, and is told why."""
    frame = maia.open(homes.ccs).client("BO").read(TYPE_NAME)
    put_in_the_way(homes)
    with pytest.raises(PySparkException, match="AUDIT_UNAVAILABLE"):
        frame.collect()


def put_in_the_way(homes: NumberplateHomes) -> None:
    """Put a file where the audit has its folder."""
    shutil.rmtree(homes.ccs / "audit")
    (homes.ccs / "audit").write_text("in the way", "utf-8")
