"""Sessions of Spark Connect: the driver is a server, and this process has neither its context nor its Java machine.

Rules kept here:

- what a server does is what it was started with. A session may say otherwise: whoever turns off
  ``spark.sql.legacy.setCommandRejectsSparkCoreConfs`` in it may set there what a running server no longer looks at. So
  settings are asked for in a session of their own, which nobody changed;
- what runs functions of this process beside its state (micro-batches of a delivery job, of `maia subscribe`), and what
  needs Spark's own analysis of a frame (labelled frames), is refused by name (``SPARK_CONNECT``).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from maia.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODULE = "pyspark.sql.connect."


def is_connect(spark: object) -> bool:
    """Tell whether a session, or a frame of one, is of Spark Connect.

    >>> is_connect(object())
    False
    """
    return any(kind.__module__.startswith(_MODULE) for kind in type(spark).__mro__)


def server_settings(spark: SparkSession, names: Iterable[str]) -> dict[str, str]:
    """Read settings of the server behind a session, as it was started; empty where there is none."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: PLC0415 - needs grpcio

    connected: Any = spark  # the type checker knows the sessions of this process alone
    # SECURITY: another session of the same server and user, so that nothing that was set in the first one counts.
    fresh = ConnectSession(connected.client._builder)  # noqa: SLF001 - the only way to where it is connected
    with closing(fresh.client):
        try:
            return {name: fresh.conf.get(name, None) or "" for name in names}
        finally:
            fresh.client.release_session()


def refuse_connect(session_or_frame: object, what: str, instead: str) -> None:
    """Refuse what cannot be done over Spark Connect.

    Raises:
        UsageError: It is a session of Spark Connect, or a frame of one: ``SPARK_CONNECT``.
    """
    if is_connect(session_or_frame):
        raise UsageError(f"{what} cannot run over Spark Connect: {instead}", code="SPARK_CONNECT")
