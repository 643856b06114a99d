"""A Spark session with the settings that Maia's promises need.

A session that the user already has is respected and never changed; `check_session` then says what is missing from it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from maia.errors import UsageError
from maia.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_ROWS = 16_384
SETTINGS: dict[str, str] = {
    "spark.master": "local[*]",
    "spark.app.name": "maia",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # What leaves memory is sealed by Spark too: shuffle files, spills, blocks on the wire.
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
    "spark.eventLog.enabled": "false",
    # `Price` and `price` are two attributes.
    "spark.sql.caseSensitive": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}
REQUIRED = ("spark.sql.caseSensitive", "spark.sql.session.timeZone")


def session(**conf: str) -> SparkSession:
    """Return the active session, or start a local one with Maia's settings.

    Args:
        conf: Further settings, with underscores for dots (``spark_master="local[2]"``); they win over Maia's.

    Raises:
        UnavailableError: There is no Java.
        UsageError: The active session lacks a setting that Maia's meaning depends on.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 - starting Spark is for those who ask for it

    active = SparkSession.getActiveSession()
    if active is not None:
        check_session(active)
        return active
    java = find_java()
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    # Workers must run the Python that has Maia, not the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for name, value in {**SETTINGS, **{key.replace("_", "."): value for key, value in conf.items()}}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def check_session(spark: SparkSession) -> None:
    """Refuse a session under which column names or times would mean something else.

    Raises:
        UsageError: A required setting differs; the message names it.
    """
    for name in REQUIRED:
        if str(spark.conf.get(name, "")).lower() != SETTINGS[name].lower():
            raise UsageError(f"the Spark session needs `{name}` = `{SETTINGS[name]}`", code="SPARK_SETTING")
