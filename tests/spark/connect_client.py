"""What a person does over Spark Connect, as a program of its own: it is given an address, a home and a folder.

Spark decides once for a process whether it speaks Connect, so this is none of the process of the tests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import maia
from maia.errors import MaiaError
from maia.testing import TYPE_NAME

LIE = ("spark.sql.legacy.setCommandRejectsSparkCoreConfs", "spark.io.encryption.enabled")
SCHEMA = "numberplate string, timestamp timestamp, location string"


def code_of(act: Callable[[], Any]) -> str:
    """Do what must be refused; give the code."""
    try:
        act()
    except MaiaError as error:
        return error.code
    return ""


def main(address: str, home: str, folder: str) -> dict[str, Any]:
    """Publish, read, follow and ask over one session."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    domain, found = maia.open(home), dict[str, Any]()
    camera, office = domain.client("CCTV"), domain.client("BO")
    rows = [(f"P{number}", datetime.now(UTC), "Victoria") for number in range(3)]
    found["published"] = camera.publish(spark.createDataFrame(rows, SCHEMA), TYPE_NAME).events
    found["read"] = sorted(row[0] for row in office.read(TYPE_NAME, attributes=["numberplate"]).collect())

    late = Path(folder) / "late"
    spark.createDataFrame([("P9", datetime.now(UTC), "Victoria")], SCHEMA).write.parquet(str(late))
    stream = spark.readStream.schema(SCHEMA).parquet(str(late))
    query = camera.publish(stream, TYPE_NAME, publication="late")
    query.processAllAvailable()
    query.stop()

    seen = office.subscribe(TYPE_NAME, attributes=["numberplate"]).writeStream.format("parquet")
    seen = seen.option("path", f"{folder}/seen").option("checkpointLocation", f"{folder}/following")
    assert seen.trigger(availableNow=True).start().awaitTermination(120)
    found["followed"] = sorted(row[0] for row in spark.read.parquet(f"{folder}/seen").collect())

    said = {"path": home, "type": TYPE_NAME, "as": "BO", "attributes": "numberplate"}
    written = ", ".join(f"`{name}` '{text}'" for name, text in said.items())
    spark.sql(f"CREATE TEMPORARY VIEW sightings USING maia OPTIONS ({written})")
    found["sql"] = spark.sql("SELECT count(*) FROM sightings").collect()[0][0]

    found["refused"] = code_of(lambda: camera.read(TYPE_NAME).collect())
    found["by task"] = code_of(lambda: camera.look(TYPE_NAME))
    found["labelled"] = code_of(lambda: office.labelled(TYPE_NAME))
    spark.conf.set(LIE[0], "false")
    spark.conf.set(LIE[1], "false")
    found["said"], found["believed"] = spark.conf.get(LIE[1]), code_of(lambda: maia.prepare(spark))
    spark.stop()
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:4])))
