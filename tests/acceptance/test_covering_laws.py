"""Covering and satisfiability against the paper's definitions: by brute force.

The oracles are written from the formulas (1)-(7) and share no code with `maia.filters`. The universes of the brute
force are complete: for every constraint that is generated they hold a value on, below, above and next to its operand.
``HYPOTHESIS_PROFILE=long`` tries more pairs.
"""

from __future__ import annotations

import itertools
import math
import operator
import random
from decimal import Decimal

import numpy as np
import pytest

from maia.filters import (
    AttributeType,
    Operator,
    Relation,
    TypedConstraint,
    TypedFilter,
    covers,
    equivalent,
    format_filter,
)

INTEGER, FLOAT, DECIMAL = AttributeType.INTEGER, AttributeType.FLOAT, AttributeType.DECIMAL


STRING, BOOLEAN = AttributeType.STRING, AttributeType.BOOLEAN


OPERANDS = {
    INTEGER: [-(2**63), -(2**63) + 1, -1, 0, 3, 4, 5, 2**63 - 2, 2**63 - 1],
    FLOAT: [-1.7976931348623157e308, -5e-324, 0.0, 5e-324, 5.0, 5.000000000000001, 1.7976931348623157e308],
    DECIMAL: [Decimal("-1.5"), Decimal(0), Decimal("24.00"), Decimal("24.01")],
    STRING: ["", "a", "b", "ab", "ba", "aa", "a\0"],
    BOOLEAN: [False, True],
}


ORDER = [Operator.LESS, Operator.GREATER, Operator.AT_MOST, Operator.AT_LEAST]


EVERY = [Operator.EQUAL, Operator.NOT_EQUAL, Operator.ANY, Operator.IN]


TEXT = [Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS]


PYTHON = {
    Operator.EQUAL: operator.eq,
    Operator.NOT_EQUAL: operator.ne,
    Operator.LESS: operator.lt,
    Operator.GREATER: operator.gt,
    Operator.AT_MOST: operator.le,
    Operator.AT_LEAST: operator.ge,
    Operator.PREFIX: str.startswith,
    Operator.SUFFIX: str.endswith,
    Operator.CONTAINS: operator.contains,
}


def operators(kind):
    """The operators a type has."""
    if kind is BOOLEAN:
        return EVERY
    return EVERY + ORDER + (TEXT if kind is STRING else [])


def random_constraint(rng, attribute, kind):
    """One constraint with an operand of the type's list."""
    chosen = rng.choice(operators(kind))
    if chosen is Operator.ANY:
        values = ()
    elif chosen is Operator.IN:
        values = tuple(rng.sample(OPERANDS[kind], rng.randint(1, 2)))
    else:
        values = (rng.choice(OPERANDS[kind]),)
    return TypedConstraint(attribute=attribute, type=kind, operator=chosen, values=values)


def random_filter(rng, types, most):
    """A filter of up to ``most`` constraints over the attributes."""
    count = rng.randint(0, most)
    names = [rng.choice(sorted(types)) for _ in range(count)]
    return TypedFilter(constraints=tuple(random_constraint(rng, name, types[name]) for name in names))


def truth(constraint, value):
    """The operator of a constraint on a value that is there."""
    if constraint.operator is Operator.ANY:
        return True
    if constraint.operator is Operator.IN:
        return value in constraint.values
    return PYTHON[constraint.operator](value, constraint.values[0])


def neighbours(kind):
    """Values that tell any two different conjunctions of generated constraints apart."""
    if kind is INTEGER:
        near = {value + step for value in OPERANDS[kind] for step in (-1, 0, 1)}
        return sorted(value for value in near if -(2**63) <= value < 2**63)
    if kind is FLOAT:
        near = {
            near
            for value in OPERANDS[kind]
            for near in (value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf))
        }
        return sorted(value for value in near if math.isfinite(value))
    if kind is DECIMAL:
        known = sorted(OPERANDS[kind])
        between = [(low + high) / 2 for low, high in itertools.pairwise(known)]
        return [known[0] - 1, *known, *between, known[-1] + 1]
    if kind is STRING:
        return ["".join(word) for size in range(7) for word in itertools.product("\0ab~", repeat=size)]
    return [False, True]


def covers_value(filter_, name, value):
    """The constraints of a filter on one attribute: whether all hold, whether some holds."""
    found = [truth(constraint, value) for constraint in filter_.constraints if constraint.attribute == name]
    return all(found), any(found)


def brute(relation, filter_, universe):
    """The set of notifications a filter covers, as truth values over the universe, from formulas (1), (2), (5)."""
    names = {constraint.attribute for constraint in filter_.constraints}
    result = []
    for notification in universe:
        present = {name: value for name, value in notification.items() if value is not None}
        conjunction = names <= present.keys() and all(covers_value(filter_, n, v)[0] for n, v in present.items())
        each = all(covers_value(filter_, name, value)[1] for name, value in present.items())
        if relation is Relation.SUBSCRIPTION:
            result.append(conjunction)
        elif relation is Relation.STRICT_SUBSCRIPTION:
            result.append(conjunction and each)
        else:
            result.append(each)
    return np.array(result)


@pytest.mark.requirement("10.04")
@pytest.mark.requirement("10.05")
@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("kind", [INTEGER, FLOAT, DECIMAL, BOOLEAN], ids=str)
def test_covering_equals_its_definition_on_a_complete_finite_universe(kind, relation):
    """Relations (3), (4), (6), (7) hold exactly when no notification of the universe is a counterexample."""
    rng = random.Random(f"{kind}-{relation}")
    types = {"a": kind, "b": BOOLEAN}
    universe = [
        {"a": first, "b": second, "c": third}
        for first in [None, *neighbours(kind)]
        for second in (None, False, True)
        for third in (None, 1)
    ]
    pool = [TypedFilter(), *(random_filter(rng, types, 4) for _ in range(70))]
    covered = [brute(relation, filter_, universe) for filter_ in pool]
    for (first, wide), (second, narrow) in itertools.product(zip(pool, covered, strict=True), repeat=2):
        expected = not bool((narrow & ~wide).any())
        assert covers(first, second, relation) is expected, f"{format_filter(first)} | {format_filter(second)}"


@pytest.mark.requirement("10.07")
@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_covering_is_a_partial_order_on_classes_of_filters(relation):
    """Reflexive and transitive; filters that cover each other cover the same notifications."""
    rng = random.Random(f"order-{relation}")
    types = {"message": STRING, "price": INTEGER}
    universe = [
        {"message": message, "price": price, "color": color}
        for message in [None, "", "a", "ab", "b", "ba", "aa", "a\0", "~"]
        for price in [None, *neighbours(INTEGER)]
        for color in (None, "red")
    ]
    pool = [random_filter(rng, types, 3) for _ in range(45)]
    table = {(i, j): covers(pool[i], pool[j], relation) for i in range(45) for j in range(45)}
    assert all(table[i, i] for i in range(45))
    for i, j, k in itertools.product(range(45), repeat=3):
        assert not (table[i, j] and table[j, k]) or table[i, k]
    for i, j in itertools.combinations(range(45), 2):
        if equivalent(pool[i], pool[j], relation):
            assert (brute(relation, pool[i], universe) == brute(relation, pool[j], universe)).all()
