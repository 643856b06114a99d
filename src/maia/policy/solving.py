"""Finds the ways in which facts meet premises, within a stated number of steps.

Rules:
    1. A premise with `?` is met by the environment alone; any other by a role when some rule activates that role, and
       by an appointment otherwise. An appointment never stands for a role, nor a role for an appointment.
    2. A role counts for its holder. For another principal it counts only where its parameters name the holder: a
       referral may lean on ``treating-doctor(h1, d1, p)`` of the doctor ``d1``, but nobody borrows a nameless role.
    3. Every fact tried is a step; when the steps are used up, nothing more is proven.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from maia.policy.facts import Fact, FactKind, FactStore
from maia.policy.rules import Premise
from maia.policy.terms import SELF, Atom, Constant, match

Bound = dict[str, Constant | Atom]


class StepsUsedUpError(Exception):
    """Stays inside this floor: the search must end here."""


@dataclass(slots=True)
class Steps:
    """The steps a search may still take."""

    steps: int

    def spend(self) -> None:
        """Take one step."""
        if self.steps <= 0:
            raise StepsUsedUpError
        self.steps -= 1


def kind_of(premise: Premise, roles: Collection[tuple[str, int]]) -> FactKind:
    """Say what a premise asks for."""
    if premise.environment:
        return FactKind.ENVIRONMENT
    return FactKind.ROLE if premise.atom.signature in roles else FactKind.APPOINTMENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One principal's question to the facts."""

    store: FactStore
    principal: str
    budget: Steps

    def start(self) -> Bound:
        """Give the binding every search starts with."""
        return {SELF: Constant(self.principal)}

    def solve(self, goals: Sequence[tuple[FactKind, Atom]], binding: Bound) -> Iterator[tuple[tuple[Fact, ...], Bound]]:
        """Walk every way to meet all goals: the facts in the order of the goals, and what the variables then are.

        The goal with the fewest possible facts is tried first, whatever the order of the text.
        """
        chosen: dict[int, Fact] = {}
        yield from self._solve(dict(enumerate(goals)), binding, chosen)

    def _solve(
        self, open_goals: dict[int, tuple[FactKind, Atom]], binding: Bound, chosen: dict[int, Fact]
    ) -> Iterator[tuple[tuple[Fact, ...], Bound]]:
        if not open_goals:
            yield tuple(chosen[index] for index in sorted(chosen)), binding
            return
        found = {index: self.store.candidates(kind, atom, binding) for index, (kind, atom) in open_goals.items()}
        index = min(found, key=lambda each: (len(found[each]), each))
        rest = {each: goal for each, goal in open_goals.items() if each != index}
        for fact in tuple(found[index]):
            self.budget.spend()
            further = dict(binding)
            if self._counts(fact) and match(open_goals[index][1], fact.atom, further):
                chosen[index] = fact
                yield from self._solve(rest, further, chosen)
                del chosen[index]

    def _counts(self, fact: Fact) -> bool:
        # SECURITY: without this a principal could lean on a role that somebody else has active.
        if fact.kind is not FactKind.ROLE or fact.holder == self.principal:
            return True
        return Constant(fact.holder) in fact.atom.arguments
