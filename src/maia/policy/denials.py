"""Denials: what rules give, less what a denial takes away, written as an ordinary right.

    suspended(self)       !- subscribe Numberplate
    excluded(self, plate) !- subscribe Numberplate(location, numberplate = plate)

A denial overrides every rule that gives. It is resolved where a right is issued: what is left is positive, and the one
thing that a certificate carries, so whoever decides about data never meets a denial.

Rules:
    1. A denial on an event type closes the cells that a right in the same words would open: these attributes, in rows
       that meet all its demands. Cells are compared by uid, so another name or version of an attribute is closed too.
    2. What is left is opened by a set of rights: the other attributes in all rows, and all of them in rows that break
       one of the denial's demands. A row that has no value there breaks none: nobody can tell, so it stays closed.
    3. A right on a whole type or network, and any other privilege, is taken whole.
    4. Where it cannot be told what a denial is about, a right of the same action is not given at all. A publisher whose
       rows would be forced to have a denied attribute publishes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from maia.authority import Action, Constraint, Tag, intersect, is_nothing, one_of, rows_tag, type_right
from maia.errors import MalformedError, UncheckedError
from maia.filters import Bound
from maia.policy.bounds import check_bounds, compile_bounds
from maia.policy.catalogue import TypeCatalogue
from maia.policy.facts import FactKind
from maia.policy.filling import filled
from maia.policy.issuing import CompiledRight, as_event_right, compile_privilege, right_action, row_demand
from maia.policy.known_types import KnownType, find_attribute
from maia.policy.rules import DenialRule, EventRight, Privilege
from maia.policy.solving import Search, Steps

DENIED_BY_RULE = "DENIED_BY_RULE"
_MOST_PARTS = 256
_OPPOSITES = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DenialInForce:
    """A denial that concerns somebody now.

    Attributes:
        privilege: What is denied, without variables.
        rule: The rule.
        line: Its line.
        facts: The appointments that met it, in words.
    """

    privilege: Privilege
    rule: str
    line: int
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedRight:
    """What denials leave of a privilege.

    Attributes:
        right: As a certificate has it; nothing when all is denied, or when it is a matter of the domain itself.
        denied_by: The denials that took something.
    """

    right: CompiledRight | None
    denied_by: tuple[DenialInForce, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether denials took everything."""
        return self.right is None and bool(self.denied_by)

    def words(self, privilege: Privilege) -> str:
        """Write the privilege with what is denied of it."""
        taken = dict.fromkeys(str(item.privilege) for item in self.denied_by)
        return f"{privilege} without {' and '.join(taken)}" if taken else str(privilege)


@dataclass(frozen=True, slots=True)
class _Part:
    """Attributes that are open, in rows that meet demands."""

    uids: frozenset[str]
    demands: tuple[Constraint, ...]


def denials_in_force(rules: Iterable[DenialRule], search: Search, budget: Steps) -> tuple[DenialInForce, ...]:
    """List the denials that concern the principal of a search, in the order of the rules.

    Raises:
        StepsUsedUpError: They need more steps than are left.
    """
    found: dict[tuple[Privilege, int], DenialInForce] = {}
    for rule in rules:
        budget.spend()
        goals = [(FactKind.APPOINTMENT, premise.atom) for premise in rule.premises]
        for facts, bound in search.solve(goals, search.start()):
            denied = filled(rule.privilege, bound)
            found.setdefault(
                (denied, rule.line),
                DenialInForce(privilege=denied, rule=str(rule), line=rule.line, facts=tuple(map(str, facts))),
            )
    return tuple(found.values())


def compile_allowed(privilege: Privilege, denials: Sequence[DenialInForce], catalogue: TypeCatalogue) -> AllowedRight:
    """Write what denials leave of a privilege as a right.

    >>> from maia.events import EventType, TypeName, attribute, parse_version
    >>> from maia.policy import parse_privilege
    >>> from maia.principals import KeySigner
    >>> name = TypeName(KeySigner(bytes(32)).public_key, "Report", parse_version("1"))
    >>> known = TypeCatalogue([EventType(name=name, attributes=(attribute("ward", 1, "string"),))])
    >>> denial = DenialInForce(privilege=parse_privilege("subscribe Report(ward = 'A')"), rule="", line=1, facts=())
    >>> compile_allowed(parse_privilege("subscribe Report(ward = 'A')"), [denial], known).whole
    True
    >>> compile_allowed(parse_privilege("subscribe Report(ward = 'B')"), [denial], known).whole
    False

    Args:
        privilege: What an active role gives, without variables.
        denials: What is denied to its holder.
        catalogue: What is known.

    Raises:
        MalformedError: The privilege, or a denial that may be about it, cannot be a right: see `compile_privilege`.
        UncheckedError: What is left is too much to be written: ``DENIAL_LIMIT``.
    """
    given = compile_privilege(privilege, catalogue)
    right = as_event_right(privilege)
    if given is None or right is None:
        exact = tuple(item for item in denials if item.privilege == privilege)
        return AllowedRight(right=given if not exact else None, denied_by=exact)
    action = right_action(right.action)
    found = [(item, denied) for item in denials if (denied := _same_action(item.privilege, action)) is not None]
    if not action.on_cells:
        hit = tuple(item for item, denied in found if _meets(given.tag, denied, catalogue))
        return AllowedRight(right=None if hit else given, denied_by=hit)
    known = catalogue.find(right.event_type)
    about = [(item, denied) for item, denied in found if _is_about(denied, known, catalogue)]
    return _without(right, given, known, about, catalogue) if about else AllowedRight(right=given)


