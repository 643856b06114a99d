"""Maia: one shared stream of events, every right a capability, every cell explained."""

from __future__ import annotations

import typing as _typing

from maia.version import __version__

if _typing.TYPE_CHECKING:
    from pathlib import Path

    from maia.domain import Domain

__all__ = ["__version__", "open"]


def open(path: Path | str) -> Domain:  # noqa: A001 - `maia.open("met")` is how a home is opened
    """Open a domain's home.

    Raises:
        NotFoundError: There is no home at this path.
    """
    from maia.domain import Domain  # noqa: PLC0415 - importing maia alone loads nothing

    return Domain.open(path, engine=_spark)


def _spark(domain: Domain) -> _typing.Any:  # noqa: ANN401 - an engine, see `maia.domain`
    from maia.spark import SparkEngine  # noqa: PLC0415 - Spark is for those who move rows

    return SparkEngine(domain)
