"""How the overlay grows: hops to the root, entries and copies, from a hundred brokers to a hundred thousand."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean

from maia.filters import TypedFilter, compile_filter
from maia.routing import Identifier, closest, identifier
from maia.simulator.network import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What was measured with so many brokers.

    Attributes:
        brokers: How many there are.
        model: log16 of that.
        mean: Mean hops to a place.
        longest: Most hops to a place.
        astray: How many messages did not end at the numerically closest broker.
        subscribers: How many brokers subscribed to one type.
        entries: How many entries all of them keep.
        most: How many the fullest broker keeps.
        copies: How many copies of one event were handed on.
        children: Most copies that one broker handed on.
        delivered: How many subscribers got the event, each once.
        roles: How many of the brokers that hold an entry have which role, by the clients connected to them.
        left: How many entries, and how many brokers with any state, are left of a type when all its clients went.
    """

    brokers: int
    model: float
    mean: float
    longest: int
    astray: int
    subscribers: int
    entries: int
    most: int
    copies: int
    children: int
    delivered: int
    roles: dict[str, int]
    left: tuple[int, int]


def scale(
    *,
    brokers: Sequence[int],
    routes: int,
    subscribers: int,
    seed: int,
    leaves: int,
    say: Callable[[str], None] | None = None,
) -> tuple[Scale, ...]:
    """Measure networks of several sizes."""
    found = []
    for count in brokers:
        if say is not None:
            say(f"{count:,} brokers")
        found.append(_one(count, routes=routes, subscribers=min(subscribers, count), seed=seed, leaves=leaves))
    return tuple(found)


def _one(count: int, *, routes: int, subscribers: int, seed: int, leaves: int) -> Scale:
    lot = random.Random(seed)  # noqa: S311 - a simulation, repeatable on purpose
    network = Network(seed=seed, leaves=leaves)
    network.populate(f"broker {seed}.{number}" for number in range(count))
    ways = []
    astray = 0
    for _ in range(routes):
        key, start = Identifier(lot.getrandbits(160)), lot.choice(network.places)
        end, hops = walk(network, start, key)
        ways.append(hops)
        astray += end != _closest(network.places, key)
    key = identifier(f"type {seed}".encode())
    publisher, *readers = lot.sample(network.names, min(subscribers + 1, count))
    network.at(publisher).advertise("publisher", key, now=0.0)
    network.flush(publisher)
    anything = compile_filter("price any", {"price": "integer"})
    for name in readers:
        network.at(name).subscribe("reader", key, anything, now=network.now)
        network.flush(name)
    network.settle()
    network.at(publisher).publish("publisher", key, {"price": 1}, now=network.now)
    network.flush(publisher)
    network.settle()
    delivered, entries = len(network.delivered), network.entries
    most = max((broker.entries for broker in network.made()), default=0)
    copies, children = network.copies.total(), max(network.copies.values(), default=0)
    roles = Counter(broker.role.value for broker in network.made() if broker.entries)
    left = _leave(network, seed, publisher, readers)
    return Scale(
        brokers=count,
        model=log(count, 16) if count > 1 else 0.0,
        mean=fmean(ways) if ways else 0.0,
        longest=max(ways, default=0),
        astray=astray,
        subscribers=len(readers),
        entries=entries,
        most=most,
        copies=copies,
        children=children,
        delivered=delivered,
        roles=dict(sorted(roles.items())),
        left=left,
    )


def _leave(network: Network, seed: int, publisher: str, readers: Sequence[str]) -> tuple[int, int]:
    """Let all come to another type and go again, and count what is left: entries, and brokers that know the type."""
    key = identifier(f"other type {seed}".encode())
    before = network.entries
    network.at(publisher).advertise("publisher", key, now=network.now)
    network.flush(publisher)
    for name in readers:
        network.at(name).subscribe("reader", key, TypedFilter(), now=network.now)
        network.flush(name)
    network.settle()
    for name in readers:
        network.at(name).unsubscribe("reader", key, now=network.now)
        network.flush(name)
    network.at(publisher).unadvertise("publisher", key, now=network.now)
    network.flush(publisher)
    network.settle()
    return network.entries - before, sum(broker.entries_of(key) is not None for broker in network.made())


def walk(network: Network, start: Identifier, key: int) -> tuple[Identifier, int]:
    """Follow a message to its place: where it ends, and after how many hops."""
    place, hops = start, 0
    while hops <= len(network.places):
        onward = network.broker(place).routes.next_hop(key)
        if onward is None:
            break
        place, hops = onward, hops + 1
    return place, hops


def _closest(places: Sequence[Identifier], key: int) -> Identifier:
    """Find the closest of all, by looking at both neighbours in the order of places."""
    at = bisect_left(places, key)
    return closest(key, (places[at % len(places)], places[at - 1]))
