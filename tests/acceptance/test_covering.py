"""Every example of the access-control-filter paper, section by section, and the readings chosen where it is silent."""

from __future__ import annotations

import itertools

import pytest

from maia.filters import (
    Relation,
    admits,
    compile_filter,
    covers,
    matches,
)

TYPES = {
    "message": "string",
    "price": "integer",
    "color": "string",
    "weather": "string",
    "temperature": "integer",
}


SUBSCRIPTION, STRICT = Relation.SUBSCRIPTION, Relation.STRICT_SUBSCRIPTION


ADVERTISEMENT, STRICT_ADVERTISEMENT = Relation.ADVERTISEMENT, Relation.STRICT_ADVERTISEMENT


PRODUCT = "message = 'new_product'"


CHEAP = "message = 'new_product' and price < 100"


def typed(text):
    """A filter over the paper's attributes."""
    return compile_filter(text, TYPES)


NOTIFICATIONS = {
    "s1 covers n1, not strictly": (PRODUCT, {"message": "new_product", "price": 1}, True, False),
    "s2 covers n2, strictly too": (f"{PRODUCT} and price < 5", {"message": "new_product", "price": 1}, True, True),
    "s3 misses color in n3": (f"{PRODUCT} and color = 'blue'", {"message": "new_product", "price": 1}, False, False),
}


@pytest.mark.requirement("10.02")
@pytest.mark.requirement("10.03")
@pytest.mark.parametrize("case", NOTIFICATIONS.values(), ids=NOTIFICATIONS.keys())
def test_relations_one_and_two(case):
    """Section 3.2: a filter covers a notification, and strictly when no attribute is left without constraint."""
    text, notification, plain, strict = case
    assert admits(SUBSCRIPTION, typed(text), notification) is plain
    assert admits(STRICT, typed(text), notification) is strict


@pytest.mark.requirement("10.01")
def test_a_constraint_covers_an_attribute_of_its_own_type_only():
    """(integer, price, <, 5) covers (integer, price, 1) and not (string, price, "1")."""
    assert matches(typed("price < 5"), {"price": 1})
    assert not matches(typed("price < 5"), {"price": "1"})
    assert matches(typed("price any"), {"price": 1})
    assert not matches(typed("price any"), {"price": "1"})


COVERING = {
    "the same attributes, wider": (STRICT, "message any and price any", CHEAP, True),
    "fewer attributes than the bound": (STRICT, "message any and price any", PRODUCT, False),
    "more attributes than the bound": (STRICT, "message any and price any", f"{CHEAP} and color = 'red'", False),
    "a contradiction is covered by anything": (SUBSCRIPTION, "color = 'red'", "price < 5 and price > 50", True),
    "a contradiction is strictly covered too": (STRICT, "color = 'red'", "price < 5 and price > 50", True),
    "advertisement over fewer attributes": (ADVERTISEMENT, "message any and price any", PRODUCT, True),
    "advertisement over another attribute": (
        ADVERTISEMENT,
        "message any and price any",
        f"{PRODUCT} and color = 'red'",
        False,
    ),
    "integers are not reals": (SUBSCRIPTION, "price = 4", "price > 3 and price < 5", True),
}


@pytest.mark.requirement("10.04")
@pytest.mark.requirement("10.05")
@pytest.mark.parametrize("case", COVERING.values(), ids=COVERING.keys())
def test_relations_between_filters(case):
    """Relations (3), (4) and (6), the rows' own examples."""
    relation, wide, narrow, expected = case
    assert covers(typed(wide), typed(narrow), relation) is expected


@pytest.mark.requirement("10.05")
def test_an_advertisement_covers_notifications_of_its_attributes():
    """Relation (5): every attribute needs a constraint, no constraint needs an attribute."""
    bound = typed("message any and price any")
    assert admits(ADVERTISEMENT, bound, {"message": "x"})
    assert not admits(ADVERTISEMENT, bound, {"message": "x", "color": "red"})


WORLD = {
    "message": ("new_product", "recall"),
    "price": (1, 10, 53, 100, 523),
    "color": ("blue", "red"),
    "weather": ("sunny", "rain"),
    "temperature": (20, 25, 26, 27, 30),
}


PAPER_FILTERS = (
    PRODUCT,
    CHEAP,
    f"{PRODUCT} and price < 5",
    f"{PRODUCT} and price < 53",
    f"{PRODUCT} and price = 10",
    f"{PRODUCT} and color = 'blue'",
    f"{PRODUCT} and color any",
    f"{CHEAP} and color = 'red'",
    "message any",
    "message any and price any",
    "message any and price any and color any",
    "weather any and temperature any",
    "weather = 'sunny' and temperature > 25",
    "price < 5 and price > 50",
)


@pytest.mark.requirement("10.07")
@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_covering_of_the_papers_filters_equals_brute_force_over_971_notifications(relation):
    """Each pair of the paper's filters: covered exactly when no notification is a counterexample; a preorder."""
    choices = itertools.product(*((None, *values) for values in WORLD.values()))
    world = [
        {name: value for name, value in zip(WORLD, choice, strict=True) if value is not None} for choice in choices
    ]
    notifications = [notification for notification in world if notification]
    assert len(notifications) == 971
    filters = [typed(text) for text in PAPER_FILTERS]
    admitted = [frozenset(i for i, n in enumerate(notifications) if admits(relation, f, n)) for f in filters]
    table = [[covers(wide, narrow, relation) for narrow in filters] for wide in filters]
    for wide, narrow in itertools.product(range(len(filters)), repeat=2):
        assert table[wide][narrow] is (admitted[narrow] <= admitted[wide]), (PAPER_FILTERS[wide], PAPER_FILTERS[narrow])
        assert not (table[wide][narrow] and table[narrow][wide]) or admitted[wide] == admitted[narrow]
    for a, b, c in itertools.product(range(len(filters)), repeat=3):
        assert not (table[a][b] and table[b][c]) or table[a][c]
