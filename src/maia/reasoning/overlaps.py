"""Where rules of different languages meet: rights on the same attributes, by roles and by access-control filters.

Every policy becomes a tag, whatever it was written in, so two of them can be laid over one another: what both give is
their intersection. Two rights on the same attributes that leave no row in common, or no subscription that the filters
of both allow, contradict each other; since rights add up, that takes nothing from anybody, but hardly is what their
authors meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from maia.authority import Tag, cell_rights, intersect, is_nothing, parse_tag
from maia.encoding import format_advanced
from maia.errors import MalformedError, UsageError
from maia.filters import BoundKind, satisfiable
from maia.filters import intersect as together
from maia.policy import AuthorisationRule, EventRight, Policy, TypeCatalogue, compile_privilege

_UPPER = (BoundKind.UPPER, BoundKind.STRICT_UPPER)
_MOST_RULES = 1_000
_ATTRIBUTES = 6  # the first elements of a right on cells: up to the attributes


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two rules that give the same action on the same attributes of a type.

    Attributes:
        first: One rule.
        second: The other.
        lines: Their lines.
        languages: What each is written in: ``roles``, or ``filters`` where access-control filters bound it.
        common: What both give, as a tag; empty when they contradict each other.
        files: The files that they stand in, where those are known.
    """

    first: str
    second: str
    lines: tuple[int, int]
    languages: tuple[str, str]
    common: str
    files: tuple[str, str] = ("", "")

    @property
    def conflict(self) -> bool:
        """Whether no use of the right is allowed by both."""
        return not self.common


def overlaps(policy: Policy, catalogue: TypeCatalogue) -> tuple[Overlap, ...]:
    """Find the pairs of rules that give the same action on the same attributes, and what both give.

    Rules whose values are left to variables are not compared: what they give depends on who has the role.

    Raises:
        UsageError: There are too many rules.
    """
    rights = [(rule, tag) for rule in policy.authorisations if (tag := _tag(rule, catalogue)) is not None]
    if len(rights) > _MOST_RULES:
        raise UsageError(f"more than {_MOST_RULES} rules are not compared pair by pair", code="POLICY_TOO_LARGE")
    found = []
    for (one, first), (other, second) in combinations(rights, 2):
        if is_nothing(intersect(_opened(first), _opened(second))):
            continue
        both = intersect(first, second)
        common = "" if is_nothing(both) or _contradict(both) else format_advanced(both.to_sexp())
        languages = (_language(one), _language(other))
        found.append(Overlap(str(one), str(other), (one.line, other.line), languages, common))
    return tuple(found)


def _tag(rule: AuthorisationRule, catalogue: TypeCatalogue) -> Tag | None:
    if not isinstance(rule.privilege, EventRight):
        return None
    try:
        compiled = compile_privilege(rule.privilege, catalogue)
    except (MalformedError, UsageError):
        return None
    return None if compiled is None or is_nothing(compiled.tag) else compiled.tag


def _opened(tag: Tag) -> Tag:
    """Leave of a right its type, action and attributes."""
    form = tag.to_sexp()
    return parse_tag(form[:_ATTRIBUTES]) if isinstance(form, tuple) and form[0] != b"*" else tag


def _contradict(tag: Tag) -> bool:
    """Tell whether no subscription keeps to the upper bounds of a right."""
    try:
        parts = cell_rights(tag)
    except MalformedError:
        return False
    uppers = [[bound.filter for bound in part.bounds if bound.kind in _UPPER] for part in parts]
    return all(filters and not satisfiable(together(*filters)) for filters in uppers)


def _language(rule: AuthorisationRule) -> str:
    return "filters" if isinstance(rule.privilege, EventRight) and rule.privilege.bounds else "roles"
