"""The numberplate stream of the thesis, as its users run it: publish, read and subscribe through `maia.open`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import maia
from maia.testing import TYPE_NAME, NumberplateHomes, numberplate_homes

T1, T2 = datetime(2026, 6, 1, 9, tzinfo=UTC), datetime(2026, 6, 1, 10, tzinfo=UTC)
SCHEMA = pa.schema(
    [("numberplate", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC")), ("location", pa.string())]
)
E1, E2 = ("AE05 XYZ", T1, "Paddington"), ("BX51 ABC", T2, None)


def table(*rows: tuple[Any, ...]) -> pa.Table:
    """Make sightings."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def seen(frame: Any) -> set[tuple[Any, ...]]:
    """Collect what a frame shows, times in UTC."""
    rows = frame.selectExpr("numberplate", "cast(unix_timestamp(timestamp) as bigint)", "location").collect()
    return {tuple(row) for row in rows}


def seconds(moment: datetime) -> int:
    """Give an instant as Spark shows it here."""
    return int(moment.timestamp())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the two homes once."""
    return numberplate_homes(tmp_path_factory.mktemp("numberplate"))


@pytest.fixture
def published(spark: Any, world: NumberplateHomes) -> Any:
    """Let the camera publish e1 and e2, once for all tests of this file."""
    camera = maia.open(world.ccs).client("CCTV")
    return camera.publish(table(E1, E2), TYPE_NAME, publication="e1 and e2")


@pytest.mark.requirement("24.02")
@pytest.mark.requirement("24.01")
@pytest.mark.requirement("5.10")
def test_each_reader_sees_its_own_part_and_the_place_is_forced(published: Any, world: NumberplateHomes) -> None:
    """BO no place, SO no plate, Smith one car; whatever the camera said, it stands at Victoria."""
    ccs, met = maia.open(world.ccs), maia.open(world.met)
    views = {who: seen(home.client(who).read(TYPE_NAME)) for home, who in ((ccs, "BO"), (ccs, "SO"), (met, "Smith"))}
    one, two = seconds(T1), seconds(T2)
    assert published.events == 2
    assert views == {
        "BO": {("AE05 XYZ", one, None), ("BX51 ABC", two, None)},
        "SO": {(None, one, "Victoria"), (None, two, "Victoria")},
        "Smith": {("AE05 XYZ", one, "Victoria")},
    }
