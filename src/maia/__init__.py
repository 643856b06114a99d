"""Maia: one shared stream of events, every right a capability, every cell explained."""

from __future__ import annotations

import typing as _typing

from maia.version import __version__

if _typing.TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from maia.domain import Domain

__all__ = ["__version__", "open", "prepare"]


def open(path: Path | str) -> Domain:  # noqa: A001 - `maia.open("met")` is how a home is opened
    """Open a domain's home.

    Raises:
        NotFoundError: There is no home at this path.
    """
    from maia.domain import Domain  # noqa: PLC0415 - importing maia alone loads nothing

    return Domain.open(path, engine=_spark)


def prepare(spark: SparkSession, *, home: Path | str | None = None) -> SparkSession:
    """Make a Spark session of your own fit for Maia, or say what it lacks.

    Sets what can be set while a session runs: names of columns are told apart by case, times are in UTC. Looks at the
    rest, which is set where a session is built: encryption of what Spark writes to its disks, and the Python that its
    workers run, which has to have Maia.

    Args:
        spark: The session.
        home: A domain's home; one that says ``spill = "trusted"`` in ``maia.toml`` needs no encryption of disks.

    Returns:
        The session.

    Raises:
        UsageError: Something is missing, which the message names and says how to set: ``SPARK_SETTING``,
            ``SPARK_PYTHON``.
    """
    from maia.home import Home  # noqa: PLC0415 - importing maia alone loads nothing
    from maia.spark import prepare_session  # noqa: PLC0415

    prepare_session(spark, trusted=home is not None and Home.open(home).trusts_disks)
    return spark


def _spark(domain: Domain) -> _typing.Any:  # noqa: ANN401 - an engine, see `maia.domain`
    from maia.spark import SparkEngine  # noqa: PLC0415 - Spark is for those who move rows

    return SparkEngine(domain)
