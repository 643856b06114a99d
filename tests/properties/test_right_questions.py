"""The six questions about rights, held against an SMT solver and against rows that the tag algebra itself judges."""

from __future__ import annotations

import os
import random
from decimal import Decimal
from itertools import product

import pytest
import z3

from maia.authority import Constraint, permits, value_tag
from maia.events import AttributeType
from maia.filters import value_atom
from maia.reasoning import AttributeRight, Rights, always, disjoint, equivalent, errors, implies, never

LONG = bool(os.environ.get("MAIA_TORTURE")) or os.environ.get("HYPOTHESIS_PROFILE") == "long"
ROUNDS = 4_000 if LONG else 60
KINDS = {
    "i": AttributeType.INTEGER, "d": AttributeType.DECIMAL, "s": AttributeType.STRING, "b": AttributeType.BOOLEAN,
}  # fmt: skip
ORDER = ("=", "!=", "<", "<=", ">", ">=")
OPERATORS = {"i": ORDER, "d": ORDER, "s": (*ORDER, "prefix", "suffix", "contains"), "b": ("=", "!=")}
VALUES = {
    "i": (0, 1, 2, 5), "d": (Decimal(0), Decimal("1.5"), Decimal(2)), "s": ("", "a", "ab", "b"), "b": (True, False),
}  # fmt: skip
POINTS = {
    "i": (None, *range(-2, 8)),
    "d": (None, *(Decimal(step) / 4 for step in range(-4, 12))),
    "s": (None, *("".join(text) for size in range(4) for text in product("abz", repeat=size))),
    "b": (None, True, False),
}
Z3 = {
    "i": (z3.Int("i"), z3.IntVal), "d": (z3.Real("d"), lambda value: z3.RealVal(str(value))),
    "s": (z3.String("s"), z3.StringVal), "b": (z3.Bool("b"), z3.BoolVal),
}  # fmt: skip
PRESENT = {uid: z3.Bool(f"has-{uid}") for uid in KINDS}


def made_up(chosen: random.Random, uids: str) -> dict[str, list[list[Constraint]]]:
    """Make up rights: for each attribute that is opened, what each right that opens it asks of rows."""
    return {
        uid: [
            [_constraint(chosen, uids) for _ in range(chosen.choice((0, 1, 1, 2)))]
            for _ in range(chosen.choice((0, 1, 1, 2, 3)))
        ]
        for uid in uids[: chosen.choice((1, 2))]
    }


def _constraint(chosen: random.Random, uids: str) -> Constraint:
    uid = chosen.choice(uids)
    return Constraint(uid, chosen.choice(OPERATORS[uid]), chosen.choice(VALUES[uid]))


def rights(made: dict[str, list[list[Constraint]]]) -> Rights[str]:
    """Write made up rights as reasoning takes them."""
    return Rights(KINDS, {
        uid: [AttributeRight(tuple((item.uid, item.to_tag()) for item in one)) for one in offers]
        for uid, offers in made.items()
    })  # fmt: skip


def shows(made: dict[str, list[list[Constraint]]], uid: str, row: dict[str, object]) -> bool:
    """Tell by the tag algebra alone whether rights show an attribute in a row."""
    return any(
        all(
            row.get(item.uid) is not None and permits(item.to_tag(), value_atom(row[item.uid], KINDS[item.uid]))
            for item in one
        )
        for one in made.get(uid, ())
    )


def formula(made: dict[str, list[list[Constraint]]], uid: str) -> z3.BoolRef:
    """Write what rights show of an attribute for the solver."""
    return z3.Or([z3.And([_term(item) for item in one]) for one in made.get(uid, ())])


def _term(item: Constraint) -> z3.BoolRef:
    variable, literal = Z3[item.uid]
    value = literal(item.value)
    compared = {
        "=": lambda: variable == value, "!=": lambda: variable != value, "<": lambda: variable < value,
        "<=": lambda: variable <= value, ">": lambda: value < variable, ">=": lambda: value <= variable,
        "prefix": lambda: z3.PrefixOf(value, variable), "suffix": lambda: z3.SuffixOf(value, variable),
        "contains": lambda: z3.Contains(variable, value),
    }  # fmt: skip
    return z3.And(PRESENT[item.uid], compared[item.operator]())


def possible(claim: z3.BoolRef) -> bool:
    """Ask the solver whether some row is as claimed."""
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(claim)
    found = solver.check()
    assert found != z3.unknown
    return bool(found == z3.sat)


@pytest.mark.parametrize("uids", ["id", "ib", "sb", "si"])
def test_answers_are_those_of_a_solver_and_witnesses_are_real(uids: str) -> None:
    """Implies, equivalent, disjoint, always and never, of random rights; a witness is judged by the tag algebra."""
    yes = no = 0
    for seed in range(ROUNDS):
        chosen = random.Random(f"{uids} {seed}")
        a, b = made_up(chosen, uids), made_up(chosen, uids)
        one, other = rights(a), rights(b)
        opened = sorted({*a, *b})
        first, second = ({uid: formula(made, uid) for uid in opened} for made in (a, b))
        said = implies(one, other)
        assert bool(said) == (not any(possible(z3.And(first[uid], z3.Not(second[uid]))) for uid in opened)), seed
        if said.witness is not None:
            assert shows(a, said.witness.place, said.witness.row), seed
            assert not shows(b, said.witness.place, said.witness.row), seed
        assert bool(equivalent(one, other)) == (bool(said) and bool(implies(other, one)))
        apart = disjoint(one, other)
        assert bool(apart) == (not any(possible(z3.And(first[uid], second[uid])) for uid in opened)), seed
        if apart.witness is not None:
            assert shows(a, apart.witness.place, apart.witness.row), seed
            assert shows(b, apart.witness.place, apart.witness.row), seed
        for uid in a:
            assert bool(always(one, uid)) == (not possible(z3.Not(first[uid]))), seed
            assert bool(never(one, uid)) == (not possible(first[uid])), seed
        yes, no = yes + bool(said), no + (not said)
    assert yes
    assert no


def test_answers_hold_in_every_row_of_a_small_world() -> None:
    """What is said to be implied is shown by the tag algebra in each of some hundred rows, strings included."""
    for seed in range(ROUNDS // 5):
        chosen = random.Random(seed)
        uids = "".join(chosen.sample(sorted(KINDS), 2))
        a, b = made_up(chosen, uids), made_up(chosen, uids)
        holds, apart = bool(implies(rights(a), rights(b))), bool(disjoint(rights(a), rights(b)))
        points = [chosen.sample(POINTS[uid], min(10, len(POINTS[uid]))) for uid in uids]
        for row in (dict(zip(uids, values, strict=True)) for values in product(*points)):
            for uid in {*a, *b}:
                seen = shows(a, uid, row), shows(b, uid, row)
                assert not (holds and seen == (True, False)), (seed, row)
                assert not (apart and seen == (True, True)), (seed, row)


def test_demands_that_no_value_meets_are_found() -> None:
    """A text asked of a number, a whole number asked of a decimal, and a contradiction: of these nothing is shown."""
    for tag, uid in ((value_tag("=", "five"), "i"), (value_tag("<", 3), "d"), (value_tag("=", True), "i")):
        held = Rights(KINDS, {"i": [AttributeRight(((uid, tag),))]})
        assert errors(held) == (("i", uid),)
        assert never(held, "i")
    fine = Rights(KINDS, {"i": [AttributeRight((("i", value_tag("<", 3)), ("i", value_tag(">", 5))))]})
    assert errors(fine) == ()
    assert never(fine, "i")
