"""Every worked example of the access-control-filter paper in one table, and what formula (5) alone would say."""

from __future__ import annotations

import json

import pytest

from maia.filters import BoundKind, Relation, Side, admits, allows, compile_filter
from maia.testing import Command

TYPES = {"message": "string", "price": "integer", "color": "string", "weather": "string", "temperature": "integer"}
PRODUCT = "message = 'new_product'"
CHEAP = f"{PRODUCT} and price < 100"
WEATHER = {"weather": "sunny", "temperature": 27}
COVERED = {
    "s1": (PRODUCT, {"message": "new_product", "price": 1}, (True, False)),
    "s2": (f"{PRODUCT} and price < 5", {"message": "new_product", "price": 1}, (True, True)),
    "s3": (f"{PRODUCT} and color = 'blue'", {"message": "new_product", "price": 1}, (False, False)),
}
BOUNDED = {
    "upper publish": ("upper", "publish", PRODUCT, [{"message": "new_product", "price": 10}, WEATHER], [True, False]),
    "upper advertise": ("upper", "advertise", PRODUCT, [CHEAP, "weather any and temperature any"], [True, False]),
    "lower publish": (
        "lower", "publish", CHEAP,
        [{"message": "new_product", "price": 10, "color": "blue"}, WEATHER, {"message": "new_product", "price": 523}],
        [True, False, False],
    ),
    "lower advertise": (
        "lower", "advertise", CHEAP, [f"{PRODUCT} and price < 53", f"{PRODUCT} and color any"], [True, False]
    ),
    "upper subscribe": (
        "upper", "subscribe", PRODUCT, [f"{PRODUCT} and price = 10", "weather = 'sunny' and temperature > 25"],
        [True, False],
    ),
    "lower subscribe": ("lower", "subscribe", "message any", [PRODUCT, CHEAP], [True, False]),
}  # fmt: skip


@pytest.mark.requirement("24.16")
@pytest.mark.parametrize("text, event, expected", COVERED.values(), ids=COVERED)
def test_filters_and_notifications(text: str, event: dict[str, object], expected: tuple[bool, bool]) -> None:
    """Section 3.2: covers and strictly covers."""
    typed = compile_filter(text, TYPES)
    found = tuple(admits(relation, typed, event) for relation in (Relation.SUBSCRIPTION, Relation.STRICT_SUBSCRIPTION))
    assert found == expected


@pytest.mark.requirement("24.16")
@pytest.mark.parametrize("kind, side, bound, subjects, expected", BOUNDED.values(), ids=BOUNDED)
def test_bounds(
    kind: str, side: str, bound: str, subjects: list[str | dict[str, object]], expected: list[bool]
) -> None:
    """Sections 3.3 and 3.4: what each bound allows of publications, advertisements and subscriptions."""
    asked = [compile_filter(item, TYPES) if isinstance(item, str) else item for item in subjects]
    typed = compile_filter(bound, TYPES)
    assert [allows(typed, kind=BoundKind(kind), side=Side(side), subject=item) for item in asked] == expected


@pytest.mark.requirement("24.16")
@pytest.mark.requirement("11.01")
def test_screening(maia_command: Command) -> None:
    """Section 3.5, by the command: message and price are shown, a dearer product is not, a closed filter is refused."""
    rights, event = "message any and price any", {"message": "new_product", "price": 23, "color": "red"}
    types = [flag for name, kind in TYPES.items() for flag in ("--type", f"{name}={kind}")]
    shown = maia_command.do("filter", "screen", rights, CHEAP, json.dumps(event), *types)["shown"]
    assert shown == {"message": "new_product", "price": 23}
    kept = maia_command.do("filter", "screen", rights, CHEAP, json.dumps(event), "--null", *types)["shown"]
    assert kept == {"message": "new_product", "price": 23, "color": None}
    dear = maia_command("filter", "screen", rights, CHEAP, json.dumps({**event, "price": 523}), *types)
    assert (dear.code, dear.out.strip()) == (1, "nothing")
    told = maia_command.refused("filter", "screen", rights, "color any", json.dumps(event), *types)
    assert told == (3, "FILTER_NOT_AUTHORISED")


@pytest.mark.requirement("24.17")
def test_formula_five_alone_fails_the_first_example_of_a_plain_lower_bound() -> None:
    """Read literally it refuses all three publications, of which the paper allows the first: hence the reading C3."""
    events = BOUNDED["lower publish"][3]
    found = [
        admits(Relation.ADVERTISEMENT, compile_filter(CHEAP, TYPES), event)
        for event in events
        if isinstance(event, dict)
    ]
    assert found == [False, False, False]
