"""From a filter tree back to text, in one canonical spelling that parses back to an equal filter."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

from maia.events import AttributeType
from maia.filters.tree import Filter, Literal, TypedConstraint, TypedFilter
from maia.filters.values import Value, format_timestamp, plain_decimal

_BARE_NAME = re.compile(r"[^\W\d][\w.-]*")
_PLAIN_DIGITS = 40


def format_filter(filter_: Filter | TypedFilter) -> str:
    """Write a filter in its canonical spelling.

    Parsing the result gives an equal filter back; for a typed filter, parsing and checking does.

    >>> from maia.filters import parse_filter
    >>> print(format_filter(parse_filter("price<100   AND name Prefix 'it''s'")))
    price < 100 and name prefix 'it''s'

    Args:
        filter_: A filter as written, or a typed one.

    Returns:
        The text; empty for the filter without constraints.
    """
    parts = []
    for constraint in filter_.constraints:
        if isinstance(constraint, TypedConstraint):
            values = tuple(format_value(value, constraint.type) for value in constraint.values)
        else:
            values = tuple(_literal(literal) for literal in constraint.literals)
        parts.append(_constraint(constraint.attribute, constraint.operator.value, values))
    return " and ".join(parts)


def format_value(value: Value, kind: AttributeType) -> str:
    """Write one typed value as a literal of the language.

    >>> format_value(0.1, AttributeType.FLOAT)
    '0.1'
    >>> format_value("it's", AttributeType.STRING)
    "'it''s'"
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(Decimal(repr(value)))
    if isinstance(value, Decimal):
        return _number(value)
    if kind is AttributeType.TIMESTAMP and isinstance(value, datetime):
        return f"'{format_timestamp(value)}'"
    if isinstance(value, date):
        return f"'{value.isoformat()}'"
    return _text(value) if isinstance(value, str) else str(value)


def format_name(name: str) -> str:
    """Write an attribute name, in double quotes when it could not stand alone.

    >>> format_name("path-report-text"), format_name("a b")
    ('path-report-text', '"a b"')
    """
    return name if _BARE_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def _constraint(attribute: str, operator: str, values: tuple[str, ...]) -> str:
    head = f"{format_name(attribute)} {operator}"
    if operator == "in":
        return f"{head} ({', '.join(values)})"
    return f"{head} {values[0]}" if values else head


def _literal(literal: Literal) -> str:
    if isinstance(literal.value, bool):
        return "true" if literal.value else "false"
    if isinstance(literal.value, Decimal):
        return _number(literal.value)
    return _text(literal.value) if isinstance(literal.value, str) else str(literal.value)


def _number(value: Decimal) -> str:
    """Plain while it stays readable, with an exponent beyond; exact either way."""
    if not value:
        return "0.0"
    if -_PLAIN_DIGITS <= value.adjusted() <= _PLAIN_DIGITS:
        return plain_decimal(value)
    sign, digits, _ = value.as_tuple()
    mantissa = f"{digits[0]}.{''.join(map(str, digits[1:])) or '0'}"
    return f"{'-' if sign else ''}{mantissa}e{value.adjusted()}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
