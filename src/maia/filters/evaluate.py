"""What one event makes of a filter: the paper's relations between filters and notifications.

Rules:

1. A constraint covers an attribute when names and types are equal and the operator holds for the values.
2. A null, missing or ill-typed value is covered by nothing: not by `!=`, not by `any`.
3. Null is absence. An attribute that is null is not part of the notification, so the strict relations do not ask a
   constraint for it; an ill-typed value is part of it and has no constraint, so they refuse it.
4. Nothing is three-valued: every answer is yes or no.

`maia.filters.select` gives the same answers for whole record batches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

from maia.filters.tree import Operator, TypedConstraint, TypedFilter
from maia.filters.values import Value, in_domain, sort_key


class Relation(StrEnum):
    """How a filter is read: as a conjunction (subscription) or as alternatives (advertisement), strictly or not."""

    SUBSCRIPTION = "subscription"
    STRICT_SUBSCRIPTION = "strict-subscription"
    ADVERTISEMENT = "advertisement"
    STRICT_ADVERTISEMENT = "strict-advertisement"


def matches(filter_: TypedFilter, event: Mapping[str, object]) -> bool:
    """Say whether an event satisfies every constraint: relation (1).

    >>> from maia.filters import compile_filter
    >>> types = {"name": "string", "price": "integer"}
    >>> quote = compile_filter("price > 24 and name = 'Nokia'", types)
    >>> matches(quote, {"name": "Nokia", "price": 25})
    True
    >>> matches(quote, {"name": "Nokia", "price": None})
    False

    Args:
        filter_: The typed filter.
        event: Values by attribute name.

    Returns:
        True when each constraint covers the event's value.
    """
    return all(holds(constraint, event.get(constraint.attribute)) for constraint in filter_.constraints)


def admits(relation: Relation, filter_: TypedFilter, event: Mapping[str, object]) -> bool:
    """Say whether a filter covers a notification under one of the relations (1), (2) and (5).

    The paper never defines strict cover of a notification by an advertisement; it is read as formula (5), the same as
    the plain one.

    >>> from maia.filters import compile_filter
    >>> s1 = compile_filter("message = 'new_product'", {"message": "string"})
    >>> n1 = {"message": "new_product", "price": 1}
    >>> admits(Relation.SUBSCRIPTION, s1, n1), admits(Relation.STRICT_SUBSCRIPTION, s1, n1)
    (True, False)

    Args:
        relation: How the filter is read.
        filter_: The typed filter.
        event: The notification, values by attribute name.

    Returns:
        Whether the relation holds.
    """
    match relation:
        case Relation.SUBSCRIPTION:
            return matches(filter_, event)
        case Relation.STRICT_SUBSCRIPTION:
            return matches(filter_, event) and _each_covered(filter_, event)
        case Relation.ADVERTISEMENT | Relation.STRICT_ADVERTISEMENT:
            return _each_covered(filter_, event)
        case _:
            assert_never(relation)


def holds(constraint: TypedConstraint, value: object) -> bool:
    """Say whether one constraint covers one value.

    >>> from maia.filters import compile_filter
    >>> holds(compile_filter("x != 2", {"x": "integer"}).constraints[0], None)
    False
    """
    if value is None or not in_domain(value, constraint.type):
        return False
    if constraint.operator is Operator.ANY:
        return True
    return _compare(constraint, value)  # type: ignore[arg-type]  # a member of the domain is a Value


def _compare(constraint: TypedConstraint, value: Value) -> bool:
    kind = constraint.type
    key = sort_key(value, kind)
    if constraint.operator is Operator.IN:
        # INVARIANT: the values of `in` are sorted by their keys.
        place = bisect_left(constraint.values, key, key=lambda member: sort_key(member, kind))
        return place < len(constraint.values) and sort_key(constraint.values[place], kind) == key
    operand = sort_key(constraint.values[0], kind)
    match constraint.operator:
        case Operator.EQUAL:
            return key == operand
        case Operator.NOT_EQUAL:
            return key != operand
        case Operator.LESS:
            return key < operand  # type: ignore[operator]  # keys of one type are of one Python type
        case Operator.GREATER:
            return key > operand  # type: ignore[operator]
        case Operator.AT_MOST:
            return key <= operand  # type: ignore[operator]
        case Operator.AT_LEAST:
            return key >= operand  # type: ignore[operator]
        case _:
            return _has_text(constraint.operator, str(key), str(operand))


def _has_text(operator: Operator, text: str, operand: str) -> bool:
    if operator is Operator.PREFIX:
        return text.startswith(operand)
    return text.endswith(operand) if operator is Operator.SUFFIX else operand in text


def _each_covered(filter_: TypedFilter, event: Mapping[str, object]) -> bool:
    """Formula (5): every attribute of the notification is covered by some constraint."""
    grouped = filter_.by_attribute()
    return all(
        any(holds(constraint, value) for constraint in grouped.get(attribute, ()))
        for attribute, value in event.items()
        if value is not None
    )
