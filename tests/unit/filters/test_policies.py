"""Bounds and screening: what the callers may not do, and what never leaks."""

from __future__ import annotations

import pytest

from maia.errors import FilterTypeError, UsageError
from maia.filters import (
    AttributeBound,
    BoundKind,
    Relation,
    Side,
    admits,
    allows,
    attribute_bound,
    compile_filter,
    screen,
)

TYPES = {"a": "integer", "b": "integer", "raw": "binary"}


def typed(text):
    """A filter over the two attributes."""
    return compile_filter(text, TYPES)


def test_a_publication_is_an_event_and_a_subscription_a_filter():
    """The wrong kind of subject is the caller's mistake, never an answer."""
    for kind in BoundKind:
        with pytest.raises(UsageError):
            allows(typed("a any"), kind=kind, side=Side.PUBLISH, subject=typed("a any"))
        for side in (Side.ADVERTISE, Side.SUBSCRIBE):
            with pytest.raises(UsageError):
                allows(typed("a any"), kind=kind, side=side, subject={"a": 1})


EMPTY = {
    "upper demands something": ("upper", "subscribe", "a any", "", False),
    "strict upper demands something": ("strict-upper", "subscribe", "a any", "", False),
    "an empty upper bound demands nothing": ("upper", "subscribe", "", "a = 1", True),
    "an empty strict upper bound allows only itself": ("strict-upper", "subscribe", "", "a = 1", False),
    "an empty lower bound allows no attribute": ("lower", "subscribe", "", "a = 1", False),
    "an empty publication meets no lower bound": ("lower", "publish", "a any", {}, False),
    "null is absence for a lower bound": ("lower", "publish", "a < 5 and b < 5", {"a": 1, "b": None}, True),
    "null is absence for a strict bound": ("strict-upper", "publish", "a any", {"a": 1, "b": None}, True),
    "null alone is nothing": ("lower", "publish", "a any", {"a": None}, False),
    "an ill-typed value is no absence": ("strict-lower", "publish", "a any", {"a": "1"}, False),
    "an ill-typed value elsewhere is no absence": ("strict-upper", "publish", "a any", {"a": 1, "b": "1"}, False),
    "an ill-typed value violates a lower bound": ("lower", "publish", "a any and b any", {"a": 1, "b": "1"}, False),
}


@pytest.mark.parametrize("case", EMPTY.values(), ids=EMPTY.keys())
def test_bounds_on_nothing_and_null(case):
    """Empty filters, empty events and nulls are decided by the formulas, closed where they are silent."""
    kind, side, bound, subject, expected = case
    asked = typed(subject) if isinstance(subject, str) else subject
    assert allows(typed(bound), kind=BoundKind(kind), side=Side(side), subject=asked) is expected


def test_attribute_bounds_need_attributes_that_can_be_filtered():
    """No attributes, unknown ones and binary ones make no bound."""
    with pytest.raises(UsageError):
        attribute_bound(AttributeBound.MIN, (), TYPES)
    for names in (("c",), ("raw",)):
        with pytest.raises(FilterTypeError):
            attribute_bound(AttributeBound.MAX, names, TYPES)


def test_screening_by_empty_rights_shows_an_empty_event():
    """Formula (8) with no constraints: the only part that is strictly covered is the empty one."""
    assert screen(typed(""), typed(""), {"a": 1}) == {}
    assert admits(Relation.STRICT_SUBSCRIPTION, typed(""), {})


def test_screening_keeps_the_order_of_the_event_and_the_event_itself():
    """The result is a new mapping; the original is untouched."""
    event = {"b": 2, "a": 1, "raw": b"x"}
    assert list(screen(typed("a any and b any"), typed("a = 1"), event)) == ["b", "a"]
    assert event == {"b": 2, "a": 1, "raw": b"x"}
