"""Giving a filter its meaning: literals become values of the attribute's type, or the filter is refused.

Rules:

1. Only attributes of the event type can be constrained; names are compared exactly.
2. No literal is cast: an integer literal is no float, a number with a point is no integer, a text is no number.
3. Numbers outside the range of their type are refused, never rounded; a float literal too small to be anything but
   zero is refused as well.
4. Dates and timestamps are written as such; a timestamp names its zone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from maia.encoding import did_you_mean
from maia.errors import FilterTypeError, MalformedError
from maia.events import AttributeType, parse_attribute_type
from maia.filters.language import parse_filter
from maia.filters.limits import DEFAULT_LIMITS, FilterLimits
from maia.filters.tree import (
    Filter,
    Literal,
    LiteralKind,
    TypedConstraint,
    TypedFilter,
    WrittenConstraint,
    check_operator,
    unfilterable,
)
from maia.filters.values import Value, in_domain, parse_date, parse_timestamp

_KINDS = {
    AttributeType.INTEGER: LiteralKind.INTEGER,
    AttributeType.FLOAT: LiteralKind.POINT,
    AttributeType.DECIMAL: LiteralKind.POINT,
    AttributeType.STRING: LiteralKind.TEXT,
    AttributeType.BOOLEAN: LiteralKind.TRUTH,
    AttributeType.DATE: LiteralKind.TEXT,
    AttributeType.TIMESTAMP: LiteralKind.TEXT,
}


def check(filter_: Filter, types: Mapping[str, str]) -> TypedFilter:
    """Give every constraint the type of its attribute.

    >>> check(parse_filter("x > 3 and x < 5"), {"x": "integer"}).constraints[0].values
    (3,)
    >>> check(parse_filter("x > 3.0"), {"x": "integer"})
    Traceback (most recent call last):
    maia.errors.FilterTypeError: [FILTER_LITERAL_TYPE] attribute `x` is of type integer ...

    Args:
        filter_: What was written.
        types: The attributes of the event type by name, each with the name of its type.

    Returns:
        The filter with typed constraints, in the same order.

    Raises:
        FilterTypeError: An attribute is unknown or binary, an operator is not defined for its type, or a literal is
            no value of the type.
    """
    return TypedFilter(constraints=tuple(_check_constraint(item, types) for item in filter_.constraints))


def compile_filter(text: str, types: Mapping[str, str], *, limits: FilterLimits = DEFAULT_LIMITS) -> TypedFilter:
    """Parse and check in one step.

    >>> compile_filter("color any", {"color": "string"}).attributes
    frozenset({'color'})

    Args:
        text: The filter text.
        types: The attributes of the event type by name, each with the name of its type.
        limits: How large the text and its parts may be.

    Returns:
        The typed filter.

    Raises:
        FilterSyntaxError: The text is no filter.
        FilterTypeError: The filter does not fit the types.
    """
    return check(parse_filter(text, limits=limits), types)


def check_event(event: Mapping[str, object], types: Mapping[str, str]) -> None:
    """Raise unless every attribute of the event is known and its value null or of its type.

    >>> check_event({"price": None}, {"price": "integer"})
    >>> check_event({"price": "1"}, {"price": "integer"})
    Traceback (most recent call last):
    maia.errors.FilterTypeError: [EVENT_TYPE] the value of `price` is no integer

    Args:
        event: Values by attribute name.
        types: The attributes of the event type by name, each with the name of its type.

    Raises:
        FilterTypeError: An attribute is unknown, or a value lies outside the domain of its type.
    """
    for attribute, value in event.items():
        kind = attribute_type(attribute, types)
        if kind is AttributeType.BINARY and types[attribute] != kind.value:
            continue  # an array or a struct, at which no filter looks
        if value is not None and not in_domain(value, kind):
            raise FilterTypeError(f"the value of `{attribute}` is no {kind.value}", code="EVENT_TYPE")


def attribute_type(attribute: str, types: Mapping[str, str]) -> AttributeType:
    """The plain type by which an attribute is compared, or `FilterTypeError` when there is no such thing."""
    name = types.get(attribute)
    if name is None:
        near = did_you_mean(attribute, types)
        raise FilterTypeError(f"there is no attribute `{attribute}`{near}", code="FILTER_UNKNOWN_ATTRIBUTE")
    try:
        return parse_attribute_type(name).base
    except MalformedError as error:
        raise FilterTypeError(f"there is no attribute type `{name}`", code="FILTER_UNKNOWN_TYPE") from error


def _check_constraint(constraint: WrittenConstraint, types: Mapping[str, str]) -> TypedConstraint:
    kind = attribute_type(constraint.attribute, types)
    if not kind.filterable:
        raise unfilterable(constraint.attribute, types[constraint.attribute])
    check_operator(constraint.attribute, kind, constraint.operator)
    values = tuple(_value(literal, constraint.attribute, kind) for literal in constraint.literals)
    return TypedConstraint(attribute=constraint.attribute, type=kind, operator=constraint.operator, values=values)


def _value(literal: Literal, attribute: str, kind: AttributeType) -> Value:
    if literal.kind is not _KINDS[kind]:
        whole = literal.kind is LiteralKind.INTEGER and _KINDS[kind] is LiteralKind.POINT
        hint = f"; write `{literal.value}.0`" if whole else ""
        raise FilterTypeError(
            f"attribute `{attribute}` is of type {kind.value}, but the literal reads as {literal.kind.value}{hint}",
            code="FILTER_LITERAL_TYPE",
        )
    value: Value | None = literal.value
    if kind is AttributeType.FLOAT and isinstance(literal.value, Decimal):
        value = _double(literal.value)
    elif kind is AttributeType.DATE and isinstance(literal.value, str):
        value = parse_date(literal.value)
    elif kind is AttributeType.TIMESTAMP and isinstance(literal.value, str):
        value = parse_timestamp(literal.value)
    if value is None or not in_domain(value, kind):
        raise FilterTypeError(
            f"the literal for attribute `{attribute}` is no {kind.value}, or out of range",
            code="FILTER_LITERAL_RANGE",
        )
    return value


def _double(value: Decimal) -> float | None:
    """The nearest double; None when that is infinite, or zero for what is not zero."""
    try:
        double = float(value)
    except OverflowError:
        return None
    if not math.isfinite(double) or (double == 0.0 and value != 0):
        return None
    return double
