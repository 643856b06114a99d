"""Builders for tests, shipped: keys by name, short ways to certificates and statements, and networks to play with.

Keys made from names are known to everybody; they belong in tests and demonstrations only. The worlds with homes and
services are loaded on first use.
"""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module

from maia.testing.building import answer, at, book, during, grant, listing, naming, online, right
from maia.testing.numberplate import (
    ATTRIBUTES,
    BROKERS,
    NETWORK_NAME,
    TYPE_NAME,
    TYPE_VERSION,
    NumberplateNetwork,
    numberplate_network,
)
from maia.testing.people import People, subject_of

if _typing.TYPE_CHECKING:
    from maia.testing.detective import (
        DETECTIVE_POLICY,
        DetectiveWorld,
        Loss,
        detective_world,
    )
    from maia.testing.publishing import publish_here
    from maia.testing.stock import CONTRACTS, FLOWS, Firm, StockWorld, firm_policy, stock_world

__all__ = [
    "ATTRIBUTES",
    "BROKERS",
    "CONTRACTS",
    "DETECTIVE_POLICY",
    "FLOWS",
    "NETWORK_NAME",
    "TYPE_NAME",
    "TYPE_VERSION",
    "DetectiveWorld",
    "Firm",
    "Loss",
    "NumberplateNetwork",
    "People",
    "StockWorld",
    "answer",
    "at",
    "book",
    "detective_world",
    "during",
    "firm_policy",
    "grant",
    "listing",
    "naming",
    "numberplate_network",
    "online",
    "publish_here",
    "right",
    "stock_world",
    "subject_of",
]

_ON_FIRST_USE = {
    "CONTRACTS": "stock",
    "DETECTIVE_POLICY": "detective",
    "FLOWS": "stock",
    "DetectiveWorld": "detective",
    "Firm": "stock",
    "Loss": "detective",
    "StockWorld": "stock",
    "detective_world": "detective",
    "firm_policy": "stock",
    "publish_here": "publishing",
    "stock_world": "stock",
}


def __getattr__(name: str) -> object:
    """Load what needs Arrow and a database when it is asked for."""
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module `maia.testing` has no attribute `{name}`")
    value: object = getattr(_import_module(f"maia.testing.{_ON_FIRST_USE[name]}"), name)
    globals()[name] = value
    return value
