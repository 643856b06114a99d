"""Values of a type sorted by the demands they meet: complete, and each cell with a value of its own."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import product

import pytest

from maia.errors import UncheckedError
from maia.events import AttributeType
from maia.filters import TypedFilter, compile_filter, matches, partition

ORDER = ("=", "!=", "<", "<=", ">", ">=")
KINDS = {
    "integer": (ORDER, ("-2", "0", "1", "5"), range(-4, 9)),
    "float": (ORDER, ("-1.0", "0.0", "1.5"), [step / 4 for step in range(-8, 10)]),
    "decimal": (ORDER, ("-2.5", "0.0", "1.5", "2.0"), [Decimal(step) / 4 for step in range(-14, 12)]),
    "boolean": (("=", "!="), ("true", "false"), (True, False)),
    "string": (
        (*ORDER, "prefix", "suffix", "contains"), ("''", "'a'", "'ab'", "'b'", "'bc'"),
        ["".join(text) for size in range(4) for text in product("abc", repeat=size)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_lies_in_a_cell_and_every_cell_has_its_value(kind: str) -> None:
    """For random demands: the value of a cell meets what the cell says, and no value meets what no cell says."""
    operators, operands, values = KINDS[kind]
    chosen = random.Random(kind)
    for _ in range(60):
        demands = [
            [
                compile_filter(
                    " and ".join(
                        f"x {chosen.choice(operators)} {chosen.choice(operands)}"
                        for _ in range(chosen.choice((1, 1, 2)))
                    ),
                    {"x": kind},
                ).constraints
                for _ in range(chosen.choice((0, 1, 2)))
            ]
            for _ in range(chosen.randrange(4))
        ]

        def met(value: object, demands: list = demands) -> frozenset[int]:
            return frozenset(
                number
                for number, demand in enumerate(demands)
                if any(matches(TypedFilter(constraints=tuple(one)), {"x": value}) for one in demand)
            )

        cells = partition(AttributeType(kind), demands)
        assert len({cell.meets for cell in cells}) == len(cells)
        for cell in cells:
            assert met(cell.value) == cell.meets, (demands, cell)
        assert {met(value) for value in values} <= {cell.meets for cell in cells}, demands


def test_a_type_of_few_digits_has_the_decimal_that_is_chosen() -> None:
    """Between 1.00 and 1.10 the fewest digits are two; a type with two places has it."""
    low, high = (compile_filter(text, {"x": "decimal"}).constraints for text in ("x > 1.00", "x < 1.10"))
    inside = next(cell for cell in partition(AttributeType.DECIMAL, [[(*low, *high)]]) if cell.meets)
    assert inside.value == Decimal("1.01")


def test_more_kinds_of_texts_than_can_be_looked_at_are_refused() -> None:
    """Each independent `contains` doubles the cells; there is an end to it, and it is said."""
    demands = [
        [compile_filter(f"x contains '{chr(200 + number)}'", {"x": "string"}).constraints] for number in range(16)
    ]
    with pytest.raises(UncheckedError) as refused:
        partition(AttributeType.STRING, demands)
    assert refused.value.code == "FILTER_TOO_LARGE"
