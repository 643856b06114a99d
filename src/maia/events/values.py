"""Single values: which Python values an attribute type holds, and how they look in JSON.

Rules kept here (no value is ever rounded, wrapped or cast to fit):

- an integer has 64 bits and is no boolean; a float is finite and no integer; a boolean is only a boolean;
- a decimal is finite and fits the digits of its type, 38 with 18 of them after the point unless it says otherwise;
- an array is a list of values of one type, a struct a mapping with no other names than its own;
- a string encodes as UTF-8, so it holds no lone surrogate; binary is octets;
- a timestamp has a time zone and is kept in UTC; a date is no timestamp;
- ``None`` belongs to every type: it says that there is no value, whatever the reason.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TypeAlias

from maia.errors import MalformedError
from maia.events.attributes import Attribute
from maia.events.value_types import (
    DECIMAL_PRECISION,
    ArrayOf,
    AttributeType,
    StructOf,
    ValueType,
    decimal_size,
)

Value: TypeAlias = (
    "int | float | Decimal | str | bool | date | datetime | bytes | list[Value] | dict[str, Value] | None"
)

_INTEGER_LIMIT = 1 << 63
_EXACT = Context(prec=DECIMAL_PRECISION + 2, traps=[Inexact, InvalidOperation])
_FLOAT_DIGITS = 15
# Narrower than the library, which takes more forms and cuts what is finer than a microsecond.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(_DATE.pattern + r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})")
_JSON_DECIMAL_LENGTH = DECIMAL_PRECISION + 2


def check_value(attribute: Attribute, value: object) -> Value:
    """Give the value back in its one form, or refuse one that is not of the attribute's type.

    Guarantees: a timestamp comes back in UTC; everything else comes back unchanged.

    Raises:
        MalformedError: The value does not belong to the type.

    >>> from maia.events.attributes import attribute
    >>> check_value(attribute("speed", 0, "integer"), 9007199254740993)
    9007199254740993
    >>> check_value(attribute("speed", 0, "integer"), True)
    Traceback (most recent call last):
    ...
    maia.errors.MalformedError: [VALUE_TYPE] the value of `speed` is no integer
    """
    if value is None:
        return None
    try:
        return _checked(attribute.type, value)
    except (TypeError, ValueError, OverflowError, ArithmeticError) as error:
        article = f"the value of `{attribute.name}` is no {attribute.type.value}"
        raise MalformedError(article, code="VALUE_TYPE") from error


def value_from_json(attribute: Attribute, value: object) -> Value:
    """Read a value from JSON: decimals, dates, timestamps and binary (base64) are texts, the rest is itself.

    A timestamp may also be a whole number of seconds since 1970, a decimal a number of at most 15 digits.

    Raises:
        MalformedError: The value does not belong to the type.

    >>> from maia.events.attributes import attribute
    >>> value_from_json(attribute("seen", 0, "timestamp"), "2026-06-01T08:00:00Z").isoformat()
    '2026-06-01T08:00:00+00:00'
    """
    if value is None:
        return None
    try:
        return check_value(attribute, _from_json(attribute.type, value))
    except (TypeError, ValueError, OverflowError, ArithmeticError, OSError) as error:
        article = f"the value of `{attribute.name}` is no {attribute.type.value}"
        raise MalformedError(article, code="VALUE_TYPE") from error


def value_to_json(value: Value) -> object:
    """Write a checked value in the form that `value_from_json` reads.

    >>> value_to_json(Decimal("1.50")), value_to_json(b"maia")
    ('1.50', 'bWFpYQ==')
    """
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, list):
        return [value_to_json(item) for item in value]
    if isinstance(value, dict):
        return {name: value_to_json(item) for name, item in value.items()}
    return value


def _integer(value: object) -> int:
    if type(value) is not int or not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
        raise ValueError
    return value


def _float(value: object) -> float:
    if type(value) is not float or not math.isfinite(value):
        raise ValueError
    return value


def _decimal(kind: ValueType, value: object) -> Decimal:
    precision, scale = decimal_size(kind)
    if type(value) is not Decimal or not value.is_finite() or value.copy_abs() >= Decimal(10) ** (precision - scale):
        raise ValueError
    value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)  # raises when a digit would be lost
    return value


def _checked(kind: ValueType, value: object) -> Value:
    if value is None:
        return None
    if kind.base is AttributeType.DECIMAL:
        return _decimal(kind, value)
    if isinstance(kind, ArrayOf):
        return [_checked(kind.element, item) for item in _as_list(value)]
    if isinstance(kind, StructOf):
        given = _as_fields(kind, value)
        return {name: _checked(part, given.get(name)) for name, part in kind.fields}
    return _CHECKS[kind.base](value)


def _as_list(value: object) -> list[object]:
    if type(value) is not list:
        raise ValueError
    return value


def _as_fields(kind: StructOf, value: object) -> dict[str, object]:
    if not isinstance(value, dict) or not value.keys() <= {name for name, _ in kind.fields}:
        raise ValueError
    return value


def _string(value: object) -> str:
    if type(value) is not str:
        raise ValueError
    value.encode("utf-8")
    return value


def _boolean(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def _date(value: object) -> date:
    if type(value) is not date:
        raise ValueError
    return value


def _timestamp(value: object) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise ValueError
    return value.astimezone(UTC)


def _binary(value: object) -> bytes:
    if type(value) is not bytes:
        raise ValueError
    return value


_CHECKS: dict[AttributeType, Callable[[object], Value]] = {
    AttributeType.INTEGER: _integer,
    AttributeType.FLOAT: _float,
    AttributeType.STRING: _string,
    AttributeType.BOOLEAN: _boolean,
    AttributeType.DATE: _date,
    AttributeType.TIMESTAMP: _timestamp,
    AttributeType.BINARY: _binary,
}


def _from_json(kind: ValueType, value: object) -> object:
    if value is None:
        return None
    if isinstance(kind, ArrayOf):
        return [_from_json(kind.element, item) for item in _as_list(value)]
    if isinstance(kind, StructOf):
        given = _as_fields(kind, value)
        return {name: _from_json(part, given.get(name)) for name, part in kind.fields}
    reader = _JSON_READERS.get(kind.base)
    return value if reader is None else reader(value)


def _json_decimal(value: object) -> Decimal:
    if type(value) is int:
        return Decimal(_integer(value))
    if type(value) is float:
        # Up to 15 digits the number that was written and the float that was read name each other.
        written = Decimal(repr(value))
        if not written.is_finite() or len(written.as_tuple().digits) > _FLOAT_DIGITS:
            raise ValueError
        return written
    digits = value.replace(".", "", 1).removeprefix("-") if type(value) is str else ""
    if not digits.isascii() or not digits.isdigit() or len(digits) > _JSON_DECIMAL_LENGTH:
        raise ValueError
    return Decimal(value)  # type: ignore[arg-type]


def _json_date(value: object) -> date:
    if type(value) is not str or not _DATE.fullmatch(value):
        raise ValueError
    return date.fromisoformat(value)


def _json_timestamp(value: object) -> datetime:
    if type(value) is int:
        return datetime.fromtimestamp(value, UTC)
    if type(value) is not str or not _INSTANT.fullmatch(value):
        raise ValueError
    return datetime.fromisoformat(value)


def _json_binary(value: object) -> bytes:
    if type(value) is not str:
        raise ValueError
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError from error


_JSON_READERS: dict[AttributeType, Callable[[object], object]] = {
    AttributeType.DECIMAL: _json_decimal,
    AttributeType.DATE: _json_date,
    AttributeType.TIMESTAMP: _json_timestamp,
    AttributeType.BINARY: _json_binary,
}
