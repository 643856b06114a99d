"""What clauses ask of a row before they show any of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from maia.authority import Tag as ValueTag
from maia.authority import attributes_of
from maia.kernel.clauses import Clause
from maia.kernel.conditions import Guard

Demand = tuple[tuple[tuple[str, ValueTag], ...], Guard | None, int | None]
"""The constraints of a clause by uid, what asks its conditions, and the stamp from which on events are closed to it."""


def demand_of(clause: Clause) -> Demand:
    """Name what a clause asks of a row; a guard that has nothing left to ask makes no difference."""
    guard = clause.guard
    return clause.constraints, guard if guard is not None and guard.conditions else None, clause.before


def asked_by(demand: Demand, kinds: Collection[str]) -> frozenset[str]:
    """Name, by uid, the attributes that are asked about, among those of a type."""
    constraints, guard, _ = demand
    found = {uid for uid, _ in constraints}
    for condition in () if guard is None else guard.conditions:
        named = attributes_of(condition)
        found.update(kinds if named is None else named)
    return frozenset(found)


def hidden_demands(clauses: Iterable[Clause], kinds: Collection[str]) -> frozenset[str]:
    """Name, by uid, what clauses ask of a row and do not show themselves.

    Whoever keeps a delivery needs it to screen it again. What a clause shows itself is there wherever it holds.
    """
    found: set[str] = set()
    for clause in clauses:
        if clause.counts:
            found.update(uid for uid in asked_by(demand_of(clause), kinds) if not clause.opens(uid))
    return frozenset(found)
