"""A program of Spark over a log in a bucket, run as a process: executors have the environment that Java was given."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa

import maia
from maia.testing import TYPE_NAME, Command, spark_session


def main(home: str, folder: str) -> None:
    """Publish by `format("maia")` and by a client, read, follow a stream over a restart and a compaction, deliver."""
    spark = spark_session(Path(folder) / "local")
    camera = {"home": home, "type": TYPE_NAME, "as": "CCTV"}
    billing = {"home": home, "type": TYPE_NAME, "as": "BO"}
    said: dict[str, object] = {}

    def publish(*plates: str) -> None:
        frame = spark.createDataFrame([(plate,) for plate in plates], "numberplate string")
        frame.write.format("maia").options(**camera).mode("append").save()

    def follow() -> list[str]:
        found: list[str] = []
        frame = spark.readStream.format("maia").options(**billing, startingOffsets="earliest").load()
        writer = frame.writeStream.foreachBatch(lambda rows, _: found.extend(row.numberplate for row in rows.collect()))
        query = writer.option("checkpointLocation", str(Path(folder) / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination(120)
        return sorted(found)

    publish("ONE", "TWO")
    domain = maia.open(home)
    table = pa.table({"numberplate": ["THREE"]})
    said["published"] = domain.client("CCTV").publish(table, TYPE_NAME).events
    read = spark.read.format("maia").options(**billing).load()
    said["read"] = sorted(row.numberplate for row in read.collect())
    said["filtered"] = [row.numberplate for row in read.where("numberplate = 'TWO'").collect()]
    said["followed"] = follow()
    said["compacted"] = Command(Path(home)).do("log", "compact")["before"]
    publish("FOUR")
    said["followed on"] = follow()
    said["read on"] = sorted(
        row.numberplate for row in read.sparkSession.read.format("maia").options(**billing).load().collect()
    )
    print(json.dumps(said))  # noqa: T201 - what the test reads
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
