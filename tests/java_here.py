"""The Java process that pyspark keeps for this process: whether it runs, and how to go on where it does not."""

from __future__ import annotations

from typing import Any


def runs(session: Any) -> bool:
    """Tell whether a session of Spark can still be used."""
    if session is None or session.sparkContext._jsc is None:
        return False
    gateway = session.sparkContext._gateway
    return gateway is not None and gateway.proc.poll() is None
