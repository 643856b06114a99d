"""A domain's services: the key manager and access control, each thin HTTP over logic that knows no HTTP.

Nothing here is loaded before it is used: `http` needs the signature library, the services need FastAPI.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

if _typing.TYPE_CHECKING:
    from maia.services import access_control, http, key_manager

__all__ = ["access_control", "http", "key_manager"]

_ON_FIRST_USE = frozenset(__all__)


def __getattr__(name: str) -> object:
    """Load a service when it is asked for."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module `maia.services` has no attribute `{name}`")
    return _import_module(f"maia.services.{name}")
