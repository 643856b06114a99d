"""Access-control filters in a policy: from what a rule writes to the bounds that a right carries, over uids.

    supplier(self) |- publish Product strict-lower (message = 'new_product', price < 100)
    shopper(self)  |- subscribe Product(message, price) max (message, price)

Rules kept here:

- the constraints of a bound are joined by commas; whether all must hold or each is an alternative is said by its kind;
- `min`, `exact` and `max` list attributes: an upper, a strict upper and a strict lower bound of `any` (choice C29);
- all bounds of one rule hold together; several rules are several rights, and add up;
- a bound that nothing could ever meet is a mistake: contradictory constraints, or an upper bound on an attribute that
  the right keeps closed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from maia.errors import FilterTypeError, MalformedError, UsageError
from maia.filters import (
    AttributeBound,
    Bound,
    BoundKind,
    Operator,
    TypedConstraint,
    TypedFilter,
    attribute_bound,
    satisfiable,
)
from maia.policy.known_types import KnownType, find_attribute, read_value
from maia.policy.rules import BoundDemand, BoundUse
from maia.policy.terms import Variable

POLICY_BOUND = "POLICY_BOUND"
_KEYWORDS = {word.value for word in AttributeBound}
_UPPER = (BoundKind.UPPER, BoundKind.STRICT_UPPER)


def compile_bounds(uses: Iterable[BoundUse], known: KnownType, *, partial: bool = False) -> tuple[Bound, ...]:
    """Write the bounds of a rule over uids.

    Args:
        uses: As the rule has them.
        known: The event type.
        partial: Whether values may be left to variables; such constraints are left out.

    Raises:
        MalformedError: ``POLICY_ATTRIBUTE``, ``POLICY_AMBIGUOUS``, ``POLICY_VALUE`` or ``POLICY_BOUND``.
        UsageError: A value is a variable, and that is not expected.
    """
    return tuple(made for use in uses if (made := _compile(use, known, partial=partial)) is not None)


def check_bounds(bounds: Iterable[Bound], known: KnownType, opened: Collection[str] | None) -> None:
    """Refuse bounds that nothing could meet.

    Args:
        bounds: Over uids.
        known: The event type, for the names of its attributes.
        opened: The uids that the right opens; ``None`` for all.

    Raises:
        MalformedError: ``POLICY_BOUND``.
    """
    names = {str(item.uid): name for name, meanings in known.attributes.items() for item in meanings}
    for bound in bounds:
        if bound.kind in _UPPER and not satisfiable(bound.filter):
            raise MalformedError(f"no event could meet the `{bound.kind}` bound", code=POLICY_BOUND)
        for uid in sorted(bound.filter.attributes):
            if bound.kind in _UPPER and opened is not None and uid not in opened:
                name = names.get(uid, uid)
                raise MalformedError(
                    f"the `{bound.kind}` bound asks for `{name}`, which the right keeps closed", code=POLICY_BOUND
                )


def _compile(use: BoundUse, known: KnownType, *, partial: bool) -> Bound | None:
    if use.kind in _KEYWORDS:
        if any(demand.operator != "any" for demand in use.demands):
            raise MalformedError(f"`{use.kind}` lists attributes, without demands on values", code=POLICY_BOUND)
        found = [find_attribute(known, demand.name) for demand in use.demands]
        try:
            kinds = {str(item.uid): item.type.value for item in found}
            return attribute_bound(AttributeBound(use.kind), list(kinds), kinds)
        except FilterTypeError as error:
            raise MalformedError(f"`{use.kind}` lists an attribute that has no filter", code="POLICY_VALUE") from error
    constraints = [made for demand in use.demands if (made := _constraint(demand, known, partial=partial)) is not None]
    return Bound(filter=TypedFilter(constraints=tuple(constraints)), kind=BoundKind(use.kind)) if constraints else None


def _constraint(demand: BoundDemand, known: KnownType, *, partial: bool) -> TypedConstraint | None:
    attribute = find_attribute(known, demand.name)
    values = []
    for value in demand.values:
        if isinstance(value, Variable):
            if not partial:
                raise UsageError(f"the value of `{demand.name}` is a variable", code="POLICY_GROUND")
            return None
        values.append(read_value(attribute, value.value))
    try:
        return TypedConstraint(
            attribute=attribute.uid, type=attribute.type.base, operator=Operator(demand.operator), values=tuple(values)
        )
    except FilterTypeError as error:
        raise MalformedError(
            f"`{demand.operator}` is no demand on `{demand.name}`, which is {attribute.type.value}", code="POLICY_VALUE"
        ) from error
