"""Access-control bounds: which notifications, advertisements and subscriptions a filter in a policy allows.

Rules (the paper's section 3.3 and 3.4, with the readings of choices C3, C29 and C32):

1. upper: a publication must be covered by the bound (1); an advertisement or subscription must be covered by it, both
   read as subscriptions (3). strict-upper demands strict cover as well: (2) and (4).
2. lower, publication: some constraint covers some attribute, and no attribute whose name the bound constrains has a
   value outside the bound's alternatives for that name. Other attributes are free.
3. lower, advertisement or subscription: covered by the bound, both read as advertisements (6).
4. strict-lower: formula (5) for a publication, (7) for an advertisement or subscription: only attributes that own a
   constraint. New policies should use this one.
5. Bounds of one right hold together. Rules only permit: no rule, no access; several rules are several rights, which
   add up where rights meet data (`maia.kernel.bounds`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from maia.errors import UncheckedError, UsageError
from maia.filters.checking import attribute_type
from maia.filters.covering import covers
from maia.filters.evaluate import Relation, admits, holds
from maia.filters.tree import Operator, TypedConstraint, TypedFilter


class BoundKind(StrEnum):
    """The four kinds of bound."""

    UPPER = "upper"
    STRICT_UPPER = "strict-upper"
    LOWER = "lower"
    STRICT_LOWER = "strict-lower"


class Side(StrEnum):
    """What the bound is asked about."""

    PUBLISH = "publish"
    ADVERTISE = "advertise"
    SUBSCRIBE = "subscribe"


class AttributeBound(StrEnum):
    """The keywords that bound the attribute set of a subscription (choice C29)."""

    MIN = "min"
    EXACT = "exact"
    MAX = "max"


_KEYWORD_KINDS = {
    AttributeBound.MIN: BoundKind.UPPER,
    AttributeBound.EXACT: BoundKind.STRICT_UPPER,
    AttributeBound.MAX: BoundKind.STRICT_LOWER,
}
_RELATIONS = {
    BoundKind.UPPER: Relation.SUBSCRIPTION,
    BoundKind.STRICT_UPPER: Relation.STRICT_SUBSCRIPTION,
    BoundKind.LOWER: Relation.ADVERTISEMENT,
    BoundKind.STRICT_LOWER: Relation.STRICT_ADVERTISEMENT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A filter together with the kind of bound it is."""

    filter: TypedFilter
    kind: BoundKind


def allows(bound: TypedFilter, *, kind: BoundKind, side: Side, subject: TypedFilter | Mapping[str, object]) -> bool:
    """Say whether a bound allows a publication, an advertisement or a subscription.

    >>> from maia.filters import compile_filter
    >>> types = {"message": "string", "price": "integer", "color": "string"}
    >>> lower = compile_filter("message = 'new_product' and price < 100", types)
    >>> event = {"message": "new_product", "price": 10, "color": "blue"}
    >>> allows(lower, kind=BoundKind.LOWER, side=Side.PUBLISH, subject=event)
    True
    >>> allows(lower, kind=BoundKind.STRICT_LOWER, side=Side.PUBLISH, subject=event)
    False

    Args:
        bound: The filter of the policy.
        kind: How the filter bounds.
        side: What is asked; `publish` has an event as subject, the others a filter.
        subject: The event, or the typed filter of the advertisement or subscription.

    Returns:
        Whether it is allowed. The event is taken as it is; `check_event` says whether it fits its type.

    Raises:
        UsageError: The subject does not belong to the side.
    """
    if isinstance(subject, TypedFilter):
        if side is Side.PUBLISH:
            raise UsageError("a publication is an event, not a filter", code="BOUND_SUBJECT")
        return covers(bound, subject, _RELATIONS[kind])
    if side is not Side.PUBLISH:
        raise UsageError("an advertisement or subscription is a filter, not an event", code="BOUND_SUBJECT")
    if kind is BoundKind.LOWER:
        return _lower_publish(bound, subject)
    return admits(_RELATIONS[kind], bound, subject)


def attribute_bound(keyword: AttributeBound, attributes: Collection[str], types: Mapping[str, str]) -> Bound:
    """The bound that demands at least, exactly or at most these attributes in a subscription.

    >>> from maia.filters import compile_filter
    >>> types = {"message": "string", "price": "integer", "color": "string"}
    >>> bound = attribute_bound(AttributeBound.MAX, ("message", "price"), types)
    >>> wide = compile_filter("message any and color any", types)
    >>> allows(bound.filter, kind=bound.kind, side=Side.SUBSCRIBE, subject=wide)
    False

    Args:
        keyword: `min`, `exact` or `max`.
        attributes: The attribute names; at least one.
        types: The attributes of the event type.

    Returns:
        A bound of `any` constraints.

    Raises:
        UsageError: There are no attributes.
        FilterTypeError: An attribute is unknown or binary.
    """
    if not attributes:
        raise UsageError("an attribute bound needs at least one attribute", code="BOUND_EMPTY")
    constraints = tuple(
        TypedConstraint(attribute=name, type=attribute_type(name, types), operator=Operator.ANY, values=())
        for name in sorted(set(attributes))
    )
    return Bound(filter=TypedFilter(constraints=constraints), kind=_KEYWORD_KINDS[keyword])


def all_allow(bounds: Iterable[Bound], wanted: TypedFilter, *, side: Side) -> bool:
    """Say whether all bounds allow an advertisement or subscription; none of them being there allows everything.

    What is too large to be compared is not allowed: a doubt about a bound is no permission.

    >>> from maia.filters import compile_filter
    >>> upper = Bound(filter=compile_filter("message any", {"message": "string"}), kind=BoundKind.UPPER)
    >>> all_allow([upper], TypedFilter(), side=Side.SUBSCRIBE), all_allow([], TypedFilter(), side=Side.SUBSCRIBE)
    (False, True)
    """
    try:
        return all(allows(bound.filter, kind=bound.kind, side=side, subject=wanted) for bound in bounds)
    except UncheckedError:
        return False


def _lower_publish(bound: TypedFilter, event: Mapping[str, object]) -> bool:
    """Choice C3, with alternatives on one attribute (C32)."""
    constrained = [
        any(holds(constraint, event[attribute]) for constraint in constraints)
        for attribute, constraints in bound.by_attribute().items()
        if event.get(attribute) is not None
    ]
    return bool(constrained) and all(constrained)
