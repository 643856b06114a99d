"""What rules for a role lack, for whoever wants to know why it is not active."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from maia.policy.facts import Fact
from maia.policy.rules import ActivationRule
from maia.policy.solving import Search, StepsUsedUpError, kind_of
from maia.policy.terms import match, substitute


@dataclass(frozen=True, slots=True)
class UnmetRule:
    """A rule that would give a role, and what it lacks.

    Attributes:
        rule: The rule.
        line: Its line in the policy.
        lacks: The premises that nothing meets; empty when each is met, but by facts that do not fit one another.
    """

    rule: str
    line: int
    lacks: tuple[str, ...]

    def __str__(self) -> str:
        """Say what it lacks."""
        lacks = ", ".join(f"`{atom}`" for atom in self.lacks) or "facts that fit one another"
        return f"`{self.rule}` lacks {lacks}"


def find_unmet(
    rules: Iterable[ActivationRule], role: Fact, search: Search, roles: Collection[tuple[str, int]]
) -> tuple[UnmetRule, ...]:
    """Find the premises that nothing meets, of each rule that would give a role; as far as the steps suffice."""
    found: list[UnmetRule] = []
    for rule in rules:
        binding = search.start()
        if not match(rule.head, role.atom, binding):
            continue
        try:
            unmet = [
                str(substitute(premise.atom, binding))
                for premise in rule.premises
                if next(search.solve([(kind_of(premise, roles), premise.atom)], dict(binding)), None) is None
            ]
        except StepsUsedUpError:
            break
        found.append(UnmetRule(str(rule), rule.line, tuple(unmet)))
    return tuple(found)
