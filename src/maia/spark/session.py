"""A Spark session with the settings that Maia's promises need.

Rules kept here, for every door that leads into Spark:

- what leaves Spark's memory is sealed by Spark: a session without IO encryption (and, beyond one machine, without
  network encryption) is refused, unless the domain says in ``maia.toml`` that its disks are protected otherwise;
- names of columns and instants mean what they say: case counts, and times are in UTC. Both can be set while a session
  runs, so `prepare_session` sets them; where only a task can look (`check_task`) they are demanded;
- a passphrase or a database's address in the environment of the process goes neither to the Java machine nor to the
  workers, and a secret that Spark needs stands in no command line;
- a session whose workers run a Python without Maia is refused before it is asked for anything;
- a task whose worker was killed runs again, on one machine too;
- a message names each setting that is missing and how to set it;
- a session of Spark Connect has no context here: what its server was started with is asked for there (`connect`).
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maia.errors import UsageError
from maia.spark.connect import is_connect, server_settings
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
_SECRET = "spark.authenticate.secret"  # noqa: S105 - a name
_SECRETS = ("MAIA_PASSPHRASE", "MAIA_DATABASE_URL")
_SEALED = ("spark.io.encryption.enabled",)
_SEALED_BEYOND = (*_SEALED, "spark.network.crypto.enabled")


def session(**conf: str) -> SparkSession:
    """Return the active session, or start a local one with Maia's settings; `prepare_session` says whether it will do.

    A session whose Java process has ended is none.

    Args:
        conf: Further settings, with underscores for dots (``spark_master="local[2]"``); they win over Maia's.

    Raises:
        UnavailableError: There is no Java.
    """
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - starting Spark is for those who ask for it
    from pyspark.sql import SparkSession  # noqa: PLC0415 - starting Spark is for those who ask for it

    forget_dead_java()
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    java = find_java()
    if java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)
    # Workers must run the Python that has Maia, not the first one on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    wanted = {**SETTINGS, **{key.replace("_", "."): value for key, value in conf.items()}}
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


def forget_dead_java() -> None:
    """Let pyspark start Java anew where the process that it knows has ended, as when it had no memory left."""
    from pyspark import SparkContext  # noqa: PLC0415 - as above
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    known: Any = SparkContext
    gateway = known._gateway  # noqa: SLF001 - pyspark keeps a dead process for ever, and has no word for it
    if gateway is not None and gateway.proc.poll() is not None:
        known._gateway = known._jvm = known._active_spark_context = None  # noqa: SLF001 - as above
        SparkSession._instantiatedSession = None  # noqa: SLF001 - as above


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
        UsageError: Its workers run a Python without Maia (``SPARK_PYTHON``), or it does not seal what leaves its
            memory (``SPARK_SETTING``).
    """
    if not is_connect(spark):
        _check_python(spark)
    found = _started(spark)
    _check(_missing(found, trusted=trusted, meaning=False))
    for name in MEANING:
        if (spark.conf.get(name) or "").lower() != SETTINGS[name].lower():
            spark.conf.set(name, SETTINGS[name])
    if is_connect(spark):
        return
    # A job on a frame's RDD is none of SQL's, and carries no settings of the session: its tasks find them here.
    for name, value in (found | {name: SETTINGS[name] for name in MEANING}).items():
        spark.sparkContext.setLocalProperty(name, value)


def _started(spark: SparkSession) -> dict[str, str]:
    """Read with which settings the context behind a session was started.

    SECURITY: what a running context does is what it was started with; a session built on top of it may say otherwise.
    """
    names = ("spark.master", *_SEALED_BEYOND)
    if is_connect(spark):
        return server_settings(spark, names)
    started = spark.sparkContext.getConf()
    return {name: started.get(name, None) or "" for name in names}


def _check_python(spark: SparkSession) -> None:
    """Refuse a session whose workers run a Python without Maia; there Spark finds no ``format("maia")``.

    Raises:
        UsageError: They do: ``SPARK_PYTHON``.
    """
    python = str(spark.sparkContext.pythonExec)
    found = shutil.which(python)
    if found is None and not _is_local(str(spark.sparkContext.master)):
        return  # a path of other machines
    if found is None or not _has_maia(found):
        raise UsageError(
            f"Spark's workers run `{python}`, which has no Maia: set the variable PYSPARK_PYTHON to "
            f"`{sys.executable}` before the session is built, or activate the environment that has Maia",
            code="SPARK_PYTHON",
        )


@cache
def _has_maia(python: str) -> bool:
    """Ask a Python once whether it finds the data source."""
    if Path(python).absolute() == Path(sys.executable).absolute():
        return True
    return subprocess.run([python, "-c", "import pyspark_maia"], capture_output=True, check=False).returncode == 0  # noqa: S603 - Spark runs it


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


def is_local(spark: SparkSession) -> bool:
    """Tell whether the tasks of a session run on the machine of the driver."""
    return _is_local(_started(spark)["spark.master"])


def is_local_task() -> bool:
    """Tell whether this runs on the machine of the driver, in a local session, or in no task at all."""
    from pyspark import TaskContext  # noqa: PLC0415 - runs on a worker

    context = TaskContext.get()
    return context is None or _is_local(context.getLocalProperty("spark.master") or "")


def _missing(found: Mapping[str, str], *, trusted: bool, meaning: bool) -> list[str]:
    sealed = () if trusted else _SEALED if _is_local(found["spark.master"]) else _SEALED_BEYOND
    wanted = (*sealed, *(MEANING if meaning else ()))
    return [name for name in wanted if found[name].lower() != SETTINGS[name].lower()]


def _is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


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
