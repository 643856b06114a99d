"""Builders for tests, shipped: keys by name, short ways to certificates and statements, and the numberplate network.

Keys made from names are known to everybody; they belong in tests and demonstrations only.
"""

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

__all__ = [
    "ATTRIBUTES",
    "BROKERS",
    "NETWORK_NAME",
    "TYPE_NAME",
    "TYPE_VERSION",
    "NumberplateNetwork",
    "People",
    "answer",
    "at",
    "book",
    "during",
    "grant",
    "listing",
    "naming",
    "numberplate_network",
    "online",
    "right",
    "subject_of",
]
