"""Filters and capabilities speak the same constraints: constraints on one attribute as a tag, and back.

====================  =======================================================================================
constraint            tag
====================  =======================================================================================
`x any`               ``(*)``
`n = 5`               ``(* range numeric ge "5" le "5")``; floats and decimals likewise with ``decimal``, dates and
                      timestamps with ``date``
`n < 5`               ``(* range numeric l "5")``; `>` is ``g``, `<=` is ``le``, `>=` is ``ge``
`n != 5`              ``(* set (* range numeric l "5") (* range numeric g "5"))``
`s = 'a'`             the octets of the text; booleans are ``true`` and ``false``
`s < 'a'`             ``(* range alpha l "a")``, octets in UTF-8, whose order is that of the code points
`s prefix 'a'`        ``(* prefix "a")``
`s suffix 'a'`        ``(* glob "*a")``, or ``(* pieces "" "a")`` when the text itself holds a star
`s contains 'a'`      ``(* glob "*a*")``, or ``(* pieces "" "a" "")``
`x in (…)`            ``(* set …)`` of the forms for `=`
several constraints   ``(* and …)`` in their order
====================  =======================================================================================

Integers are written without a point, floats and decimals always with one and never with an exponent; times as in
RFC 2693 (`2026-06-01_00:00:00`, with a fraction only when there is one), dates as `2026-06-01`.

Reading back is exact: constraints, tag, constraints gives constraints that admit the same values, and the same
constraints except that `!=` on a boolean comes back as `=` the other value, and `suffix` or `contains` of the empty
text as `any`. A tag that no conjunction can say is
refused, never approximated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isfinite

from maia.encoding import Hinted, Sexp
from maia.errors import FilterTypeError, TagError, UsageError
from maia.events import AttributeType
from maia.filters import sets
from maia.filters.shapes import Shape, constraints_of, join_shapes
from maia.filters.tree import Operator, TypedConstraint
from maia.filters.values import (
    Value,
    format_timestamp,
    parse_date,
    parse_timestamp,
    plain_decimal,
    plain_float,
)

MAX_TAG_ITEMS = 16_384
MAX_TAG_DEPTH = 8

_STAR = b"*"
_ORDERINGS = {
    AttributeType.INTEGER: b"numeric",
    AttributeType.FLOAT: b"decimal",
    AttributeType.DECIMAL: b"decimal",
    AttributeType.STRING: b"alpha",
    AttributeType.DATE: b"date",
    AttributeType.TIMESTAMP: b"date",
}
_LIMITS = {
    Operator.LESS: b"l",
    Operator.GREATER: b"g",
    Operator.AT_MOST: b"le",
    Operator.AT_LEAST: b"ge",
}
_OPERATORS = {limit: operator for operator, limit in _LIMITS.items()}
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_POINT = re.compile(r"-?(0|[1-9][0-9]{0,400})\.[0-9]{1,400}")


def to_tag(constraints: Sequence[TypedConstraint]) -> Sexp:
    """Write the constraints on one attribute as the tag a capability carries.

    >>> from maia.encoding import format_advanced
    >>> from maia.filters import compile_filter
    >>> price = compile_filter("price >= 5 and price < 9", {"price": "integer"})
    >>> to_tag(price.constraints[:1])
    (b'*', b'range', b'numeric', b'ge', b'5')

    Args:
        constraints: One or more constraints on the same attribute.

    Returns:
        The tag.

    Raises:
        UsageError: There are no constraints, or they are on different attributes.
    """
    if not constraints:
        raise UsageError("an attribute without constraints has no tag of its own", code="TAG_NO_CONSTRAINTS")
    if len({(constraint.attribute, constraint.type) for constraint in constraints}) > 1:
        raise UsageError("a tag holds the constraints of one attribute", code="TAG_TWO_ATTRIBUTES")
    tags = tuple(_constraint_tag(constraint) for constraint in constraints)
    return tags[0] if len(tags) == 1 else (_STAR, b"and", *tags)


def from_tag(tag: Sexp, attribute: str, kind: AttributeType) -> tuple[TypedConstraint, ...]:
    """Read the constraints on one attribute from a tag.

    >>> tuple(c.operator.value for c in from_tag((b"*", b"range", b"numeric", b"ge", b"1", b"l", b"9"), "x",
    ...                                          AttributeType.INTEGER))
    ('>=', '<')

    Args:
        tag: The tag, as `to_tag` writes it or an equivalent one.
        attribute: The attribute the tag speaks of.
        kind: Its type.

    Returns:
        Constraints that admit exactly the values the tag admits.

    Raises:
        TagError: The tag is malformed, does not fit the type, or says what no conjunction of constraints can say.
    """
    try:
        return _Reader(attribute, kind).read(tag, MAX_TAG_DEPTH)
    except FilterTypeError as error:
        raise TagError(f"the tag does not fit attribute `{attribute}` of type {kind.value}", code="TAG_TYPE") from error


def value_atom(value: Value, kind: AttributeType) -> bytes:
    """Write one value the way tags write it; this is also its form in a ground request.

    One value has one form: trailing zeros, and the sign of a zero, are not part of it.

    >>> value_atom(5, AttributeType.INTEGER), value_atom(5.0, AttributeType.FLOAT)
    (b'5', b'5.0')
    >>> value_atom(Decimal("2.500"), AttributeType.DECIMAL)
    b'2.5'
    """
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, Decimal):
        return _one_form(plain_decimal(value)).encode()
    if isinstance(value, float):
        return _one_form(plain_float(value)).encode()
    if isinstance(value, datetime):
        return format_timestamp(value, separator="_", zone="").encode()
    if isinstance(value, date):
        return value.isoformat().encode()
    if kind is not AttributeType.INTEGER:
        raise UsageError(f"the value is no {kind.value}", code="TAG_VALUE")
    return str(value).encode()


def _one_form(text: str) -> str:
    whole, _, fraction = text.partition(".")
    short = f"{whole}.{fraction.rstrip('0') or '0'}"
    return "0.0" if short == "-0.0" else short


def _constraint_tag(constraint: TypedConstraint) -> Sexp:
    kind = constraint.type
    operator = constraint.operator
    if operator is Operator.ANY:
        return (_STAR,)
    if operator is Operator.IN:
        return (_STAR, b"set", *(_equal_tag(value, kind) for value in constraint.values))
    value = constraint.value
    if operator is Operator.EQUAL:
        return _equal_tag(value, kind)
    if operator is Operator.NOT_EQUAL:
        if isinstance(value, bool):
            return _equal_tag(not value, kind)
        return (_STAR, b"set", *(_range_tag(side, value, kind) for side in (Operator.LESS, Operator.GREATER)))
    text = value_atom(value, kind)
    if operator is Operator.PREFIX:
        return (_STAR, b"prefix", text)
    if operator in {Operator.SUFFIX, Operator.CONTAINS}:
        rest = () if operator is Operator.SUFFIX else (b"",)
        if _STAR in text:
            return (_STAR, b"pieces", b"", text, *rest)
        return (_STAR, b"glob", _STAR.join((b"", text, *rest)))
    return _range_tag(operator, value, kind)


def _equal_tag(value: Value, kind: AttributeType) -> Sexp:
    atom = value_atom(value, kind)
    if kind in {AttributeType.STRING, AttributeType.BOOLEAN}:
        return atom
    return (_STAR, b"range", _ORDERINGS[kind], b"ge", atom, b"le", atom)


def _range_tag(operator: Operator, value: Value, kind: AttributeType) -> Sexp:
    return (_STAR, b"range", _ORDERINGS[kind], _LIMITS[operator], value_atom(value, kind))


class _Reader:
    """Reads tags for one attribute."""

    def __init__(self, attribute: str, kind: AttributeType) -> None:
        self._attribute = attribute
        self._kind = kind

    def read(self, tag: Sexp, depth: int) -> tuple[TypedConstraint, ...]:
        if isinstance(tag, Hinted):
            raise TagError("display hints have no meaning in constraints", code="TAG_HINT")
        if isinstance(tag, bytes):
            if self._kind not in {AttributeType.STRING, AttributeType.BOOLEAN}:
                raise TagError(f"a plain atom is no constraint on {self._kind.value}", code="TAG_TYPE")
            return (self._constraint(Operator.EQUAL, self._value(tag)),)
        if not tag or tag[0] != _STAR or depth == 0 or len(tag) > MAX_TAG_ITEMS:
            raise TagError("not a constraint tag, or one beyond the limits", code="TAG_SHAPE")
        if len(tag) == 1:
            return (self._constraint(Operator.ANY),)
        form, items = tag[1], tag[2:]
        if form == b"and" and items:
            return tuple(constraint for item in items for constraint in self.read(item, depth - 1))
        if form == b"set" and items:
            return self._set([self.read(item, depth - 1) for item in items])
        return self._simple(form, items)

    def _simple(self, form: Sexp, items: tuple[Sexp, ...]) -> tuple[TypedConstraint, ...]:
        atoms = [item for item in items if isinstance(item, bytes)]
        if len(atoms) != len(items):
            raise TagError("a constraint tag of this form holds plain atoms only", code="TAG_SHAPE")
        if form == b"range" and len(atoms) % 2 == 1:
            return self._range(atoms)
        if self._kind is AttributeType.STRING:
            if form == b"prefix" and len(atoms) == 1:
                return (self._constraint(Operator.PREFIX, self._value(atoms[0])),)
            if form == b"glob" and len(atoms) == 1:
                return self._pieces(atoms[0].split(_STAR))
            if form == b"pieces" and atoms:
                return self._pieces(atoms)
        raise TagError("not a constraint tag for this type", code="TAG_SHAPE")

    def _range(self, atoms: list[bytes]) -> tuple[TypedConstraint, ...]:
        if _ORDERINGS.get(self._kind) != atoms[0] or len(atoms) not in {3, 5}:
            raise TagError("the range does not fit the type, or has not one or two limits", code="TAG_RANGE")
        limits = [
            (_OPERATORS.get(name), self._value(atom)) for name, atom in zip(atoms[1::2], atoms[2::2], strict=True)
        ]
        found = [(operator, value) for operator, value in limits if operator is not None]
        sides = [operator in {Operator.LESS, Operator.AT_MOST} for operator, _ in found]
        if len(found) != len(limits) or len(set(sides)) != len(sides):
            raise TagError("a range has at most one lower and one upper limit", code="TAG_RANGE")
        closed = {Operator.AT_LEAST, Operator.AT_MOST} == {operator for operator, _ in found}
        if closed and found[0][1] == found[1][1]:
            return (self._constraint(Operator.EQUAL, found[0][1]),)
        return tuple(self._constraint(operator, value) for operator, value in found)

    def _pieces(self, pieces: list[bytes]) -> tuple[TypedConstraint, ...]:
        """A literal start, then texts in this order with anything between, then a literal end."""
        first, last = pieces[0], pieces[-1]
        inner = [piece for piece in pieces[1:-1] if piece]
        if len(pieces) == 1:
            return (self._constraint(Operator.EQUAL, self._value(first)),)
        said = [
            (operator, piece)
            for operator, piece in (
                (Operator.PREFIX, first),
                *((Operator.CONTAINS, piece) for piece in inner),
                (Operator.SUFFIX, last),
            )
            if piece
        ]
        if len(said) > 1:
            # Two texts in a glob may not overlap and keep their order; a conjunction can say neither.
            raise TagError("a pattern of several texts is no conjunction of constraints", code="TAG_NOT_A_CONJUNCTION")
        if not said:
            return (self._constraint(Operator.ANY),)
        operator, piece = said[0]
        return (self._constraint(operator, self._value(piece)),)

    def _set(self, members: list[tuple[TypedConstraint, ...]]) -> tuple[TypedConstraint, ...]:
        if all(len(member) == 1 and member[0].operator is Operator.EQUAL for member in members):
            return (self._constraint(Operator.IN, *(member[0].value for member in members)),)
        hole = _hole(members)
        if hole is not None:
            return (self._constraint(Operator.NOT_EQUAL, hole),)
        shapes = [join_shapes(member) for member in members]
        if any(shape.endings or shape.parts for shape in shapes):
            raise TagError("a set of patterns is no conjunction of constraints", code="TAG_NOT_A_CONJUNCTION")
        cuts = sets.union_of([shape.cuts for shape in shapes])
        united = constraints_of(self._attribute, Shape(type=self._kind, cuts=cuts))
        if united is None:
            raise TagError("a set with gaps is no conjunction of constraints", code="TAG_NOT_A_CONJUNCTION")
        return united

    def _constraint(self, operator: Operator, *values: Value) -> TypedConstraint:
        return TypedConstraint(attribute=self._attribute, type=self._kind, operator=operator, values=values)

    def _value(self, atom: bytes) -> Value:
        value = read_atom(atom, self._kind)
        if value is None:
            raise TagError(f"an atom of the tag is no {self._kind.value}", code="TAG_VALUE")
        return value


def _hole(members: list[tuple[TypedConstraint, ...]]) -> Value | None:
    """The value that a set of "less than it" and "greater than it" leaves out."""
    flat = [member[0] for member in members if len(member) == 1]
    if len(flat) == len(members) == 2 and {item.operator for item in flat} == {Operator.LESS, Operator.GREATER}:
        return flat[0].value if flat[0].value == flat[1].value else None
    return None


def _exact_float(text: str) -> float | None:
    """Read a double that says what the text says; a limit between two doubles is no value, and never rounded to one."""
    value = float(text)
    return value if isfinite(value) and Decimal(repr(value)) == Decimal(text) else None


def read_atom(atom: bytes, kind: AttributeType) -> Value | None:
    """Read one value as `value_atom` writes it; nothing when it is no value of the type.

    >>> read_atom(b"5", AttributeType.INTEGER), read_atom(b"5", AttributeType.DATE)
    (5, None)
    """
    try:
        text = atom.decode()
    except UnicodeDecodeError:
        return None
    match kind:
        case AttributeType.STRING:
            return text
        case AttributeType.BOOLEAN:
            return {"true": True, "false": False}.get(text)
        case AttributeType.INTEGER:
            return int(text) if _INTEGER.fullmatch(text) else None
        case AttributeType.FLOAT:
            return _exact_float(text) if _POINT.fullmatch(text) else None
        case AttributeType.DECIMAL:
            return Decimal(text) if _POINT.fullmatch(text) else None
        case AttributeType.DATE:
            return parse_date(text)
        case AttributeType.TIMESTAMP:
            return parse_timestamp(text.replace("_", "T") + "Z") if "T" not in text else None
        case _:
            return None
