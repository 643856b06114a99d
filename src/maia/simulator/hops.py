"""How far events travel: the thesis's Figure 7.10, on real brokers.

One publisher, and a growing number of subscribers, each a group of readers with rights of its own. Attribute level
sends one event through the tree of one type. Its emulation sends one sub-event for each group, each of a type of its
own; the thesis leaves open whom a sub-event reaches (choice C14), so both are counted: its own group, or all of them.
A hop is a copy of an event that one broker hands to another.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from maia.events import type_id
from maia.filters import TypedFilter
from maia.principals import KeySigner
from maia.routing import Identifier, rendezvous
from maia.simulator.network import Network

THESIS = {3: (9.0, 30.8), 10: (24.2, 251.0)}
"""What Figure 7.10 says for so many groups: attribute level, and emulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops:
    """Mean hops of one publication to so many groups, and how far runs lie apart."""

    groups: int
    attribute: float
    emulated_all: float
    emulated_own: float
    spread: float


@dataclass(frozen=True, slots=True)
class _Run:
    attribute: float
    emulated_all: int
    emulated_own: int


def hops(
    *,
    brokers: int,
    groups: Sequence[int],
    runs: int,
    seed: int,
    leaves: int,
    say: Callable[[str], None] | None = None,
) -> tuple[Hops, ...]:
    """Count hops for each number of groups, over several networks."""
    wanted = sorted(set(groups))
    found: dict[int, list[_Run]] = {count: [] for count in wanted}
    for run in range(runs):
        if say is not None:
            say(f"network {run + 1} of {runs}")
        for count, counted in zip(wanted, _one(brokers, wanted, seed + run, leaves), strict=True):
            found[count].append(counted)
    return tuple(
        Hops(
            groups=count,
            attribute=fmean(run.attribute for run in seen),
            emulated_all=fmean(run.emulated_all for run in seen),
            emulated_own=fmean(run.emulated_own for run in seen),
            spread=stdev([run.attribute for run in seen]) if len(seen) > 1 else 0.0,
        )
        for count, seen in found.items()
    )


def _one(brokers: int, wanted: Sequence[int], seed: int, leaves: int) -> list[_Run]:
    lot = random.Random(seed)  # noqa: S311 - a simulation, repeatable on purpose
    network = Network(seed=seed, leaves=leaves)
    network.populate(f"broker {seed}.{number}" for number in range(brokers))
    publisher, *subscribers = lot.sample(network.names, wanted[-1] + 1)
    owner = KeySigner(lot.randbytes(32)).public_key
    shared = [rendezvous(type_id(owner, f"all.{number}")) for number in range(wanted[-1])]
    apart = [rendezvous(type_id(owner, f"own.{number}")) for number in range(wanted[-1])]
    for key in (*shared, *apart):
        network.at(publisher).advertise("publisher", key, now=network.now)
    network.flush(publisher)
    network.settle()
    counted, settled = [], 0
    for count in wanted:
        for number, name in enumerate(subscribers[:count]):
            # Everybody wants all of the first types; those who were there want the new ones as well.
            for key in shared[settled if number < settled else 0 : count]:
                network.at(name).subscribe("reader", key, TypedFilter(), now=network.now)
            if number >= settled:
                network.at(name).subscribe("reader", apart[number], TypedFilter(), now=network.now)
            network.flush(name)
        network.settle()
        settled = count
        each = [_publish(network, publisher, key) for key in shared[:count]]
        own = sum(_publish(network, publisher, key) for key in apart[:count])
        counted.append(_Run(fmean(each), sum(each), own))
    return counted


def _publish(network: Network, publisher: str, key: Identifier) -> int:
    """Publish one event and count its hops."""
    before = network.copies.total()
    network.at(publisher).publish("publisher", key, {}, now=network.now)
    network.flush(publisher)
    network.settle()
    return network.copies.total() - before
