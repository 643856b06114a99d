"""What the policy of a home says by itself: which roles can ever read an attribute, and what is to be assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from maia.authority import Action
from maia.domain.access_control import HomeHoldings
from maia.errors import UsageError
from maia.home import Home
from maia.policy import Policy, PolicySource, combine_sources, locate_line, parse_policy
from maia.reasoning import Conclusion, DenialView, Overlap, RoleRight, conclude, overlaps, roles_that, view_denials


def find_roles(
    home: Home, sources: Sequence[PolicySource], event_type: str, attribute: str, *, action: str, at: datetime
) -> tuple[RoleRight, ...]:
    """Find every role that can ever read or write an attribute, by the rules alone.

    Raises:
        MaiaError: The rules cannot be read, or there is no such type or attribute.
    """
    asked = Action.parse(action)
    if not asked.on_cells:
        raise UsageError(f"`{action}` is about no attribute; ask for subscribe or publish", code="UNKNOWN_ACTION")
    found = roles_that(_policy(sources), HomeHoldings(home).types(at=at), event_type, attribute, asked)
    placed = ((item, *locate_line(sources, item.line)) for item in found)
    return tuple(replace(item, file=file, line=line) for item, file, line in placed)


def find_overlaps(home: Home, sources: Sequence[PolicySource], *, at: datetime) -> tuple[Overlap, ...]:
    """Find the rules that give the same action on the same attributes, and what both give.

    Raises:
        MaiaError: The rules cannot be read.
    """
    found = []
    for item in overlaps(_policy(sources), HomeHoldings(home).types(at=at)):
        (one, first), (other, second) = (locate_line(sources, line) for line in item.lines)
        found.append(replace(item, files=(one, other), lines=(first, second)))
    return tuple(found)


def find_denials(home: Home, sources: Sequence[PolicySource], *, at: datetime) -> tuple[DenialView, ...]:
    """Tell of each denial on which rules it takes effect; file and line are those of the files.

    Raises:
        MaiaError: The rules cannot be read.
    """
    found = []
    for view in view_denials(_policy(sources), HomeHoldings(home).types(at=at)):
        file, line = locate_line(sources, view.line)
        placed = ((item, *locate_line(sources, item.line)) for item in view.effects)
        effects = tuple(replace(item, file=name, line=where) for item, name, where in placed)
        found.append(replace(view, file=file, line=line, effects=effects))
    return tuple(found)


def suppose(
    sources: Sequence[PolicySource],
    role: str,
    principal: str,
    *,
    appointed: Sequence[str] = (),
    observed: Sequence[str] = (),
    assume: Sequence[str] = (),
) -> Conclusion:
    """Tell whether somebody could have a role, on stated facts and on what may be assumed.

    Raises:
        MaiaError: The rules or a fact cannot be read.
    """
    policy, assumed = _policy(sources), frozenset(assume)
    found = conclude(policy, role, principal, appointed=appointed, observed=observed, assume=assumed)
    return replace(found, lacks=tuple(replace(one, line=locate_line(sources, one.line)[1]) for one in found.lacks))


def _policy(sources: Sequence[PolicySource]) -> Policy:
    return parse_policy(combine_sources(sources))
