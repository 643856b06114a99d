"""Demands on the values of a row, written as tags.

Rules kept here: a uid has no surprising characters; several demands on one uid must all hold; ``!=`` becomes two
ranges; a number is finite, an instant has a time zone, text has no lone surrogate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite
from typing import TypeAlias

from maia.authority.tag_forms import EVERYTHING, Exactly, Tag, one_of, rows
from maia.authority.tags import intersect, parse_tag
from maia.encoding import Sexp
from maia.errors import TagError

Value: TypeAlias = "str | int | float | bool | Decimal | date | datetime"


@dataclass(frozen=True, slots=True)
class Constraint:
    """A demand on the value of one attribute, named by its uid."""

    uid: str
    operator: str
    value: Value | tuple[Value, ...]

    def to_tag(self) -> Tag:
        """Write the demand as a tag on the attribute's value."""
        return value_tag(self.operator, self.value)


def rows_tag(constraints: Iterable[Constraint], *, enforced: bool = False) -> Tag:
    """Write demands on a row; several on one uid must all hold. ``enforced``: the receiving domain enforces them.

    >>> rows_tag([Constraint("7", ">=", 500), Constraint("7", "<", 700)]).to_sexp()
    (b'*', b'where', (b'7', (b'*', b'range', b'numeric', b'ge', b'500', b'l', b'700')))
    """
    found: dict[bytes, Tag] = {}
    for constraint in constraints:
        uid = check_uid(constraint.uid)
        tag = constraint.to_tag()
        found[uid] = intersect(found[uid], tag) if uid in found else tag
    return rows(found.items(), enforced=found if enforced else ())


def value_tag(operator: str, value: Value | tuple[Value, ...]) -> Tag:
    """Write ``operator value`` as a tag on strings: sets, prefixes, globs and ranges.

    >>> value_tag("!=", 5).to_sexp()
    (b'*', b'set', (b'*', b'range', b'numeric', b'g', b'5'), (b'*', b'range', b'numeric', b'l', b'5'))
    """
    if operator == "any":
        return EVERYTHING
    if operator == "in":
        if not isinstance(value, tuple):
            raise TagError("`in` needs a list of values", code="CONSTRAINT_VALUE")
        return one_of(value_tag("=", item) for item in value)
    if isinstance(value, tuple):
        raise TagError(f"`{operator}` needs one value", code="CONSTRAINT_VALUE")
    ordering, text = encode_value(value)
    if operator in _TEXT_OPERATORS:
        if not isinstance(value, str):
            raise TagError(f"`{operator}` is for strings", code="CONSTRAINT_VALUE")
        return parse_tag(_text_form(operator, text))
    if operator == "=" and ordering in (b"alpha", b""):
        return Exactly(text)
    if not ordering:
        if operator == "!=":
            return Exactly(b"false" if value else b"true")
        raise TagError("booleans have no order", code="CONSTRAINT_VALUE")
    limits = _RANGES.get(operator)
    if limits is None:
        raise TagError(f"unknown operator `{operator}`", code="CONSTRAINT_OPERATOR")
    forms: list[Sexp] = [(b"*", b"range", ordering, *(part for op in ops for part in (op, text))) for ops in limits]
    return one_of(parse_tag(form) for form in forms)


def encode_value(value: Value) -> tuple[bytes, bytes]:
    """Return the ordering of a value and its text; the ordering of a boolean is empty.

    >>> encode_value(12), encode_value("Victoria")
    ((b'numeric', b'12'), (b'alpha', b'Victoria'))
    """
    if isinstance(value, bool):
        return b"", b"true" if value else b"false"
    if isinstance(value, int):
        return b"numeric", b"%d" % value
    if isinstance(value, float):
        if not isfinite(value):
            raise TagError("a constraint on a number that is not finite", code="CONSTRAINT_VALUE")
        text = format(Decimal(repr(value)), "f")
        return b"decimal", (text if "." in text else f"{text}.0").encode()
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise TagError("a constraint on a number that is not finite", code="CONSTRAINT_VALUE")
        text = format(value, "f")
        return b"decimal", (text if "." in text else f"{text}.0").encode()
    if isinstance(value, datetime):
        return b"date", encode_timestamp(value)
    if isinstance(value, date):
        return b"date", value.isoformat().encode()
    try:
        return b"alpha", value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TagError("a constraint on text with a lone surrogate", code="CONSTRAINT_VALUE") from error


def encode_timestamp(value: datetime) -> bytes:
    """Write an instant to the microsecond, without trailing zeros."""
    if value.tzinfo is None:
        raise TagError("a constraint on an instant without a time zone", code="CONSTRAINT_VALUE")
    at = value.astimezone(UTC)
    text = at.strftime("%Y-%m-%d_%H:%M:%S").rjust(19, "0")
    return (f"{text}.{at.microsecond:06d}".rstrip("0") if at.microsecond else text).encode()


def row_request(values: Mapping[str, bytes]) -> Sexp:
    """Write the values of one row as the ground form ``(row (<uid> <value>) …)``; nulls are left out."""
    return (b"row", *((check_uid(uid), text) for uid, text in sorted(values.items())))


def check_uid(uid: str) -> bytes:
    """Refuse a uid with surprising characters."""
    octets = uid.encode("utf-8", "surrogatepass")
    if not octets or len(octets) > 128 or not all(33 <= octet < 127 for octet in octets):
        raise TagError(f"malformed uid `{uid!r}`", code="UID")
    return octets


def _text_form(operator: str, text: bytes) -> Sexp:
    if operator == "prefix":
        return (b"*", b"prefix", text)
    return (b"*", b"pieces", b"", text) if operator == "suffix" else (b"*", b"pieces", b"", text, b"")


_TEXT_OPERATORS = frozenset(("prefix", "suffix", "contains"))


_RANGES: dict[str, tuple[tuple[bytes, ...], ...]] = {
    "=": ((b"ge", b"le"),),
    "!=": ((b"l",), (b"g",)),
    "<": ((b"l",),),
    "<=": ((b"le",),),
    ">": ((b"g",),),
    ">=": ((b"ge",),),
}
