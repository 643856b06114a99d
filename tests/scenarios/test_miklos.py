"""Every example of the access-control-filter paper, section by section, and the readings chosen where it is silent."""

from __future__ import annotations

import itertools

import pytest

from maia.errors import DeniedError
from maia.filters import (
    Announcement,
    AttributeBound,
    BoundKind,
    CoveringSet,
    Relation,
    ScreenMode,
    Side,
    admits,
    allows,
    attribute_bound,
    compile_filter,
    from_tag,
    intersect,
    matches,
    satisfiable,
    screen,
    to_tag,
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


ALLOWED = {
    "upper, publish": (PRODUCT, "upper", "publish", {"message": "new_product", "price": 10}, True),
    "upper, publish, foreign": (PRODUCT, "upper", "publish", {"weather": "sunny", "temperature": 27}, False),
    "upper, advertise": (PRODUCT, "upper", "advertise", CHEAP, True),
    "upper, advertise, foreign": (PRODUCT, "upper", "advertise", "weather any and temperature any", False),
    "strict upper, publish": (PRODUCT, "strict-upper", "publish", {"message": "new_product", "price": 10}, False),
    "lower, publish": (CHEAP, "lower", "publish", {"message": "new_product", "price": 10, "color": "blue"}, True),
    "lower, publish, foreign": (CHEAP, "lower", "publish", {"weather": "sunny", "temperature": 27}, False),
    "lower, publish, too dear": (CHEAP, "lower", "publish", {"message": "new_product", "price": 523}, False),
    "lower, advertise": (CHEAP, "lower", "advertise", f"{PRODUCT} and price < 53", True),
    "lower, advertise, new attribute": (CHEAP, "lower", "advertise", f"{PRODUCT} and color any", False),
    "upper, subscribe": (PRODUCT, "upper", "subscribe", f"{PRODUCT} and price = 10", True),
    "upper, subscribe, foreign": (PRODUCT, "upper", "subscribe", "weather = 'sunny' and temperature > 25", False),
    "lower, subscribe": ("message any", "lower", "subscribe", PRODUCT, True),
    "lower, subscribe, too specific": ("message any", "lower", "subscribe", CHEAP, False),
}


@pytest.mark.parametrize("case", ALLOWED.values(), ids=ALLOWED.keys())
def test_bounds_of_the_paper(case):
    """Sections 3.3 and 3.4, under the reading of choice C3."""
    bound, kind, side, subject, expected = case
    asked = typed(subject) if isinstance(subject, str) else subject
    assert allows(typed(bound), kind=BoundKind(kind), side=Side(side), subject=asked) is expected


STRICT_LOWER = {
    "with a colour": ({"message": "new_product", "price": 10, "color": "blue"}, False),
    "message and price": ({"message": "new_product", "price": 10}, True),
    "message alone": ({"message": "new_product"}, True),
}


@pytest.mark.parametrize("case", STRICT_LOWER.values(), ids=STRICT_LOWER.keys())
def test_strict_lower_bound_admits_only_attributes_with_a_constraint(case):
    """A publisher under a strict lower bound cannot open new topics."""
    event, expected = case
    bound = typed(CHEAP)
    assert allows(bound, kind=BoundKind.STRICT_LOWER, side=Side.PUBLISH, subject=event) is expected
    assert admits(STRICT_ADVERTISEMENT, bound, event) is expected


def test_formula_five_alone_refuses_what_the_paper_allows():
    """Read literally, formula (5) fails the paper's first lower-bound example: hence choice C3."""
    events = [ALLOWED[name][3] for name in ("lower, publish", "lower, publish, foreign", "lower, publish, too dear")]
    assert [admits(ADVERTISEMENT, typed(CHEAP), event) for event in events] == [False, False, False]


def test_lower_bound_constraints_on_one_attribute_are_alternatives():
    """Choice C32: a value that satisfies one of them is allowed."""
    bound = typed("price < 10 and price > 100")
    for price, expected in ((5, True), (50, False), (500, True)):
        assert allows(bound, kind=BoundKind.LOWER, side=Side.PUBLISH, subject={"price": price}) is expected


ATTRIBUTE_SETS = {
    "min refuses fewer": ("min", "message any", False),
    "min allows more": ("min", "message any and price any and color any", True),
    "exact refuses fewer": ("exact", "message any", False),
    "exact refuses more": ("exact", "message any and price any and color any", False),
    "exact allows the set": ("exact", CHEAP, True),
    "max refuses others": ("max", "message any and color any", False),
    "max allows fewer": ("max", "message any", True),
}


@pytest.mark.parametrize("case", ATTRIBUTE_SETS.values(), ids=ATTRIBUTE_SETS.keys())
def test_attribute_sets_of_subscriptions(case):
    """Choice C29: `min`, `exact` and `max` over message and price."""
    keyword, subscription, expected = case
    bound = attribute_bound(AttributeBound(keyword), ("message", "price"), TYPES)
    assert allows(bound.filter, kind=bound.kind, side=Side.SUBSCRIBE, subject=typed(subscription)) is expected


def test_a_filter_written_into_a_tag_is_conjoined_when_delegated():
    """The bound of the owner and the bound of the delegate, read back from their tags, hold together (10.14, C30)."""
    owner, delegate = typed("price < 100"), typed("price > 50")
    kinds = {"price": owner.constraints[0].type}
    carried = [from_tag(to_tag(filter_.constraints), "price", kinds["price"]) for filter_ in (owner, delegate)]
    both = intersect(owner, delegate)
    assert both.constraints == carried[0] + carried[1]
    assert matches(both, {"price": 60})
    assert not matches(both, {"price": 20})
    assert not satisfiable(intersect(owner, typed("price = 523")))


EVENT = {"message": "new_product", "price": 23, "color": "red"}


def test_screening_shows_the_largest_part_the_rights_cover():
    """Section 3.5: message and price are shown, the colour is cut."""
    shown = screen(typed("message any and price any"), typed(CHEAP), EVENT)
    assert shown == {"message": "new_product", "price": 23}
    assert admits(STRICT, typed("message any and price any"), shown)
    # Formula (8) by enumeration: no larger part of the event is strictly covered.
    parts = [dict(part) for size in range(4) for part in itertools.combinations(EVENT.items(), size)]
    covered = [part for part in parts if admits(STRICT, typed("message any and price any"), part)]
    assert max(covered, key=len) == shown


def test_screening_never_makes_a_match_and_leaves_no_trace():
    """A price of 523 gives no notification; what is shown does not tell that a colour was there."""
    rights = typed("message any and price any")
    assert screen(rights, typed(CHEAP), {**EVENT, "price": 523}) is None
    without = {name: value for name, value in EVENT.items() if name != "color"}
    assert screen(rights, typed(CHEAP), EVENT) == screen(rights, typed(CHEAP), without)


def test_two_subscribers_see_two_views_of_one_event():
    """Screening follows the rights of each subscriber."""
    narrow, wide = typed("message any and price any"), typed("message any and price any and color any")
    assert screen(narrow, typed(CHEAP), EVENT) == {"message": "new_product", "price": 23}
    assert screen(wide, typed(CHEAP), EVENT) == EVENT


def test_rights_that_do_not_cover_the_event_show_nothing():
    """Choice C33, formula (8): contradictory or unmet rights open no part of the event."""
    for rights in ("message any and price < 5 and price > 50", "message any and price > 50", "weather any"):
        with_filter = typed("message any") if "message" in rights else typed("")
        assert screen(typed(rights), with_filter, EVENT) is None


def test_hidden_attributes_are_omitted_or_null():
    """The same event: two keys in mode omit; three in mode null, the colour null."""
    rights = typed("message any and price any")
    assert len(screen(rights, typed(CHEAP), EVENT, mode=ScreenMode.OMIT)) == 2
    assert screen(rights, typed(CHEAP), EVENT, mode=ScreenMode.NULL) == {**EVENT, "color": None}


@pytest.mark.threat("T67")
def test_a_filter_over_a_closed_attribute_is_refused_whatever_it_asks():
    """Sixty-four probing subscriptions learn nothing: each is refused, with the same words, match or not."""
    rights = typed("message any")
    probes = [f"price {operator} {bound}" for operator in ("<", ">=") for bound in range(0, 64, 2)]
    refusals = set()
    for probe in [*probes, "price any", "message any and price != 3"]:
        with pytest.raises(DeniedError) as refused:
            screen(rights, typed(probe), EVENT)
        refusals.add(str(refused.value))
    assert len(refusals) == 1


def test_a_wider_filter_stands_for_a_narrower_one_until_it_goes():
    """The wider filter is forwarded, the narrower suppressed; without the first the second is forwarded."""
    link = CoveringSet()
    assert link.add("wide", typed("price > 10")) == Announcement(announce=("wide",))
    assert link.add("narrow", typed("price > 20")) == Announcement()
    assert link.announced == ("wide",)
    assert link.remove("wide") == Announcement(announce=("narrow",), withdraw=("wide",))
    assert link.add("wide", typed("price > 10")) == Announcement(announce=("wide",), withdraw=("narrow",))
