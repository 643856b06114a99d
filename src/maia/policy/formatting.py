"""From rules back to text, in one canonical spelling that parses back to equal rules."""

from __future__ import annotations

import re

from maia.policy.language import parse_policy
from maia.policy.limits import DEFAULT_POLICY_LIMITS, PolicyLimits
from maia.policy.rules import ActivationRule, DenialRule

_COMMENT = re.compile(r"(?:'[^'\n]*'|\"[^\"\n]*\"|[^'\"#\n])*(#[^\n]*)")


def format_text(text: str, *, limits: PolicyLimits = DEFAULT_POLICY_LIMITS) -> str:
    r"""Write a policy text in the canonical spelling, keeping its comments and blank lines.

    Neighbouring rules of the same kind are aligned at their arrow. Formatting twice changes nothing more, and the rules
    stay equal.

    >>> print(format_text("# staff\na(self)<-b(self)*# yes\n"), end="")
    # staff
    a(self) <- b(self)*  # yes

    Args:
        text: A policy as a person writes it.
        limits: How large the text may be.

    Returns:
        The formatted text, ending in one line end.

    Raises:
        PolicySyntaxError: The text is no policy; a text that cannot be read is not touched.
    """
    rules = {rule.line: rule for rule in parse_policy(text, limits=limits).rules}
    blocks: list[list[tuple[str, str, str]]] = []  # neighbouring lines of one kind: left, right, comment
    kinds: list[type | None] = []
    for number, line in enumerate(text.split("\n"), 1):
        rule = rules.get(number)
        found = _COMMENT.match(line)
        comment = found[1].rstrip() if found else ""
        kind = None if rule is None else type(rule)
        if not kinds or kinds[-1] is not kind:
            kinds.append(kind)
            blocks.append([])
        arrow = " <- " if isinstance(rule, ActivationRule) else " !- " if isinstance(rule, DenialRule) else " |- "
        left, _, right = ("", "", "") if rule is None else str(rule).partition(arrow)
        blocks[-1].append((left, f"{arrow}{right}" if rule is not None else "", comment))
    lines = [line for block in blocks for line in _aligned(block)]
    return "\n".join(lines).strip("\n") + "\n" if rules or any(lines) else ""


def _aligned(block: list[tuple[str, str, str]]) -> list[str]:
    width = max(len(left) for left, _, _ in block)
    lines = []
    for left, right, comment in block:
        rule = f"{left:<{width}}{right}" if right else ""
        lines.append(f"{rule}  {comment}" if rule and comment else rule or comment)
    return lines
