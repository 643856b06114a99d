"""Policies from several files: a parent domain's set of roles, and what a child adds to it.

Rules:
    1. A child may add roles, and give privileges to roles of its parent's set. It may not add ways to activate a role
       of that set: whoever asks for a national role meets the national rules, in every child alike.
    2. What one child adds, no sibling sees.
    3. A denial of any file holds in all of them.
    4. Every problem names the file in which it stands, with the line and column there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from maia.policy.language import parse_policy
from maia.policy.problems import PolicySyntaxError
from maia.policy.rules import Policy

_MAX_SOURCES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySource:
    """One file of a policy.

    Attributes:
        name: What people call the file.
        text: Its rules.
        inherited: Whether it belongs to the set of a parent domain.
    """

    name: str
    text: str
    inherited: bool = False


def combine_sources(sources: Iterable[PolicySource]) -> str:
    r"""Put files together to one policy, those of parents first, each below a comment with its name.

    >>> national = PolicySource(name="national", text="doctor(self) <- registered(self)*", inherited=True)
    >>> local = PolicySource(name="local", text="porter(self) <- employed(self)*")
    >>> print(combine_sources([local, national]), end="")
    # national
    doctor(self) <- registered(self)*
    # local
    porter(self) <- employed(self)*
    >>> combine_sources([national, PolicySource(name="mine", text="doctor(self) <- friend(self)")])
    Traceback (most recent call last):
    maia.policy.problems.PolicySyntaxError: [ROLE_TAKEN] `mine`, line 1: the role `doctor` belongs to `national`

    Args:
        sources: The files.

    Returns:
        The text of the whole policy.

    Raises:
        PolicySyntaxError: A file is no policy, or activates a role of a parent's set (``ROLE_TAKEN``).
    """
    ordered = _ordered(sources)
    if len(ordered) > _MAX_SOURCES:
        raise PolicySyntaxError(f"a policy has at most {_MAX_SOURCES} files", code="POLICY_LIMIT")
    owners: dict[tuple[str, int], str] = {}
    parts: list[str] = []
    for source in ordered:
        policy = parse_source(source)
        for rule in policy.activations:
            owner = owners.get(rule.head.signature)
            if owner is not None and not source.inherited:
                message = f"`{source.name}`, line {rule.line}: the role `{rule.head.name}` belongs to `{owner}`"
                raise PolicySyntaxError(message, code="ROLE_TAKEN", line=rule.line)
        if source.inherited:
            owners.update((rule.head.signature, source.name) for rule in policy.activations)
        body = source.text if source.text.endswith("\n") or not source.text else f"{source.text}\n"
        parts.append(f"# {_one_line(source.name)}\n{body}")
    return "".join(parts)


def parse_source(source: PolicySource) -> Policy:
    """Read one file; what is wrong with it names the file.

    >>> parse_source(PolicySource(name="met.rules", text="a(self) <-"))
    Traceback (most recent call last):
    maia.policy.problems.PolicySyntaxError: [POLICY_SYNTAX] `met.rules`, line 1, column 11: expected ...

    Raises:
        PolicySyntaxError: The text is no policy.
    """
    try:
        return parse_policy(source.text)
    except PolicySyntaxError as error:
        message = f"`{source.name}`, {error.message}"
        raise PolicySyntaxError(message, code=error.code, line=error.line, column=error.column) from error


def locate_line(sources: Iterable[PolicySource], line: int) -> tuple[str, int]:
    r"""Tell in which file, and where there, a line of the combined policy stands.

    >>> one = PolicySource(name="a.rules", text="x(self) <- y(self)\n")
    >>> locate_line([one, PolicySource(name="b.rules", text="# why\nz(self) <- y(self)\n")], 5)
    ('b.rules', 2)

    Args:
        sources: The files, as `combine_sources` got them.
        line: A line of its text, counted from 1.
    """
    left, name = line, ""
    for source in _ordered(sources):
        name, length = source.name, 1 + len(source.text.removesuffix("\n").split("\n")) * bool(source.text)
        if left <= length:
            break
        left -= length
    return name, max(left - 1, 1)


def _ordered(sources: Iterable[PolicySource]) -> list[PolicySource]:
    return sorted(sources, key=lambda source: (not source.inherited, source.name))


def _one_line(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)
