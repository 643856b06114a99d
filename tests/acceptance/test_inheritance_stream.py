"""Events of children for subscribers of the parent, through Spark: batches, streams, the command, the delivery job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from inheritance_world import CHILD, PARENT, ROW, SEEN, in_order, make_world

import maia
from maia.testing import Command

KENT = {"plate": "BX51 ABC", "place": "Kent"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home with sealed types."""
    return make_world(tmp_path_factory.mktemp("inheritance") / "home")


def publish(home: Command, kind: str, who: str, name: str, row: dict[str, str]) -> Any:
    """Publish one event under a name, once."""
    table = pa.table({key: [value] for key, value in row.items()})
    return maia.open(home.home).client(who).publish(table, kind, publication=name)


@pytest.fixture
def published(spark: Any, home: Command) -> None:
    """Publish an event of each type, and one of the child by whoever has no right on the parent; once."""
    publish(home, CHILD, "camera", "pursuit", ROW)
    publish(home, PARENT, "camera", "plain", KENT)
    publish(home, CHILD, "patrol", "patrol", {**ROW, "unit": "Sierra 2"})


@pytest.mark.requirement("2.13")
@pytest.mark.requirement("23.09")
def test_a_subscriber_of_the_parent_reads_childrens_events(spark: Any, published: None, home: Command) -> None:
    """By Python, `format("maia")` and the command: the parent's attributes, and of nobody without a right on it."""
    again = publish(home, CHILD, "patrol", "patrol", {**ROW, "unit": "Sierra 2"})
    assert again.repeated
    seen = maia.open(home.home).client("parents").read(PARENT)
    assert seen.columns == ["plate", "place"]
    assert in_order([row.asDict() for row in seen.collect()]) == in_order([SEEN, KENT])
    frame = spark.read.format("maia").option("home", str(home.home)).option("as", "parents").option("type", PARENT)
    assert [row.asDict() for row in frame.load().where("place = 'Euston'").collect()] == [SEEN]
    ran = home("subscribe", "--type", PARENT, "--as", "parents", "--format", "json")
    assert in_order(ran.lines) == in_order([SEEN, KENT])
    whole = maia.open(home.home).client("reader").read(CHILD).where("plate is not null").collect()
    assert [row.asDict() for row in whole] == [ROW]
    assert home.refused("subscribe", "--type", CHILD, "--as", "parents")[0] == 3


@pytest.mark.requirement("2.13")
def test_a_stream_of_the_parent_gets_each_childs_event_once(
    spark: Any, published: None, home: Command, tmp_path: Path
) -> None:
    """Over restarts, with a child's event that comes between, and a type that is first extended while it runs."""
    told: list[dict[str, Any]] = []

    def look() -> None:
        stream = maia.open(home.home).client("parents").subscribe(PARENT)
        query = stream.writeStream.foreachBatch(lambda batch, _: told.extend(row.asDict() for row in batch.collect()))
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query.start().awaitTermination()

    look()
    before = len(told)
    assert SEEN in told
    home.do("type", "define", "met/Chase@1", "--extends", f"met/{CHILD}@1", "--attribute", "outcome:string:9")
    for who, action in (("broker", "publish"), ("broker", "subscribe"), ("camera", "publish")):
        home.grant("--from", "met", "--to", who, "--type", "met/Chase", "--action", action)
    publish(home, "Chase", "camera", "chase", {**ROW, "plate": "CD1", "outcome": "caught"})
    publish(home, CHILD, "camera", "next", {**ROW, "plate": "EF2"})
    look()
    look()
    assert sorted(row["plate"] for row in told[before:]) == ["CD1", "EF2"]
    assert {tuple(row) for row in told} == {("plate", "place")}


@pytest.mark.requirement("2.13")
def test_the_delivery_job_serves_subscribers_of_parent_and_child(published: None, home: Command) -> None:
    """One pass over the child's lane fills both outboxes, each with what its rights show; nothing becomes a letter."""
    home.do("deliver", "add", "vehicles", "--as", "parents", "--type", PARENT)
    home.do("deliver", "add", "pursuits", "--as", "children", "--type", CHILD)
    home.do("deliver", "--once")
    vehicles = home("deliver", "show", "vehicles", "--as", "parents", "--json").lines
    pursuits = home("deliver", "show", "pursuits", "--as", "children", "--json").lines
    assert SEEN in [{name: row[name] for name in ("plate", "place")} for row in vehicles]
    assert not any("unit" in row for row in vehicles)
    assert {"Sierra 1", "Sierra 2"} <= {row["unit"] for row in pursuits}
    assert {(row["plate"], row["place"]) for row in pursuits} == {(None, None)}
    refused = home.do("audit", "--kind", "refuse")["rows"]
    assert [row for row in refused if row["subject"] == "dead letters"] == []
