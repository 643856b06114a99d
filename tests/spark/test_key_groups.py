"""Key groups under Spark: keys change between micro-batches and nothing is lost; who may only read cannot write."""

from __future__ import annotations

import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "scenarios"))

from key_network import LEAD, Network, build

from maia.kernel import Sealing, event_base, seal_batch
from maia.log import read_audit
from maia.testing import TYPE_NAME

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    # pyspark leaves sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(params=[False, True], ids=["plain ids", "keyed ids"])
def network(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Network]:
    """The network with its keys, in the time of the clock."""
    made = build(tmp_path, keyed=request.param, ago=timedelta(seconds=300))
    for name in ("ccs", "met"):
        made.join(name)
    made.pass_time(10)
    yield made
    made.close()


def read(spark: Any, network: Network, home: str, who: str) -> list[tuple[Any, Any]]:
    """Read the log by Spark, as a client sees it."""
    options = {"home": str(network.homes[home].path), "type": TYPE_NAME, "as": who}
    rows = spark.read.format("maia").options(**options).load().collect()
    return sorted(((row["numberplate"], row["location"]) for row in rows), key=str)


def test_stream_goes_on_while_keys_and_ids_change(spark: Any, network: Network, tmp_path: Path) -> None:
    """Each micro-batch is sealed under keys of its own epoch; the detective reads all of them, each once."""
    folder = tmp_path / "in"
    folder.mkdir()
    schema = "numberplate string, timestamp timestamp, location string"
    for number in range(3):
        table = pa.Table.from_batches([network.rows(["AE05 XYZ", f"P{number}"])])
        pq.write_table(table, folder / f"{number}.parquet")
        frame = spark.readStream.schema(schema).parquet(str(folder))
        options = {"home": str(network.homes["ccs"].path), "type": TYPE_NAME, "as": "CCTV", "publication": "cameras"}
        writer = frame.writeStream.format("maia").options(**options).trigger(availableNow=True)
        stream = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        stream.awaitTermination()
        network.now = datetime.now(UTC)
        network.refresh_all()
        time.sleep(LEAD.total_seconds())  # until the new epoch has begun
    parcels = network.parcels()
    assert len({parcel.header.epoch for parcel in parcels}) == 3
    assert len({parcel.header.type_id for parcel in parcels}) == (3 if network.keyed else 1)
    assert read(spark, network, "met", "Smith") == [("AE05 XYZ", "Victoria")] * 3
    assert len(read(spark, network, "ccs", "BO")) == 6


@pytest.mark.threat("T69")
def test_forgery_of_a_reader_is_refused_by_every_other_broker(spark: Any, network: Network) -> None:
    """MB has every key and signs with its own: Spark delivers the true event, and the audit names the forgeries."""
    network.publish("true", ["AE05 XYZ"])
    (true,) = network.parcels()
    met = network.homes["met"]
    own = network.log.put_evidence(tuple(item.raw for item in network.people.some("Cap12", "Cap13")))
    rows = network.transit(["AE05 XYZ"])
    for number, evidence in enumerate((own, true.header.evidence)):
        sealing = Sealing(
            type_id=true.header.type_id, key_type=network.event_type.type_id, mode=true.header.mode, evidence=evidence
        )
        parcel = seal_batch(
            rows, sealing, met.broker, met.keyring(), stamp=network.stamp(), parcel_id=secrets.token_bytes(16),
            event_base=event_base(met.broker, "forged", 0, number),
        )  # fmt: skip
        network.commit(
            f"forged {number}", [parcel], origin=met.broker.public_key.key_id, evidence=evidence,
            type_id=true.header.type_id,
        )  # fmt: skip
    assert read(spark, network, "ccs", "BO") == [("AE05 XYZ", None)]
    refused: Counter[str] = Counter()
    for row in read_audit(network.homes["ccs"].path / "audit"):
        if row.kind == "refuse":
            refused[row.code] += row.events
    assert refused == {"ORIGIN_NOT_PROVEN": 2}