def _without(
    right: EventRight,
    given: CompiledRight,
    known: KnownType,
    about: Iterable[tuple[DenialInForce, EventRight]],
    catalogue: TypeCatalogue,
) -> AllowedRight:
    action = right_action(right.action)
    uses = right.attributes or ()
    opened = {find_attribute(known, use.name).uid for use in uses} if uses else _uids(known, None)
    demands = tuple(made for use in uses if (made := row_demand(known, use, partial=False)) is not None)
    parts = [_Part(frozenset(map(str, opened)), demands)]
    taking: list[DenialInForce] = []
    for item, denied in about:
        left = _subtract(parts, denied, catalogue.find(denied.event_type), action)
        if left != parts:
            parts, taking = left, [*taking, item]
        if len(parts) > _MOST_PARTS:
            raise UncheckedError(f"denials leave `{right}` in more than {_MOST_PARTS} parts", code="DENIAL_LIMIT")
    if not taking:
        return AllowedRight(right=given)
    bounds = compile_bounds(right.bounds, known)
    tag = one_of(_written(part, known, action, bounds) for part in parts if _usable(part, known, bounds))
    left_over = None if is_nothing(tag) else CompiledRight(tag=tag, owner=given.owner)
    return AllowedRight(right=left_over, denied_by=tuple(taking))


def _subtract(parts: list[_Part], denied: EventRight, known: KnownType, action: Action) -> list[_Part]:
    uses = denied.attributes or ()
    closed = _uids(known, [use.name for use in uses] or None)
    demands = [made for use in uses if (made := row_demand(known, use, partial=False)) is not None]
    found: list[_Part] = []
    for part in parts:
        if not part.uids & closed or is_nothing(rows_tag((*part.demands, *demands))):
            found.append(part)
            continue
        forced = action is Action.PUBLISH and any(item.uid in closed for item in part.demands)
        if part.uids - closed and not forced:
            found.append(replace(part, uids=part.uids - closed))
        # SECURITY: of a demand that there be a value the opposite is no value, which no right can ask for.
        broken = (replace(item, operator=_OPPOSITES[item.operator]) for item in demands if item.operator != "any")
        found += [replace(part, demands=(*part.demands, item)) for item in broken]
    return found


def _uids(known: KnownType, names: Iterable[str] | None) -> frozenset[str]:
    """Give all that names mean in any version; of all attributes when none are listed."""
    chosen = known.attributes if names is None else list(names)
    for name in chosen:
        if name not in known.attributes:
            find_attribute(known, name)
    return frozenset(str(item.uid) for name in chosen for item in known.attributes[name])


def _written(part: _Part, known: KnownType, action: Action, bounds: Sequence[Bound]) -> Tag:
    return type_right(
        known.owner, known.name, known.version, actions=[action], attributes=sorted(part.uids),
        constraints=part.demands, bounds=bounds,
    )  # fmt: skip


def _usable(part: _Part, known: KnownType, bounds: Sequence[Bound]) -> bool:
    """Tell whether some use keeps to the bounds of a part."""
    try:
        check_bounds(bounds, known, part.uids)
    except MalformedError:
        return False
    return True


def _same_action(privilege: Privilege, action: Action) -> EventRight | None:
    """Give a denial as a right, when it may take something from one with this action."""
    right = as_event_right(privilege)
    if right is None:
        return None
    denied = right_action(right.action)
    return right if denied is action or not (denied.on_cells or action.on_cells) else None


def _is_about(denied: EventRight, known: KnownType, catalogue: TypeCatalogue) -> bool:
    """Tell whether a denial is on a type; what cannot be told is an error, and then nothing is given."""
    other = catalogue.find(denied.event_type)
    return (other.owner_id, other.name) == (known.owner_id, known.name)


def _meets(tag: Tag, denied: EventRight, catalogue: TypeCatalogue) -> bool:
    compiled = compile_privilege(denied, catalogue)
    return compiled is not None and not is_nothing(intersect(tag, compiled.tag))
