"""Location as a fact: who sits at a terminal inside which network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from maia.errors import UnavailableError
from maia.policy.environment import MAX_LISTED, Predicate
from maia.policy.terms import Atom, Constant

Terminals = Callable[[], Mapping[str, str]]
"""Tells the address of everybody's terminal, or raises a `MaiaError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """``name(who, place)`` is true while the terminal of ``who`` has an address of one of the networks of the place.

    >>> from ipaddress import ip_network
    >>> networks = {"station": (ip_network("10.1.0.0/16"),)}
    >>> station = Places(name="at", networks=networks, terminals=lambda: {"smith": "10.1.2.3", "jones": "10.2.0.1"})
    >>> sorted(map(str, station.facts(at=None)))
    ['at(smith, station)']

    Attributes:
        name: Of the fact.
        networks: The networks of each place.
        terminals: Tells where everybody is.
    """

    name: str
    networks: Mapping[str, tuple[IPv4Network | IPv6Network, ...]]
    terminals: Terminals

    @property
    def predicate(self) -> Predicate:
        """A fact about somebody and a place."""
        return Predicate(self.name, 2)

    def ask(self, fact: Atom, *, at: datetime) -> bool:
        """Tell whether somebody is at a place."""
        return fact in self.facts(at=at)

    def facts(self, *, at: datetime) -> frozenset[Atom]:  # noqa: ARG002 - terminals are where they are now
        """List who is where.

        Raises:
            UnavailableError: An address is none, or there are too many.
        """
        found: set[Atom] = set()
        known = self.terminals()
        if len(known) > MAX_LISTED:
            raise UnavailableError("more terminals than are taken", code="PROVIDER_LIMIT")
        for who, text in known.items():
            address = _address(text)
            for place, networks in self.networks.items():
                if any(address in network for network in networks if network.version == address.version):
                    found.add(Atom(self.name, (Constant(who), Constant(place))))
        return frozenset(found)


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        address = ip_address(text)
    except ValueError as error:
        raise UnavailableError("a terminal without an address", code="PROVIDER_VALUE") from error
    # One host has one address, however the socket wrote it.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped
