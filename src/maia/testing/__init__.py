"""Builders for tests, shipped: keys by name, short ways to certificates and statements, and networks to play with.

Keys made from names are known to everybody; they belong in tests and demonstrations only. The worlds with homes and
services are loaded on first use.
"""

from __future__ import annotations

import typing as _typing

from maia.lazy import on_first_use as _on_first_use
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
    from maia.testing.command import Command, Ran
    from maia.testing.costly import Cost, Pile, Standing, cost_of, costly_evidence, worst_evidence
    from maia.testing.counting import Checks, counted_checks
    from maia.testing.crowds import CROWDS, HEALTH, crowd, make_room
    from maia.testing.detective import (
        DETECTIVE_POLICY,
        DetectiveWorld,
        Loss,
        detective_world,
    )
    from maia.testing.homes import NumberplateHomes, numberplate_homes
    from maia.testing.lanes import LaneOf, rows_of
    from maia.testing.lists import StatementPublisher
    from maia.testing.managed import ManagedHomes, managed_homes
    from maia.testing.plans import deliver_plan, follow, offered, publish_plan
    from maia.testing.publishing import publish_here
    from maia.testing.reading import deliver_here, read_here
    from maia.testing.records import record_here
    from maia.testing.sealed import sealed_here
    from maia.testing.serving import ManagedType, managed_type, served
    from maia.testing.session import spark_session
    from maia.testing.stock import CONTRACTS, FLOWS, Firm, StockWorld, firm_policy, stock_world

__all__ = [
    "ATTRIBUTES",
    "BROKERS",
    "CONTRACTS",
    "CROWDS",
    "DETECTIVE_POLICY",
    "FLOWS",
    "HEALTH",
    "NETWORK_NAME",
    "TYPE_NAME",
    "TYPE_VERSION",
    "Checks",
    "Command",
    "Cost",
    "DetectiveWorld",
    "Firm",
    "LaneOf",
    "Loss",
    "ManagedHomes",
    "ManagedType",
    "NumberplateHomes",
    "NumberplateNetwork",
    "People",
    "Pile",
    "Ran",
    "Standing",
    "StatementPublisher",
    "StockWorld",
    "answer",
    "at",
    "book",
    "cost_of",
    "costly_evidence",
    "counted_checks",
    "crowd",
    "deliver_here",
    "deliver_plan",
    "detective_world",
    "during",
    "firm_policy",
    "follow",
    "grant",
    "listing",
    "make_room",
    "managed_homes",
    "managed_type",
    "naming",
    "numberplate_homes",
    "numberplate_network",
    "offered",
    "online",
    "publish_here",
    "publish_plan",
    "read_here",
    "record_here",
    "right",
    "rows_of",
    "sealed_here",
    "served",
    "spark_session",
    "stock_world",
    "subject_of",
    "worst_evidence",
]

__getattr__ = _on_first_use(
    __name__,
    {
        "CONTRACTS": "stock",
        "Checks": "counting",
        "CROWDS": "crowds",
        "HEALTH": "crowds",
        "crowd": "crowds",
        "make_room": "crowds",
        "Command": "command",
        "counted_checks": "counting",
        "Cost": "costly",
        "ManagedType": "serving",
        "Pile": "costly",
        "Standing": "costly",
        "cost_of": "costly",
        "costly_evidence": "costly",
        "managed_type": "serving",
        "served": "serving",
        "worst_evidence": "costly",
        "DETECTIVE_POLICY": "detective",
        "FLOWS": "stock",
        "DetectiveWorld": "detective",
        "Firm": "stock",
        "LaneOf": "lanes",
        "Loss": "detective",
        "ManagedHomes": "managed",
        "NumberplateHomes": "homes",
        "Ran": "command",
        "StatementPublisher": "lists",
        "StockWorld": "stock",
        "deliver_here": "reading",
        "deliver_plan": "plans",
        "detective_world": "detective",
        "firm_policy": "stock",
        "follow": "plans",
        "managed_homes": "managed",
        "numberplate_homes": "homes",
        "offered": "plans",
        "publish_here": "publishing",
        "publish_plan": "plans",
        "read_here": "reading",
        "record_here": "records",
        "rows_of": "lanes",
        "sealed_here": "sealed",
        "spark_session": "session",
        "stock_world": "stock",
    },
)
