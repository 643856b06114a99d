"""The Spark side: session, data source, engine and jobs. Only this floor imports pyspark, on first use."""

from __future__ import annotations

import typing as _typing

from maia.lazy import on_first_use as _on_first_use
from maia.spark.java import find_java
from maia.spark.session import session

if _typing.TYPE_CHECKING:
    from maia.spark.engine import SparkEngine
    from maia.spark.guard import check_start
    from maia.spark.jobs import start_job
    from maia.spark.source import DefaultSource
    from maia.spark.stages import deliver

__all__ = [
    "DefaultSource",
    "SparkEngine",
    "check_start",
    "deliver",
    "find_java",
    "session",
    "start_job",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "DefaultSource": "source",
        "SparkEngine": "engine",
        "check_start": "guard",
        "deliver": "stages",
        "start_job": "jobs",
    },
)
