"""A Spark session with the settings that Maia's promises need.

Rules kept here, for every door that leads into Spark:

- what leaves Spark's memory is sealed by Spark: a session without IO encryption (and, beyond one machine, without
  network encryption) is refused, unless the domain says in ``maia.toml`` that its disks are protected otherwise;
- names of columns and instants mean what they say: case counts, and times are in UTC. Both can be set while a session
  runs, so `prepare_session` sets them; where only a task can look (`check_task`) they are demanded;
- a passphrase or a database's address in the environment of the process goes neither to the Java machine nor to the
  workers, and a secret that Spark needs stands in no command line;
- a task whose worker was killed runs again, on one machine too;
- a message names each setting that is missing and how to set it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from maia.errors import UsageError
from maia.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_ROWS = 16_384
SETTINGS: dict[str, str] = {
    "spark.master": "local[*,4]",  # the second number: how often a task is tried
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
MEANING = ("spark.sql.caseSensitive", "spark.sql.session.timeZone")
"""What names and instants mean; can be set while a session runs."""
_FASTER = {"spark.sql.python.filterPushdown.enabled": "true"}
_SECRET = "spark.authenticate.secret"  # noqa: S105 - a name
_SECRETS = ("MAIA_PASSPHRASE", "MAIA_DATABASE_URL")
_SEALED = ("spark.io.encryption.enabled",)
_SEALED_BEYOND = (*_SEALED, "spark.network.crypto.enabled")


def session(**conf: str) -> SparkSession:
    """Return the active session, or start a local one with Maia's settings; `prepare_session` says whether it will do.

    Args:
        conf: Further settings, with underscores for dots (``spark_master="local[2]"``); they win over Maia's.

    Raises:
        UnavailableError: There is no Java.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - starting Spark is for those who ask for it
    from pyspark.sql import SparkSession  # noqa: PLC0415 - starting Spark is for those who ask for it

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    java = find_java()
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    # Workers must run the Python that has Maia, not the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    wanted = {**SETTINGS, **_FASTER, **{key.replace("_", "."): value for key, value in conf.items()}}
    # Spark makes a secret of its own on one machine, on YARN and on Kubernetes only.
    secret = wanted.pop(_SECRET, secrets.token_hex(32))
    builder = SparkSession.builder
    for name, value in wanted.items():
        builder = builder.config(name, value)
    with _withheld():
        if not wanted["spark.master"].startswith("local["):
            # SECURITY: settings that are there when the Java machine starts stand in its command line; this one comes
            # after, over the bridge.
            SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(wanted.items())))  # noqa: SLF001
            builder = builder.config(_SECRET, secret)
        return builder.getOrCreate()


@contextmanager
def _withheld() -> Iterator[None]:
    """Keep what is secret out of the environment while a process is started."""
    kept = {name: os.environ.pop(name) for name in _SECRETS if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(kept)


def prepare_session(spark: SparkSession, *, trusted: bool) -> None:
    """Set what can be set in a session that somebody else made, and refuse it when the rest is not as it must be.

    Args:
        spark: The session.
        trusted: Whether the disks that Spark spills to are protected otherwise.

    Raises:
        UsageError: It does not seal what leaves its memory: ``SPARK_SETTING``.
    """
    # SECURITY: what a running context does is what it was started with; a session built on top of it may say otherwise.
    started = spark.sparkContext.getConf()
    found = {name: started.get(name, None) or "" for name in ("spark.master", *_SEALED_BEYOND)}
    _check(_missing(found, trusted=trusted, meaning=False))
    for name in MEANING:
        if (spark.conf.get(name) or "").lower() != SETTINGS[name].lower():
            spark.conf.set(name, SETTINGS[name])
    for name, value in _FASTER.items():
        spark.conf.set(name, value)
    # A job on a frame's RDD is none of SQL's, and carries no settings of the session: its tasks find them here.
    for name, value in (found | {name: SETTINGS[name] for name in MEANING}).items():
        spark.sparkContext.setLocalProperty(name, value)


def check_python(spark: SparkSession) -> None:
    """Refuse a session whose workers run a Python without Maia; there Spark finds no ``format("maia")``.

    Raises:
        UsageError: They do: ``SPARK_PYTHON``.
    """
    python = str(spark.sparkContext.pythonExec)
    found = shutil.which(python)
    if found is not None and Path(found).absolute() == Path(sys.executable).absolute():
        return
    look = [] if found is None else [found, "-c", "import pyspark_maia"]
    if not look or subprocess.run(look, capture_output=True, check=False).returncode != 0:  # noqa: S603 - Spark runs it
        raise UsageError(
            f"Spark's workers run `{python}`, which has no Maia: set the variable PYSPARK_PYTHON to "
            f"`{sys.executable}` before the session is built, or activate the environment that has Maia",
            code="SPARK_PYTHON",
        )


def check_task(*, trusted: bool) -> None:
    """Look at the session from inside one of its tasks, before a key is touched.

    Raises:
        UsageError: A setting is missing: ``SPARK_SETTING``.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - runs on a worker

    context = TaskContext.get()
    if context is None:
        return
    names = ("spark.master", *_SEALED_BEYOND, *MEANING)
    found = {name: context.getLocalProperty(name) or "" for name in names}
    _check(_missing(found, trusted=trusted, meaning=True))


def _missing(found: Mapping[str, str], *, trusted: bool, meaning: bool) -> list[str]:
    local = found["spark.master"].startswith("local") and not found["spark.master"].startswith("local-cluster")
    sealed = () if trusted else _SEALED if local else _SEALED_BEYOND
    wanted = (*sealed, *(MEANING if meaning else ()))
    return [name for name in wanted if found[name].lower() != SETTINGS[name].lower()]


def _check(missing: list[str]) -> None:
    if not missing:
        return
    now = [f'spark.conf.set("{name}", "{SETTINGS[name]}")' for name in missing if name in MEANING]
    first = [f'.config("{name}", "{SETTINGS[name]}")' for name in missing if name not in MEANING]
    ways = []
    if first:
        ways.append(
            f"stop the session and build a new one with {' '.join(first)}, or say in `maia.toml` that Spark's disks "
            'are protected otherwise: spill = "trusted"'
        )
    if now:
        ways.append(f"run {'; '.join(now)}")
    raise UsageError(
        f"the Spark session lacks {', '.join(f'`{name}`' for name in missing)}: {'; and '.join(ways)}",
        code="SPARK_SETTING",
    )
