"""Why a role is active or a privilege held, as a tree a person can read; and the answer to a question for one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProof:
    """One conclusion with the rule that gave it and the proofs of what the rule needed; a fact has no rule.

    Attributes:
        conclusion: What is shown, in words of the policy.
        rule: The rule that was used, or empty for a fact.
        line: The line of the rule in its policy, 0 for a fact.
        premises: What the rule needed, in the order of the rule.
    """

    conclusion: str
    rule: str = ""
    line: int = 0
    premises: tuple[PolicyProof, ...] = ()

    def lines(self, indent: int = 0) -> Iterator[str]:
        """Walk the proof as indented lines.

        >>> needed = PolicyProof(conclusion="b")
        >>> print(*PolicyProof(conclusion="a", rule="a <- b", line=1, premises=(needed,)).lines(), sep="|")
        a   by line 1: a <- b|  b
        """
        by = f"   by line {self.line}: {self.rule}" if self.rule else ""
        yield f"{' ' * indent}{self.conclusion}{by}"
        for premise in self.premises:
            yield from premise.lines(indent + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDecision:
    """The answer to "has this principal this privilege now?"; true only when it is proven.

    Attributes:
        allowed: Whether it does.
        reason: A stable code: ``GRANTED``, ``NO_PRIVILEGE``, ``DENIED_BY_RULE`` or ``STEPS_USED_UP``.
        proof: Why, when it does, or when a rule denies it.
    """

    allowed: bool
    reason: str
    proof: PolicyProof | None = None

    def __bool__(self) -> bool:
        """Whether the privilege is held."""
        return self.allowed
