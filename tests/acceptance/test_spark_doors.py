"""Spark's doors: `format("maia")`, SQL, and frames of every kind, in a session that somebody else made."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import maia
from maia.errors import DeniedError, MaiaError, NotFoundError, RowsRefusedError, UsageError
from maia.testing import TYPE_NAME, NumberplateHomes, numberplate_homes

AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
ROWS = [
    {"numberplate": "AE05 XYZ", "timestamp": AT, "location": "Paddington"},
    {"numberplate": "BX51 ABC", "timestamp": AT, "location": "Victoria"},
]
SCHEMA = pa.schema(
    [("numberplate", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC")), ("location", pa.string())]
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the homes of the network once."""
    return numberplate_homes(tmp_path_factory.mktemp("doors"), network=True)


@pytest.fixture
def published(spark: Any, world: NumberplateHomes) -> Any:
    """Let the camera publish two sightings, once for all tests of this file."""
    table = pa.Table.from_pylist(ROWS, schema=SCHEMA)
    return maia.open(world.ccs).client("CCTV").publish(table, TYPE_NAME, publication="two")


def options(world: NumberplateHomes, client: str) -> dict[str, str]:
    """Give the options of a client of the congestion charge service."""
    return {"home": str(world.ccs), "type": TYPE_NAME, "as": client}


def test_what_became_of_a_publication_is_said(published: Any, world: NumberplateHomes) -> None:
    """Events, refusals by code and column, and the commit; published again it counts once."""
    assert (published.events, published.refused) == (2, {})
    camera = maia.open(world.ccs).client("CCTV")
    again = camera.publish(pa.Table.from_pylist(ROWS, schema=SCHEMA), TYPE_NAME, publication="two")
    assert (again.events, again.repeated, again.commit) == (2, True, published.commit)
    wrong = pd.DataFrame({"numberplate": [7], "Location": ["Euston"]})
    with pytest.raises(
        RowsRefusedError, match="1 row is refused, so nothing is published: VALUE_TYPE in `num"
    ) as raised:
        camera.publish(wrong[["numberplate"]], TYPE_NAME)
    refused = raised.value.published
    assert (refused.events, refused.refused) == (0, {("VALUE_TYPE", "numberplate"): 1})
    assert "VALUE_TYPE in `numberplate`" in str(refused)
    with pytest.raises(RowsRefusedError, match="NO_ATTRIBUTE in `Location`"):
        camera.publish(wrong[["Location"]], TYPE_NAME)


def test_strict_publishes_nothing_when_a_row_is_refused(spark: Any, world: NumberplateHomes) -> None:
    """One row is fine, one is not: the error names the column, and the log has no new commit."""
    domain = maia.open(world.ccs)
    before = domain.client("SO").read(TYPE_NAME).count()
    mixed = pa.table({"numberplate": pa.array(["OK"]), "speed": pa.array([30])})
    with pytest.raises(DeniedError, match="NO_ATTRIBUTE in `speed`") as raised:
        domain.client("CCTV").publish(mixed, TYPE_NAME, strict=True)
    assert raised.value.code == "ROWS_REFUSED"
    assert domain.client("SO").read(TYPE_NAME).count() == before


def test_attributes_and_schema_project(spark: Any, published: Any, world: NumberplateHomes) -> None:
    """`attributes=` and `.schema(…)` choose columns; what the type does not have is refused by name."""
    seen = maia.open(world.ccs).client("SO").read(TYPE_NAME, attributes=["location"])
    assert seen.columns == ["location"]
    assert {row[0] for row in seen.collect()} == {"Victoria"}, "where the camera stands is forced"
    reader = spark.read.format("maia").options(**options(world, "SO"))
    assert reader.schema("location string").load().columns == ["location"]
    for schema, code in (("location int", "SCHEMA_TYPE"), ("speed string", "NO_ATTRIBUTE")):
        with pytest.raises(Exception, match=code):
            spark.read.format("maia").options(**options(world, "SO")).schema(schema).load().count()


def test_closed_cells_stay_closed_in_sql(spark: Any, published: Any, world: NumberplateHomes) -> None:
    """A table of the catalogue and a temporary view are the client's view: the plate is null for statistics."""
    said = ", ".join(f"{name} '{value}'" for name, value in options(world, "SO").items())
    spark.sql("DROP TABLE IF EXISTS sightings")
    spark.sql(f"CREATE TABLE sightings USING maia OPTIONS ({said})")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW seen USING maia OPTIONS ({said})")
    for name in ("sightings", "seen"):
        rows = spark.sql(f"SELECT numberplate, location FROM {name} WHERE location = 'Victoria'").collect()  # noqa: S608
        assert {tuple(row) for row in rows} == {(None, "Victoria")}
    with pytest.raises(Exception, match="NOT_PERMITTED"):
        spark.sql("INSERT INTO sightings VALUES ('X', current_timestamp(), 'Y')")
    spark.sql("DROP TABLE sightings")


