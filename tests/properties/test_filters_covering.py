"""Covering and satisfiability against the paper's definitions: by brute force, and by an SMT solver.

The oracles are written from the formulas (1)-(7) and share no code with `maia.filters`. The universes of the brute
force are complete: for every constraint that is generated they hold a value on, below, above and next to its operand.
``HYPOTHESIS_PROFILE=long`` asks the solver about 100 000 pairs instead of a few thousand.
"""

from __future__ import annotations

import itertools
import math
import operator
import os
import random
from decimal import Decimal

import numpy as np
import pytest
import z3

from maia.filters import (
    AttributeType,
    Operator,
    Relation,
    TypedConstraint,
    TypedFilter,
    admits,
    covers,
    equivalent,
    format_filter,
    merge,
    satisfiable,
    simplify,
)

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
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


# ---------------------------------------------------------------- the paper's relations, by brute force


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


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("kind", [INTEGER, FLOAT, DECIMAL, BOOLEAN], ids=str)
def test_admits_equals_its_formula_on_a_finite_universe(kind, relation):
    """Relations (1), (2) and (5) on a notification equal the formulas written out."""
    rng = random.Random(f"admits-{kind}-{relation}")
    types = {"a": kind, "b": BOOLEAN}
    universe = [
        {"a": first, "b": second, "c": third}
        for first in [None, *neighbours(kind)]
        for second in (None, False, True)
        for third in (None, 1)
    ]
    for _ in range(30):
        filter_ = random_filter(rng, types, 4)
        assert [admits(relation, filter_, n) for n in universe] == brute(relation, filter_, universe).tolist()


@pytest.mark.parametrize("relation", [Relation.SUBSCRIPTION, Relation.ADVERTISEMENT], ids=str)
def test_string_covering_equals_its_definition_on_all_short_strings(relation):
    """Order, prefix, suffix and contains together are decided as enumeration decides them."""
    rng = random.Random(f"strings-{relation}")
    words = neighbours(STRING)
    pool = [
        TypedFilter(constraints=tuple(random_constraint(rng, "s", STRING) for _ in range(rng.randint(1, 3))))
        for _ in range(140)
    ]
    held = {}
    for filter_ in pool:
        for constraint in filter_.constraints:
            if constraint not in held:
                held[constraint] = np.array([truth(constraint, word) for word in words])
    join = np.logical_and if relation is Relation.SUBSCRIPTION else np.logical_or
    admitted = [join.reduce([held[constraint] for constraint in filter_.constraints]) for filter_ in pool]
    for (first, wide), (second, narrow) in itertools.product(zip(pool, admitted, strict=True), repeat=2):
        expected = not bool((narrow & ~wide).any())
        assert covers(first, second, relation) is expected, f"{format_filter(first)} | {format_filter(second)}"
    if relation is Relation.SUBSCRIPTION:
        assert [satisfiable(filter_) for filter_ in pool] == [bool(truths.any()) for truths in admitted]


def test_merge_is_the_exact_union_or_nothing_and_simplify_changes_no_meaning():
    """A merged filter matches what either matched, never more; a simplified one matches what it matched."""
    rng = random.Random("merge")
    types = {"a": INTEGER, "b": BOOLEAN}
    universe = [{"a": a, "b": b} for a in [None, *neighbours(INTEGER)] for b in (None, False, True)]
    merged = 0
    for _ in range(1500):
        first, second = random_filter(rng, types, 3), random_filter(rng, types, 3)
        either = brute(Relation.SUBSCRIPTION, first, universe) | brute(Relation.SUBSCRIPTION, second, universe)
        union = merge(first, second)
        if union is not None:
            merged += 1
            assert (brute(Relation.SUBSCRIPTION, union, universe) == either).all()
        simple = simplify(first)
        assert equivalent(simple, first)
        assert len(simple.constraints) <= len(first.constraints)
    assert merged > 100


# ---------------------------------------------------------------- the paper's relations, by an SMT solver

Z3_VALUE = {
    INTEGER: z3.IntVal,
    FLOAT: lambda value: z3.FPVal(value, z3.Float64()),
    DECIMAL: lambda value: z3.RealVal(str(value)),
    STRING: lambda value: z3.StringVal(value.replace("\0", "\\u{0}")),
    BOOLEAN: z3.BoolVal,
}
Z3_SORT = {
    INTEGER: z3.IntSort,
    FLOAT: z3.Float64,
    DECIMAL: z3.RealSort,
    STRING: z3.StringSort,
    BOOLEAN: z3.BoolSort,
}


