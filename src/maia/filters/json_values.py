"""Events written as JSON objects, read as the values of their attributes' types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from maia.errors import MalformedError, UsageError
from maia.events import AttributeType, parse_attribute_type
from maia.filters.values import parse_date, parse_timestamp

_DECIMAL = re.compile(r"-?[0-9]{1,76}(\.[0-9]{1,76})?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_event(event: object, types: Mapping[str, str]) -> dict[str, object]:
    """An event from JSON: times and decimals, which JSON lacks, come from texts; everything else as it is.

    >>> read_event({"day": "2026-06-01", "n": 3}, {"day": "date", "n": "integer"})["day"].month
    6
    """
    if not isinstance(event, Mapping):
        raise UsageError("an event must be an object", code="REQUEST_FIELD")
    return {str(name): _value(value, types.get(str(name))) for name, value in event.items()}


def _value(value: object, kind: str | None) -> object:
    """A JSON value as a value of the attribute's type; what cannot be one stays as it is and is found out later."""
    if kind == AttributeType.TIMESTAMP:
        return _timestamp(value)
    if kind == AttributeType.DATE and isinstance(value, str):
        found = parse_date(value)
        return value if found is None else found
    if kind is not None and _is_decimal(kind):
        return _decimal(value)
    if kind == AttributeType.BINARY and isinstance(value, str):
        return value.encode(errors="surrogatepass")
    return value


def _is_decimal(kind: str) -> bool:
    """Tell whether a type is of decimals, of whatever size; a type that there is not is found out later."""
    try:
        return parse_attribute_type(kind).base is AttributeType.DECIMAL
    except MalformedError:
        return False


def _timestamp(value: object) -> object:
    if isinstance(value, str):
        found = parse_timestamp(value)
        return value if found is None else found
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return _EPOCH + timedelta(seconds=value)
        except OverflowError:
            return value
    return value


def _decimal(value: object) -> object:
    """JSON has no decimals: a text of digits is one, and a number stands for the digits it was written with."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return Decimal(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Decimal(repr(value))
    return value
