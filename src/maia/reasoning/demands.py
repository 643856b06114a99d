"""What a right asks of the values of one attribute, in the words of filters, where that can be said exactly.

A right asks by tags, which stand for sets of octet strings; the values of an attribute have a type, and each value is
written in one way. Read here are tags as far as Maia's own constraint language goes, also where a certificate writes a
limit in another way than Maia does. A tag that compares values as something else than they are (texts as numbers,
numbers as texts) is not read: who asks is told that the question was not answered, and never gets a guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from maia.authority import Tag, alternatives, parse_tag, permits, value_tag
from maia.encoding import Sexp
from maia.errors import TagError, UncheckedError
from maia.events import AttributeType, ValueType
from maia.filters import Demand, Operator, TypedConstraint, Value, from_tag, in_domain, read_atom, value_atom

NOT_COMPARABLE = "NOT_COMPARABLE"
_NOTHING: Demand = ()
_ANYTHING: Sexp = (b"*",)
_LIMITS = {
    b"g": Operator.GREATER, b"ge": Operator.AT_LEAST, b"l": Operator.LESS, b"le": Operator.AT_MOST,
}  # fmt: skip
_LITERAL = re.compile(r"'([^'\\]{0,64})'|\"([^\"\\]{0,64})\"|(?<![\w.'])(-?\d{1,15}(?:\.\d{1,15})?)")
_MOST_LITERALS = 16
_COMPARED = re.compile(r"\s*event\['([^'\\]{1,64})'\]\s*(==|<=|>=|<|>)\s*(?:(-?\d{1,18})|'([^'\\]{0,64})')\s*")
# Types none of whose values is written so that the ordering has a place for it.
_STRANGERS: dict[bytes, frozenset[AttributeType]] = {
    b"numeric": frozenset({
        AttributeType.FLOAT, AttributeType.DECIMAL, AttributeType.BOOLEAN, AttributeType.DATE, AttributeType.TIMESTAMP,
    }),
    b"decimal": frozenset({AttributeType.BOOLEAN, AttributeType.DATE, AttributeType.TIMESTAMP}),
    b"date": frozenset({AttributeType.FLOAT, AttributeType.DECIMAL, AttributeType.BOOLEAN}),
    b"time": frozenset({
        AttributeType.FLOAT, AttributeType.DECIMAL, AttributeType.BOOLEAN, AttributeType.DATE, AttributeType.TIMESTAMP,
    }),
}  # fmt: skip
_ORDERED: dict[AttributeType, bytes] = {
    AttributeType.INTEGER: b"numeric", AttributeType.FLOAT: b"decimal", AttributeType.DECIMAL: b"decimal",
    AttributeType.DATE: b"date", AttributeType.TIMESTAMP: b"date",
}  # fmt: skip


def demand_of(tag: Tag, kind: ValueType) -> Demand:
    """Say what a tag asks of the values of a type, as alternatives that are conjunctions of constraints.

    >>> from maia.authority import value_tag
    >>> [[str(item.operator) for item in one] for one in demand_of(value_tag("!=", 5), AttributeType.INTEGER)]
    [['>'], ['<']]
    >>> demand_of(value_tag("=", "five"), AttributeType.INTEGER)
    ()

    Raises:
        UncheckedError: It compares values as something that they are not: ``NOT_COMPARABLE``.
    """
    found: list[tuple[TypedConstraint, ...]] = []
    for form in alternatives(tag.to_sexp()):
        found += (tuple(option) for option in _option(form, kind.base))
    return tuple(found)


def _option(form: Sexp, kind: AttributeType) -> Demand:
    if form == _ANYTHING:
        return ((),) if kind is AttributeType.BINARY else (_constraints(kind, Operator.ANY),)
    if kind is AttributeType.BINARY:
        return _NOTHING  # octets have no form in tags
    if kind is AttributeType.BOOLEAN:
        tag = parse_tag(form)
        held = [value for value in (False, True) if permits(tag, value_atom(value, kind))]
        return tuple(_constraints(kind, Operator.EQUAL, value) for value in held)
    try:
        return (from_tag(form, "value", kind),)
    except TagError:
        return _otherwise(form, kind)


def _otherwise(form: Sexp, kind: AttributeType) -> Demand:
    """Read a form that filters do not write so."""
    match form:
        case bytes():
            value = read_atom(form, kind)
            same = value is not None and value_atom(value, kind) == form
            return (_constraints(kind, Operator.EQUAL, value),) if value is not None and same else _NOTHING
        case (b"*", b"and", *parts):
            return _together([_part(part, kind) for part in parts])
        case (b"*", b"range", bytes() as ordering, *limits):
            return _range(ordering, limits, kind)
        case _:
            raise _not_comparable(kind)


def _part(form: Sexp, kind: AttributeType) -> Demand:
    try:
        return (from_tag(form, "value", kind),)
    except TagError:
        return _otherwise(form, kind)


def _together(parts: list[Demand]) -> Demand:
    """Put simple demands together, each one conjunction or none."""
    if any(not part for part in parts):
        return _NOTHING
    return (tuple(item for part in parts for item in part[0]),)


def _range(ordering: bytes, limits: list[Sexp], kind: AttributeType) -> Demand:
    if kind in _STRANGERS.get(ordering, frozenset()):
        return _NOTHING
    readable = _ORDERED.get(kind) == ordering or (kind, ordering) == (AttributeType.INTEGER, b"decimal")
    if not readable:
        raise _not_comparable(kind)
    flat = [part for limit in limits for part in (limit if isinstance(limit, tuple) else (limit,))]
    found: list[TypedConstraint] = list(_constraints(kind, Operator.ANY))
    for operator, octets in zip(flat[0::2], flat[1::2], strict=True):
        assert isinstance(operator, bytes)  # noqa: S101 - the tag was read
        assert isinstance(octets, bytes)  # noqa: S101
        limit = _limit(_LIMITS[operator], octets.decode("ascii"), kind)
        if limit is False:
            return _NOTHING
        if limit is not True:
            found += _constraints(kind, *limit)
    return (tuple(found),)


def _limit(operator: Operator, text: str, kind: AttributeType) -> tuple[Operator, Value] | bool:
    """Say what one limit asks of values of the type; true when all meet it, false when none does."""
    match kind:
        case AttributeType.DECIMAL:
            return operator, Decimal(text)
        case AttributeType.INTEGER:
            return _whole(operator, Decimal(text), kind)
        case AttributeType.FLOAT:
            return _double(operator, Decimal(text))
        case _:
            return _moment(operator, text, kind)


def _whole(operator: Operator, limit: Decimal, kind: AttributeType) -> tuple[Operator, Value] | bool:
    """Move a limit onto the whole numbers."""
    up = operator in (Operator.GREATER, Operator.AT_LEAST)
    rounding = ROUND_FLOOR if operator in (Operator.GREATER, Operator.AT_MOST) else ROUND_CEILING
    number = int(limit.to_integral_value(rounding))
    if in_domain(number, kind):
        return operator, number
    return (number < 0) is up  # beyond all values: a limit below them that asks for more is met by all


def _double(operator: Operator, limit: Decimal) -> tuple[Operator, Value] | bool:
    """Move a limit onto the doubles, which are compared by the shortest decimal that reads back as them."""
    up = operator in (Operator.GREATER, Operator.AT_LEAST)
    near = float(limit)
    if math.isinf(near):
        return (near < 0) is up
    if Decimal(repr(near)) == limit:
        return operator, near
    inside = math.inf if up else -math.inf
    while (Decimal(repr(near)) < limit) is up:
        near = math.nextafter(near, inside)
        if math.isinf(near):
            return False
    while True:  # back to the first that the limit admits
        before = math.nextafter(near, -inside)
        if math.isinf(before) or (Decimal(repr(before)) < limit) is up:
            return Operator.AT_LEAST if up else Operator.AT_MOST, near
        near = before


def _moment(operator: Operator, text: str, kind: AttributeType) -> tuple[Operator, Value]:
    """Read a limit that leaves out what is the earliest: ``2026``, ``2026-06``, ``2026-06-01_09``."""
    day, _, time = text.replace("T", "_").rstrip("Z").partition("_")
    year, month, number = (int(part) for part in (*day.split("-"), "1", "1")[:3])
    hour, minute, second = (*time.split(":"), "0", "0", "0")[:3] if time else ("0", "0", "0")
    whole, _, fraction = second.partition(".")
    at = datetime(year, month, number, int(hour), int(minute), int(whole), int(fraction.ljust(6, "0")), tzinfo=UTC)
    if kind is AttributeType.TIMESTAMP:
        return operator, at
    midnight = at == datetime(year, month, number, tzinfo=UTC)
    limit = date(year, month, number)
    if midnight:
        return operator, limit
    # A day is its first instant: one that begins before a later instant of itself lies below it.
    return (Operator.GREATER if operator in (Operator.GREATER, Operator.AT_LEAST) else Operator.AT_MOST), limit


def _constraints(kind: AttributeType, operator: Operator, *values: Value) -> tuple[TypedConstraint, ...]:
    return (TypedConstraint(attribute="value", type=kind, operator=operator, values=values),)


def _not_comparable(kind: AttributeType) -> UncheckedError:
    message = f"a right compares values of type {kind.value} as something else, which cannot be reasoned about"
    return UncheckedError(message, code=NOT_COMPARABLE)


def samples(form: Sexp) -> Iterator[bytes]:
    """Give octet strings that a form may stand for, to be tried where it cannot be reasoned about."""
    match form:
        case bytes():
            yield form
        case (b"*", (b"glob"), bytes() as text):
            yield from (text.replace(b"*", b""), text.replace(b"*", b"-"))
        case (b"*", b"pieces", *pieces):
            yield from (joint.join(piece for piece in pieces if isinstance(piece, bytes)) for joint in (b"", b"-"))
        case (b"*", b"range", _, *limits):
            yield from (limit for limit in limits if isinstance(limit, bytes) and limit not in _LIMITS)
        case (b"*", (b"and" | b"set"), *parts):
            for part in parts:
                yield from samples(part)
        case (b"*", b"prefix", bytes() as text):
            yield text


def stated(conditions: Iterable[str], kinds: Mapping[str, ValueType]) -> tuple[tuple[str, Tag], ...]:
    """Say what conditions ask of a row for certain, as a right would: those that only join comparisons by ``&&``.

    >>> kinds = {"7": AttributeType.INTEGER}
    >>> [(uid, tag.to_sexp()) for uid, tag in stated(["event['7'] > 5 && event['7'] == 9"], kinds)]
    [('7', (b'*', b'range', b'numeric', b'g', b'5')), ('7', (b'*', b'range', b'numeric', b'ge', b'9', b'le', b'9'))]
    >>> stated(["event['7'] > 5 || now.hour('UTC') < 9"], kinds)
    ()
    """
    found: list[tuple[str, Tag]] = []
    for text in conditions:
        parts = [_COMPARED.fullmatch(part) for part in text.split("&&")]
        if not all(parts):
            continue  # a part alone may mean something else than it looks like
        for uid, operator, number, word in (part.groups() for part in parts if part is not None):
            kind = kinds[uid].base if uid in kinds else None
            if kind is AttributeType.INTEGER and number is not None:
                found.append((uid, value_tag(operator.replace("==", "="), int(number))))
            elif kind is AttributeType.STRING and word is not None and operator == "==":
                found.append((uid, value_tag("=", word)))
    return tuple(found)


def literals(conditions: Iterable[str], kind: ValueType) -> list[Value]:
    """Give values of a type that conditions are written with, and those next to them.

    >>> literals(["event['7'] > 5"], AttributeType.INTEGER)
    [4, 5, 6, 7]
    >>> literals(["event['7'] == 'AE05 XYZ'"], AttributeType.STRING)
    ['7', 'AE05 XYZ']
    """
    found: set[Value] = set()
    for text in conditions:
        for single, double, number in _LITERAL.findall(text):
            written = (single or double or number).encode()
            near = [written] if not number or "." in number else [b"%d" % (int(number) + step) for step in (-1, 0, 1)]
            near += [atom + b".0" for atom in near] if number and "." not in number else []
            found.update(value for atom in near if (value := read_atom(atom, kind.base)) is not None)
    if kind.base is AttributeType.BOOLEAN:
        found.update((False, True))
    return sorted(found)[:_MOST_LITERALS]