class Notification:
    """A symbolic notification: for each attribute whether it is there, and its value."""

    def __init__(self, types):
        self.present = {name: z3.Bool(f"has-{name}") for name in [*types, "other"]}
        self.value = {name: z3.Const(f"value-{name}", Z3_SORT[kind]()) for name, kind in types.items()}
        self.domain = []
        for name, kind in types.items():
            value = self.value[name]
            if kind is INTEGER:
                self.domain += [value >= -(2**63), value < 2**63]
            if kind is FLOAT:
                self.domain += [z3.Not(z3.fpIsNaN(value)), z3.Not(z3.fpIsInf(value))]

    def holds(self, constraint):
        """One constraint on the value of its attribute."""
        value = self.value[constraint.attribute]
        make = Z3_VALUE[constraint.type]
        if constraint.operator is Operator.ANY:
            return z3.BoolVal(True)
        equal = z3.fpEQ if constraint.type is FLOAT else operator.eq
        if constraint.operator is Operator.IN:
            return z3.Or([equal(value, make(member)) for member in constraint.values])
        operand = make(constraint.values[0])
        match constraint.operator:
            case Operator.EQUAL:
                return equal(value, operand)
            case Operator.NOT_EQUAL:
                return z3.Not(equal(value, operand))
            case Operator.PREFIX:
                return z3.PrefixOf(operand, value)
            case Operator.SUFFIX:
                return z3.SuffixOf(operand, value)
            case Operator.CONTAINS:
                return z3.Contains(value, operand)
            case _:
                return PYTHON[constraint.operator](value, operand)

    def covered(self, relation, filter_):
        """Formulas (1), (2) and (5)."""
        conjunction = z3.And([z3.And(self.present[c.attribute], self.holds(c)) for c in filter_.constraints])
        each = z3.And(
            [
                z3.Implies(there, z3.Or([self.holds(c) for c in filter_.constraints if c.attribute == name]))
                for name, there in self.present.items()
            ]
        )
        if relation is Relation.SUBSCRIPTION:
            return conjunction
        return z3.And(conjunction, each) if relation is Relation.STRICT_SUBSCRIPTION else each


def solver_pairs(kind, pairs, seed):
    """Random pairs with the solver's answer and ours; what the solver gives up on is left out, and counted."""
    rng = random.Random(seed)
    types = {"a": kind, "b": BOOLEAN} if kind is not BOOLEAN else {"a": BOOLEAN, "b": BOOLEAN}
    notification = Notification(types)
    solver = z3.Solver()
    solver.set("timeout", 2000)
    solver.add(notification.domain)
    unknown = 0
    for _ in range(pairs):
        first, second = random_filter(rng, types, 3), random_filter(rng, types, 3)
        relation = rng.choice(list(Relation))
        solver.push()
        solver.add(notification.covered(relation, second), z3.Not(notification.covered(relation, first)))
        answer = solver.check()
        solver.pop()
        if answer == z3.unknown:
            unknown += 1
            continue
        shown = f"{relation}: {format_filter(first)} | {format_filter(second)}"
        assert covers(first, second, relation) is (answer == z3.unsat), shown
        solver.push()
        solver.add(notification.covered(Relation.SUBSCRIPTION, first))
        answer = solver.check()
        solver.pop()
        if answer != z3.unknown:
            assert satisfiable(first) is (answer == z3.sat), format_filter(first)
    return unknown


@pytest.mark.timeout(3600 if LONG else 300)
@pytest.mark.parametrize(
    "kind, share", [(INTEGER, 0.4), (DECIMAL, 0.2), (BOOLEAN, 0.2), (FLOAT, 0.15), (STRING, 0.05)], ids=str
)
def test_covering_and_satisfiability_agree_with_an_smt_solver(kind, share):
    """No random pair over infinite domains is decided otherwise than the solver decides it."""
    pairs = int((100_000 if LONG else 2_000) * share)
    assert solver_pairs(kind, pairs, f"smt-{kind}") <= pairs // 20
