"""Doors that load what stands behind them when it is asked for.

A package whose names need Arrow, SQLAlchemy, Spark or FastAPI lists them by the module that holds them, and imports
them under ``TYPE_CHECKING`` as well: so the type checker and the rules about floors see every arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's ``__getattr__``.

    Args:
        package: The package's ``__name__``.
        modules: For each name, the module of the package that holds it.
    """

    def find(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return find
