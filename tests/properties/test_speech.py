"""Non-interference: by rights that a holder issues itself it sees, and sets, nothing that was not open to it before."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given
from speech_worlds import ATTACKER, EVENTS, UIDS, deliveries, draw_world, holdings, publications
from strategies_trust import NOW, randoms

from maia.authority import Action, Constraint, Narrowed, attributes_of, intersect, narrow, type_right
from maia.errors import MaiaError
from maia.policy import compile_condition

DERIVE = sys.modules["maia.authority.derive"]  # the package gives the function of that name


def leak(world):
    """Find two events that show the attacker the same and are told apart by a right that it issued; or nothing."""
    held = holdings(world, "subscribe")
    known = [tuple(holding.views(event) for holding in held) for event in EVENTS]
    for who in ATTACKER:
        shown = {}
        for event, view, got in zip(EVENTS, known, deliveries(world, who, NOW), strict=True):
            first, seen = shown.setdefault(view, (event, got))
            if seen != got:
                return who, first, event
    return None


def forgery(world):
    """Find an event that the attacker's keys get out and that nothing given to it allows; or nothing."""
    held = [
        (right, {uid: min(values) for uid, values in right.demands if len(values) == 1}, holding.conditions)
        for holding in holdings(world, "publish")
        for right in holding.rights
    ]
    for who in ATTACKER:
        for event in publications(world, who, NOW):
            if not any(
                all(uid in right.uids or event[uid] == forced.get(uid) for uid in UIDS)
                and all(event[uid] in values for uid, values in right.demands)
                and all(event[uid] == value for uid, value in conditions)
                for right, forced, conditions in held
            ):
                return who, event
    return None


@given(randoms)
def test_what_a_holder_sees_through_its_own_rights_is_a_function_of_what_is_open_to_it(rng):
    """Of all events there are, those that are equal in the open cells are equal through every self-issued right."""
    assert leak(draw_world(rng)) is None


@given(randoms)
def test_a_holder_sets_nothing_through_its_own_rights_that_it_could_not_set_before(rng):
    """Every event that leaves under a self-issued right has values of its publisher only where they were open."""
    assert forgery(draw_world(rng)) is None


@pytest.mark.parametrize("search", [leak, forgery], ids=["leak", "forgery"])
def test_the_law_switched_off_is_noticed(search, monkeypatch):
    """The same search finds a violation as soon as links may say what they like."""
    found = (search(draw_world(random.Random(seed))) for seed in range(400))
    monkeypatch.setattr(DERIVE, "narrow", lambda held, given, **_: Narrowed(intersect(held, given)))
    assert any(found)


def test_shares_that_need_not_agree_are_noticed(monkeypatch):
    """Nor may one member of a threshold speak of what another closes."""
    found = (leak(draw_world(random.Random(seed))) for seed in range(1_500))
    monkeypatch.setattr(DERIVE, "join", lambda shares, _budget: Narrowed(intersect(shares[0][0], shares[1][0])))
    assert any(found)


@given(randoms)
def test_narrowing_is_never_wider_than_the_intersection(rng):
    """The law only takes away."""

    def right():
        demands = [
            Constraint(uid, "in", tuple(rng.sample((0, 1, 2), 2))) for uid in rng.sample(UIDS, rng.randint(0, 2))
        ]
        uids = rng.sample(UIDS, rng.randint(1, 3))
        return type_right(None, "T", actions=[Action.SUBSCRIBE], attributes=uids, constraints=demands)

    held, given_ = right(), right()
    left = narrow(held, given_)
    assert left.tag == intersect(held, given_) or left.closed


WORDS = (
    "event",
    '"1"',
    "'2'",
    "[",
    "]",
    "in",
    "(",
    ")",
    "==",
    "1",
    "&&",
    "||",
    "!",
    "size",
    "+",
    " ",
    '"',
    "\\",
    "event_type",
)


@given(randoms)
def test_a_condition_names_no_more_than_is_read_from_its_text(rng):
    """Whatever the engine of conditions makes of a text, it looks at no attribute that the reader did not find."""
    text = " ".join(rng.choices(WORDS, k=rng.randint(1, 9)))
    for source in (
        text,
        text.replace(" ", ""),
        f'event["1"] == 1 && {text}',
        f'"""{text}""" == "a"',
        f"{text} // {text}",
    ):
        try:
            looked_at = set(compile_condition(source).attributes)
        except MaiaError:
            continue
        found = attributes_of(source)
        assert found is None or looked_at <= found, source
