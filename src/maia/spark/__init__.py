"""The Spark side: session, data source, engine and jobs. Only this floor imports pyspark, on first use."""

from __future__ import annotations

import typing as _typing

from maia.lazy import on_first_use as _on_first_use
from maia.spark.java import find_java
from maia.spark.session import prepare_session, session

if _typing.TYPE_CHECKING:
    from maia.spark.cells import plain_rows, write_parquet
    from maia.spark.engine import SparkEngine
    from maia.spark.errors import spark_errors, unwrap
    from maia.spark.follow import Lag, OnceFile, follow_rows, follow_to_parquet, watch_query
    from maia.spark.guard import check_start
    from maia.spark.input_files import guess_format, read_header
    from maia.spark.jobs import start_job
    from maia.spark.labelled import LabelledFrame
    from maia.spark.labelled_groups import LabelledGroups
    from maia.spark.launch import Progress, progress_of, start_spark
    from maia.spark.plain_values import plain
    from maia.spark.rows import Malformed, read_file, read_lines
    from maia.spark.source import DefaultSource
    from maia.spark.stages import deliver

__all__ = [
    "DefaultSource",
    "LabelledFrame",
    "LabelledGroups",
    "Lag",
    "Malformed",
    "OnceFile",
    "Progress",
    "SparkEngine",
    "check_start",
    "deliver",
    "find_java",
    "follow_rows",
    "follow_to_parquet",
    "guess_format",
    "plain",
    "plain_rows",
    "prepare_session",
    "progress_of",
    "read_file",
    "read_header",
    "read_lines",
    "session",
    "spark_errors",
    "start_job",
    "start_spark",
    "unwrap",
    "watch_query",
    "write_parquet",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "DefaultSource": "source",
        "LabelledFrame": "labelled",
        "LabelledGroups": "labelled_groups",
        "Lag": "follow",
        "Malformed": "rows",
        "OnceFile": "follow",
        "Progress": "launch",
        "SparkEngine": "engine",
        "check_start": "guard",
        "deliver": "stages",
        "follow_rows": "follow",
        "follow_to_parquet": "follow",
        "guess_format": "input_files",
        "plain": "plain_values",
        "plain_rows": "cells",
        "progress_of": "launch",
        "read_file": "rows",
        "read_header": "input_files",
        "read_lines": "rows",
        "spark_errors": "errors",
        "start_job": "jobs",
        "start_spark": "launch",
        "unwrap": "errors",
        "watch_query": "follow",
        "write_parquet": "cells",
    },
)
