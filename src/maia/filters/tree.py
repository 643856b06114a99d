"""The filter tree: what was written, and what it means once the attribute types are known.

A `Filter` holds the constraints as they stand in the text; its literals have a kind (integer, number with a point,
text, truth) but no attribute type yet. A `TypedFilter` is the paper's conjunction of quadruples
(type, name, operator, value): every value lies in the domain of its type, every operator fits the type, and nothing
was cast or rounded on the way. Only typed filters are evaluated, compared, indexed or turned into tags.

Both are frozen all the way down and hashable.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from maia.errors import FilterTypeError, UsageError
from maia.events import AttributeType
from maia.filters.values import Value, in_domain, normal, sort_key


class Operator(StrEnum):
    """The operators of the language, each by the way it is written."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    GREATER = ">"
    AT_MOST = "<="
    AT_LEAST = ">="
    ANY = "any"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"
    IN = "in"


ORDER_OPERATORS = frozenset({Operator.LESS, Operator.GREATER, Operator.AT_MOST, Operator.AT_LEAST})
PATTERN_OPERATORS = frozenset({Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS})


class LiteralKind(StrEnum):
    """What a literal looks like in the text, before the attribute's type gives it a meaning."""

    INTEGER = "integer"
    POINT = "number with a decimal point"
    TEXT = "quoted text"
    TRUTH = "true or false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """One literal as written; numbers with a point keep their exact decimal value."""

    kind: LiteralKind
    value: int | Decimal | str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenConstraint:
    """One constraint as written; `any` has no literal, `in` has one or more, the others have one."""

    attribute: str
    operator: Operator
    literals: tuple[Literal, ...]

    def __post_init__(self) -> None:
        """Refuse a number of literals that the operator cannot have."""
        _check_count(self.operator, len(self.literals))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Constraints as written, in their order; no constraints is the filter that demands nothing."""

    constraints: tuple[WrittenConstraint, ...] = ()

    @property
    def attributes(self) -> frozenset[str]:
        """The names the filter constrains."""
        return frozenset(constraint.attribute for constraint in self.constraints)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedConstraint:
    """The paper's quadruple (type, name, operator, value), checked when made.

    ``values`` is empty for `any`, sorted and without doubles for `in`, and of length one otherwise.
    """

    attribute: str
    type: AttributeType
    operator: Operator
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        """Refuse operators and values that do not fit the type; bring the values into their one normal form."""
        check_operator(self.attribute, self.type, self.operator)
        _check_count(self.operator, len(self.values))
        for value in self.values:
            if not in_domain(value, self.type):
                raise FilterTypeError(
                    f"a value for `{self.attribute}` is outside the domain of {self.type.value}",
                    code="FILTER_VALUE_DOMAIN",
                )
        values = tuple(normal(value, self.type) for value in self.values)
        if self.operator is Operator.IN:
            unique = {sort_key(value, self.type): value for value in values}
            values = tuple(unique[key] for key in sorted(unique))
        object.__setattr__(self, "values", values)

    @property
    def value(self) -> Value:
        """The only value of an operator that takes one."""
        if len(self.values) != 1 or self.operator is Operator.IN:
            raise UsageError(f"operator `{self.operator}` has no single value", code="FILTER_NO_SINGLE_VALUE")
        return self.values[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedFilter:
    """Typed constraints in the order they were written; each attribute has one type throughout."""

    constraints: tuple[TypedConstraint, ...] = ()

    def __post_init__(self) -> None:
        """Refuse one attribute under two types: such a filter would have no single meaning."""
        seen: dict[str, AttributeType] = {}
        for constraint in self.constraints:
            if seen.setdefault(constraint.attribute, constraint.type) is not constraint.type:
                raise FilterTypeError(
                    f"attribute `{constraint.attribute}` is used with two types", code="FILTER_TWO_TYPES"
                )

    @property
    def attributes(self) -> frozenset[str]:
        """The names the filter constrains."""
        return frozenset(constraint.attribute for constraint in self.constraints)

    def by_attribute(self) -> dict[str, tuple[TypedConstraint, ...]]:
        """The constraints of each attribute, attributes in the order of their first appearance."""
        grouped: dict[str, list[TypedConstraint]] = {}
        for constraint in self.constraints:
            grouped.setdefault(constraint.attribute, []).append(constraint)
        return {attribute: tuple(constraints) for attribute, constraints in grouped.items()}


def check_operator(attribute: str, kind: AttributeType, operator: Operator) -> None:
    """Raise `FilterTypeError` unless the operator is defined for the type."""
    if not kind.filterable:
        raise unfilterable(attribute, kind.value)
    unordered = operator in ORDER_OPERATORS and kind is AttributeType.BOOLEAN
    if unordered or (operator in PATTERN_OPERATORS and kind is not AttributeType.STRING):
        raise FilterTypeError(
            f"operator `{operator}` is not defined for attribute `{attribute}` of type {kind.value}",
            code="FILTER_OPERATOR_TYPE",
        )


def unfilterable(attribute: str, kind: str) -> FilterTypeError:
    """Make the error that says that values of a type are not compared: octets, and what is sealed whole."""
    message = f"attribute `{attribute}` is {kind} and cannot be filtered on"
    return FilterTypeError(message, code="FILTER_BINARY_ATTRIBUTE")


def _check_count(operator: Operator, count: int) -> None:
    fits = count == 0 if operator is Operator.ANY else count >= 1 if operator is Operator.IN else count == 1
    if not fits:
        raise UsageError(f"operator `{operator}` cannot have {count} values", code="FILTER_VALUE_COUNT")
