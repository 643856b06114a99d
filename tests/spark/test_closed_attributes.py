"""A type whose owner wants no trace of closed attributes: they are no columns, wherever a client looks (choice C2)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from network import CCS_SUBSCRIPTIONS, MET_SUBSCRIPTIONS, Network, build, delivered, publish_here, sightings

from maia.domain import Domain, DomainPlans, HomeKeys, delivery_job
from maia.events import ClosedAttributes
from maia.log import EVENT, SUBSCRIPTION
from maia.spark import deliver
from maia.testing import TYPE_NAME

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    # pyspark leaves sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
COLUMNS = {
    "BO": ["numberplate", "timestamp"],
    "SO": ["timestamp", "location"],
}


@pytest.fixture
def silent(tmp_path: Path) -> Network:
    """Give the network with a type that leaves no trace."""
    return build(tmp_path / "net", closed=ClosedAttributes.OMIT)


def read(spark: Any, network: Network, who: str, **more: str) -> Any:
    """Read the log as a client."""
    return spark.read.format("maia").options(home=str(network.ccs), type=TYPE_NAME, **{"as": who}, **more).load()


def test_frames_have_no_column_for_a_closed_attribute(spark: Any, silent: Network, tmp_path: Path) -> None:
    """Batch and stream: the schema and the rows hold what is open; the event's id is there when it is asked for."""
    frame = spark.createDataFrame(sightings(["AE05 XYZ", "BX51 ABC"]).to_pandas())
    writer = frame.write.format("maia").options(home=str(silent.ccs), type=TYPE_NAME, **{"as": "CCTV"})
    writer.mode("append").save()
    for who, names in COLUMNS.items():
        assert read(spark, silent, who).columns == names
    rows = read(spark, silent, "BO", withEventId="true").collect()
    assert sorted(row["numberplate"] for row in rows) == ["AE05 XYZ", "BX51 ABC"]
    assert rows[0].asDict().keys() == {"numberplate", "timestamp", "_event", "_stamp"}
    assert {row["location"] for row in read(spark, silent, "SO").collect()} == {"Victoria"}
    seen: list[Any] = []
    stream = spark.readStream.format("maia").options(home=str(silent.ccs), type=TYPE_NAME, **{"as": "SO"}).load()
    query = stream.writeStream.foreachBatch(lambda batch, _: seen.extend(batch.collect()))
    query.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert [list(row.asDict()) for row in seen] == [COLUMNS["SO"]] * 2
    with pytest.raises(Exception, match=r"NOT_PERMITTED|NO_EVIDENCE|CHAIN"):
        read(spark, silent, "CCTV")


def test_stages_show_what_is_open_to_one_of_the_subscriptions(spark: Any, silent: Network, tmp_path: Path) -> None:
    """A view of several subscriptions has the columns that one of them may see; the others' cells are null there."""
    publish_here(silent, "a", [sightings(["AE05 XYZ"])])
    [commit] = silent.log.commits()
    [plan] = DomainPlans(Domain.open(str(silent.ccs)), CCS_SUBSCRIPTIONS[:1])([commit], datetime.now(UTC)).plans
    parcels = spark.read.parquet(str(silent.log.path / commit.files[0].path))
    [row] = deliver(parcels, plan, HomeKeys(str(silent.ccs))).collect()
    assert "location" not in row.asDict()
    assert (row["numberplate"], row[SUBSCRIPTION]) == ("AE05 XYZ", "billing")
    [both] = DomainPlans(Domain.open(str(silent.ccs)), CCS_SUBSCRIPTIONS)([commit], datetime.now(UTC)).plans
    found = {item[SUBSCRIPTION]: item for item in deliver(parcels, both, HomeKeys(str(silent.ccs))).collect()}
    assert (found["billing"]["location"], found["statistics"]["location"]) == (None, "Victoria")
    assert found["billing"][EVENT] == found["statistics"][EVENT]


def test_outboxes_hold_no_column_for_a_closed_attribute(silent: Network) -> None:
    """What rests for a subscription names only what is open to it."""
    publish_here(silent, "a", [sightings(["AE05 XYZ"])])
    for home, wanted in ((silent.ccs, CCS_SUBSCRIPTIONS), (silent.met, MET_SUBSCRIPTIONS)):
        delivery_job(Domain.open(home), wanted).run_here()
    ccs, met = (
        delivery_job(Domain.open(silent.ccs), CCS_SUBSCRIPTIONS),
        delivery_job(Domain.open(silent.met), MET_SUBSCRIPTIONS),
    )
    names = {
        name: [key for key in next(delivered(job, name)) if not key.startswith("_")]
        for job, name in ((ccs, "billing"), (ccs, "statistics"), (met, "detective"))
    }
    everything = ["numberplate", "timestamp", "location"]
    assert names == {"billing": COLUMNS["BO"], "statistics": COLUMNS["SO"], "detective": everything}
    for path in ccs.outbox.path.rglob("*.parquet"):
        assert path.parent.name == "dead" or (b"numberplate" in path.read_bytes()) != (b"location" in path.read_bytes())
