"""What values an attribute holds: one of the plain types, a decimal of its own size, an array or a struct.

The text of a type is what stands in a definition, so each type has exactly one:

    integer  float  decimal  string  boolean  date  timestamp  binary
    decimal(P,S)            P digits of which S stand after the point; ``decimal`` alone is decimal(38,18)
    array<T>                any number of values of one type
    struct<NAME:T,…>        values by name, in this order; a name that is no plain word stands between backticks

Rules kept here:

- arrays and structs are sealed whole: nobody filters on them and no right looks inside, so to filters and rights they
  are what binary is (`base`). A decimal of any size is compared as every other decimal, by its exact value;
- depth, fields and the length of the text are bounded, since definitions come from others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from maia.errors import MalformedError

DECIMAL_PRECISION = 38
DECIMAL_SCALE = 18
MAX_TYPE_DEPTH = 8
MAX_TYPE_FIELDS = 256
MAX_TYPE_TEXT = 8192

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")
_DIGITS = re.compile(r"decimal\((0|[1-9][0-9]?),(0|[1-9][0-9]?)\)", re.ASCII)


class AttributeType(StrEnum):
    """The plain types.

    INTEGER is 64 bits with a sign, FLOAT is binary64 and finite, DECIMAL has 38 digits of which 18 stand after the
    point, TIMESTAMP is an instant in microseconds, BINARY cannot be filtered.
    """

    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    STRING = "string"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    BINARY = "binary"

    @property
    def filterable(self) -> bool:
        """Tell whether the filter language can compare such values."""
        return self is not AttributeType.BINARY

    @property
    def base(self) -> AttributeType:
        """The plain type whose rules filters and rights follow: itself."""
        return self


@dataclass(frozen=True, slots=True)
class DecimalOf:
    """Decimals of at most ``precision`` digits, of which ``scale`` stand after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        """Refuse sizes that no column has, and the one that has a name of its own."""
        if not (1 <= self.precision <= DECIMAL_PRECISION and 0 <= self.scale <= self.precision):
            message = f"a decimal has 1 to {DECIMAL_PRECISION} digits, of which at most all stand after the point"
            raise MalformedError(message, code="ATTRIBUTE_TYPE")
        if (self.precision, self.scale) == (DECIMAL_PRECISION, DECIMAL_SCALE):
            raise MalformedError("this size is called `decimal`", code="ATTRIBUTE_TYPE")

    def __str__(self) -> str:
        """Show it as a definition writes it."""
        return self.value

    @property
    def value(self) -> str:
        """The text of the type."""
        return f"decimal({self.precision},{self.scale})"

    @property
    def base(self) -> AttributeType:
        """The plain type whose rules filters and rights follow."""
        return AttributeType.DECIMAL

    @property
    def filterable(self) -> bool:
        """Tell whether the filter language can compare such values."""
        return True


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """Arrays of values of one type; sealed whole."""

    element: ValueType

    def __post_init__(self) -> None:
        """Refuse arrays in arrays without end."""
        _check_size(self)

    def __str__(self) -> str:
        """Show it as a definition writes it."""
        return self.value

    @property
    def value(self) -> str:
        """The text of the type."""
        return f"array<{self.element.value}>"

    @property
    def base(self) -> AttributeType:
        """The plain type whose rules filters and rights follow."""
        return AttributeType.BINARY

    @property
    def filterable(self) -> bool:
        """Tell whether the filter language can compare such values."""
        return False


@dataclass(frozen=True, slots=True)
class StructOf:
    """Values by name, in a fixed order; sealed whole."""

    fields: tuple[tuple[str, ValueType], ...]

    def __post_init__(self) -> None:
        """Refuse structs without fields, with a name twice, or with more than anybody will read."""
        names = {name for name, _ in self.fields}
        if not self.fields or len(names) != len(self.fields) or "" in names or not all(map(str.isprintable, names)):
            raise MalformedError("a struct has fields, each with a name of its own", code="ATTRIBUTE_TYPE")
        _check_size(self)

    def __str__(self) -> str:
        """Show it as a definition writes it."""
        return self.value

    @property
    def value(self) -> str:
        """The text of the type."""
        return f"struct<{','.join(f'{_quoted(name)}:{kind.value}' for name, kind in self.fields)}>"

    @property
    def base(self) -> AttributeType:
        """The plain type whose rules filters and rights follow."""
        return AttributeType.BINARY

    @property
    def filterable(self) -> bool:
        """Tell whether the filter language can compare such values."""
        return False


