"""Maia: one shared stream of events, every right a capability, every cell explained."""

from __future__ import annotations

import typing as _typing

from maia.version import __version__

if _typing.TYPE_CHECKING:
    from pathlib import Path

    from maia.stores import Home

__all__ = ["__version__", "open"]


def open(path: Path | str) -> Home:  # noqa: A001 - `maia.open("met")` is how a home is opened
    """Open a domain's home.

    Raises:
        NotFoundError: There is no home at this path.
    """
    from maia.stores import Home  # noqa: PLC0415 - importing maia alone loads nothing

    return Home.open(path)