def test_a_table_can_be_inserted_into_and_never_overwritten(spark: Any, world: NumberplateHomes) -> None:
    """`INSERT INTO` publishes as the camera; `INSERT OVERWRITE` and `mode("overwrite")` are refused with a reason."""
    said = ", ".join(f"{name} '{value}'" for name, value in options(world, "CCTV").items())
    spark.sql("DROP TABLE IF EXISTS camera")
    spark.sql(f"CREATE TABLE camera USING maia OPTIONS ({said})")
    spark.sql("INSERT INTO camera VALUES ('SQ10 SQL', timestamp '2026-06-01 10:00:00', 'Strand')")
    billing = maia.open(world.ccs).client("BO").read(TYPE_NAME, where="numberplate = 'SQ10 SQL'")
    assert billing.count() == 1
    with pytest.raises(Exception, match="NO_OVERWRITE"):
        spark.sql("INSERT OVERWRITE camera VALUES ('SQ10 SQL', timestamp '2026-06-01 10:00:00', 'Strand')")
    spark.sql("DROP TABLE camera")
    frame = spark.createDataFrame(pa.Table.from_pylist(ROWS, schema=SCHEMA))
    with pytest.raises(Exception, match="the log only grows"):
        frame.write.format("maia").options(**options(world, "CCTV")).mode("overwrite").save()


@pytest.mark.parametrize("pushing", ["true", "false"])
def test_a_frame_that_was_filtered_is_whole_when_it_is_used_again(
    spark: Any, published: Any, world: NumberplateHomes, pushing: str
) -> None:
    """Counted after a filter, or joined with a part of itself, it has all its rows, whatever the session pushes."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushing)
    try:
        frame = spark.read.format("maia").options(**options(world, "BO")).load()
        every = sorted(row[0] for row in frame.select("numberplate").collect())
        part = frame.where("numberplate like 'AE%'").select("numberplate")
        assert sorted(row[0] for row in part.collect()) == [plate for plate in every if plate.startswith("AE")]
        assert 0 < part.count() < frame.count() == len(every)
        assert frame.select("numberplate").union(part).count() == len(every) + part.count()
        left = frame.select("numberplate").join(part.distinct(), "numberplate", "left_anti")
        assert sorted(row[0] for row in left.collect()) == [plate for plate in every if not plate.startswith("AE")]
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_errors_are_maias_and_come_early(spark: Any, world: NumberplateHomes) -> None:
    """At `read`, before any row is asked for: unknown types, closed filters, missing rights; in one line."""
    domain = maia.open(world.ccs)
    with pytest.raises(NotFoundError, match="TYPE_NOT_FOUND"):
        domain.client("BO").read("uk.gov.pito.Nothing")
    with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
        domain.client("SO").read(TYPE_NAME, where="numberplate = 'AE05 XYZ'")
    with pytest.raises(MaiaError, match="NOT_PERMITTED"):
        domain.client("BO").publish(pa.Table.from_pylist(ROWS, schema=SCHEMA), TYPE_NAME)
    with pytest.raises(UsageError, match="not as `list`"):
        domain.client("CCTV").publish(ROWS, TYPE_NAME)  # type: ignore[arg-type]
    with pytest.raises(Exception, match="did you mean `type`") as raised:
        spark.read.format("maia").options(home=str(world.ccs), typ=TYPE_NAME).load()
    assert "Traceback" not in str(raised.value)


def test_the_audit_is_a_table(spark: Any, published: Any, world: NumberplateHomes) -> None:
    """Who published and saw how much, without a value."""
    domain = maia.open(world.ccs)
    domain.client("BO").read(TYPE_NAME).count()
    kinds = {(row["kind"], row["subject"]) for row in domain.audit().collect()}
    assert {("publish", "CCTV"), ("deliver", "BO")} <= kinds


def test_a_domain_tells_its_status_and_grants_from_python(world: NumberplateHomes, tmp_path: Path) -> None:
    """What there is and what is missing; a right that the issuer does not hold is refused."""
    status = maia.open(world.ccs).status()
    assert status.types
    assert all(item.verified for item in status.types)
    with pytest.raises(DeniedError, match="ISSUER_LACKS_RIGHT"):
        maia.open(world.ccs).grant("BO", f"PITO/{TYPE_NAME}@*", by="CCTV", actions=["publish"])