ValueType: TypeAlias = AttributeType | DecimalOf | ArrayOf | StructOf
"""What an attribute's `type` is."""


def decimal_of(precision: int, scale: int) -> ValueType:
    """Give the type of decimals of a size, by its name where it has one.

    >>> decimal_of(10, 2).value, decimal_of(38, 18).value
    ('decimal(10,2)', 'decimal')
    """
    if (precision, scale) == (DECIMAL_PRECISION, DECIMAL_SCALE):
        return AttributeType.DECIMAL
    return DecimalOf(precision, scale)


def decimal_size(kind: ValueType) -> tuple[int, int]:
    """Give precision and scale of a type of decimals."""
    return (kind.precision, kind.scale) if isinstance(kind, DecimalOf) else (DECIMAL_PRECISION, DECIMAL_SCALE)


def parse_attribute_type(text: ValueType | str) -> ValueType:
    """Read the text of a type, in its one spelling.

    Raises:
        MalformedError: Nobody knows such a type, or it has another spelling.

    >>> parse_attribute_type("array<struct<at:timestamp,mmol:decimal(4,1)>>").element.fields[1]
    ('mmol', DecimalOf(precision=4, scale=1))
    """
    if not isinstance(text, str):
        return text
    if text in _PLAIN:
        return _PLAIN[text]
    if len(text) > MAX_TYPE_TEXT:
        raise _unknown()
    found, end = _read(text, 0, 0)
    if end != len(text) or found.value != text:
        raise _unknown()
    return found


_PLAIN = {item.value: item for item in AttributeType}


def _unknown() -> MalformedError:
    return MalformedError("the attribute type is unknown", code="ATTRIBUTE_TYPE")


def _check_size(kind: ValueType) -> None:
    """Refuse a type that is deeper or wider than anybody will read."""
    fields, level, depth = 0, [kind], 0
    while level:
        depth += 1
        below: list[ValueType] = []
        for item in level:
            inside = [item.element] if isinstance(item, ArrayOf) else []
            inside += [part for _, part in item.fields] if isinstance(item, StructOf) else []
            fields += len(inside)
            below += inside
        level = below
    if depth > MAX_TYPE_DEPTH or fields > MAX_TYPE_FIELDS:
        message = f"a type is at most {MAX_TYPE_DEPTH} deep and has at most {MAX_TYPE_FIELDS} fields"
        raise MalformedError(message, code="ATTRIBUTE_TYPE")


def _quoted(name: str) -> str:
    return name if _WORD.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _read(text: str, at: int, depth: int) -> tuple[ValueType, int]:
    """Read the type that starts here; tell where it ends."""
    if depth >= MAX_TYPE_DEPTH:
        raise _unknown()
    if size := _DIGITS.match(text, at):
        return decimal_of(int(size[1]), int(size[2])), size.end()
    if text.startswith("array<", at):
        element, end = _read(text, at + len("array<"), depth + 1)
        return ArrayOf(element), _expect(text, end, ">")
    if text.startswith("struct<", at):
        return _read_struct(text, at + len("struct<"), depth)
    word = _WORD.match(text, at)
    if word is None or word[0] not in _PLAIN:
        raise _unknown()
    return _PLAIN[word[0]], word.end()


def _read_struct(text: str, at: int, depth: int) -> tuple[StructOf, int]:
    fields: list[tuple[str, ValueType]] = []
    while True:
        word, quoted = _WORD.match(text, at), _QUOTED.match(text, at)
        if word is None and quoted is None:
            raise _unknown()
        name = word[0] if word else quoted[1].replace("``", "`")  # type: ignore[index] # one of them is there
        kind, at = _read(text, _expect(text, (word or quoted).end(), ":"), depth + 1)  # type: ignore[union-attr] # as above
        fields.append((name, kind))
        if text[at : at + 1] != ",":
            return StructOf(tuple(fields)), _expect(text, at, ">")
        at += 1


def _expect(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise _unknown()
    return at + 1
