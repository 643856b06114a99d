"""A Spark job under test, run as a process of its own: publishes a stream of canaries and delivers it to two domains.

Usage: spark_driver.py ROOT WORD-REVERSED [setting=value …]. Everything that Spark leaves on disk goes below ROOT.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

os.environ["MAIA_KILL_GROUP"] = str(os.getpgid(0))

from network import CCS_SUBSCRIPTIONS, MET_SUBSCRIPTIONS
from tasks import canaries

from maia.domain import Domain, delivery_job
from maia.spark import session, start_job
from maia.testing import TYPE_NAME


def main(root: Path, reversed_word: str, settings: dict[str, str]) -> None:
    """Do all the work there is, from wherever the last run ended."""
    (root / "events").mkdir(exist_ok=True)
    (root / "java").mkdir(exist_ok=True)
    spark = session(
        **{
            "spark_master": "local[2]",
            "spark_driver_memory": "1g",
            "spark_local_dir": str(root / "local"),
            "spark_eventLog_enabled": "true",
            "spark_eventLog_dir": (root / "events").as_uri(),
            "spark_driver_extraJavaOptions": f"-Djava.io.tmpdir={root / 'java'}",
            **settings,
        }
    )
    numbers = spark.readStream.schema("number long").option("maxFilesPerTrigger", "2").parquet(str(root / "in"))
    rows = numbers.repartition(2).mapInArrow(
        partial(canaries, reversed_word), "numberplate string, timestamp timestamp, location string"
    )
    options = {"home": str(root / "net" / "ccs"), "type": TYPE_NAME, "as": "CCTV", "publication": "canaries"}
    writer = rows.writeStream.format("maia").options(**options)
    writer = writer.option("checkpointLocation", str(root / "checkpoint-publish"))
    writer.trigger(availableNow=True).start().awaitTermination()
    for home, wanted in (("ccs", CCS_SUBSCRIPTIONS), ("met", MET_SUBSCRIPTIONS)):
        job = delivery_job(Domain.open(root / "net" / home), wanted)
        start_job(job, spark, root / f"checkpoint-{home}", once=True).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], dict(item.split("=", 1) for item in sys.argv[3:]))
