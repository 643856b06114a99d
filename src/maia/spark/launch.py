"""A session for a program at a terminal: it starts quietly, and says how far it is."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession

from maia.spark.errors import SPARK_KINDS, spark_errors
from maia.spark.session import session

_LITTLE = 32 << 20
_HEARTBEAT = "500ms"
"""How often running tasks say how many rows they have read; Spark's own 10 seconds are longer than most jobs here."""
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def start_spark(*, octets: int | None = None) -> SparkSession:
    """Start a session, or take the one that runs; what the Java machine prints is shown when Maia's log is verbose.

    Args:
        octets: How much there is to work on, when it is known. Little work gets a Java machine that starts sooner and
            would be slower in the long run.

    Raises:
        UnavailableError: There is no Java, or Spark does not start.
    """
    conf = {"spark_driver_extraJavaOptions": _QUICK} if octets is not None and octets < _LITTLE else {}
    conf |= {"spark_executor_heartbeatInterval": _HEARTBEAT}
    if logging.getLogger("maia").isEnabledFor(logging.DEBUG):
        return session(**conf)
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())  # the bridge to Java logs what is reported anyway
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
            os.dup2(nowhere.fileno(), 2)
        with spark_errors():
            return session(spark_log_level="OFF", **conf)
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the running jobs are: tasks done of all, and rows that were read by the tasks that are done."""

    done: int = 0
    tasks: int = 0
    rows: int = 0


def progress_of(spark: SparkSession) -> Progress:
    """Look at the jobs that run now; nothing is known when nothing runs, or Spark does not say."""
    with suppress(*SPARK_KINDS, OSError, AttributeError):
        stages = spark.sparkContext._jsc.sc().statusStore().activeStages()  # noqa: SLF001 - Spark's own door
        found = [stages.apply(number) for number in range(stages.size())]
        return Progress(
            done=sum(stage.numCompleteTasks() for stage in found),
            tasks=sum(stage.numTasks() for stage in found),
            rows=sum(stage.inputRecords() for stage in found),
        )
    return Progress()
