"""Non-interference: by rights that a holder issues itself it sees, and sets, nothing that was not open to it before."""

from __future__ import annotations

import itertools
import random
import sys

import pytest
from hypothesis import given
from speech_worlds import (
    ATTACKER,
    EVENTS,
    UIDS,
    VERSIONS,
    deliveries,
    draw_world,
    holdings,
    kept_of_origin,
    publications,
)
from strategies_trust import NOW, randoms

from maia.authority import Action, Constraint, KnownVersions, Narrowed, attributes_of, intersect, narrow, type_right
from maia.errors import MaiaError
from maia.policy import compile_condition

DERIVE = sys.modules["maia.authority.derive"]  # the package gives the function of that name


def leak(world):
    """Find two events that show the attacker the same and are told apart by a right that it issued; or nothing."""
    held = [holding for version in VERSIONS for holding in holdings(world, "subscribe", version)]
    known = [tuple(holding.views(event) for holding in held) for event in EVENTS]
    for who, version in itertools.product(ATTACKER, VERSIONS):
        shown = {}
        for event, view, got in zip(EVENTS, known, deliveries(world, who, version, NOW), strict=True):
            first, seen = shown.setdefault(view, (event, got))
            if seen != got:
                return who, version, first, event
    return None


def forgery(world):
    """Find an event that the attacker's keys get out and that nothing given to it allows; or nothing."""
    for who, version in itertools.product(ATTACKER, VERSIONS):
        held = may_set(world, version)
        for event in publications(world, who, version, NOW):
            if not any(
                all(uid in right.opened or value == forced.get(uid) for uid, value in event.items())
                and all(event.get(uid) in values for uid, values in right.demands)
                and all(event.get(uid) == value for uid, value in conditions)
                for right, forced, conditions in held
            ):
                return who, version, event
    return None


def may_set(world, version):
    """List what was given to the attacker to set of a version, with what it forces."""
    return [
        (right, {uid: min(values) for uid, values in right.demands if len(values) == 1}, holding.conditions)
        for holding in holdings(world, "publish", version)
        for right in holding.rights
    ]


def smuggled(world, events):
    """Find a cell that a reader keeps of what the attacker's broker sealed, and that no right of it lets it set."""
    held = [given for version in VERSIONS for given in may_set(world, version)]
    for who, event in itertools.product(ATTACKER, events):
        for uid, value in kept_of_origin(world, who, event, NOW).items():
            if value is not None and not any(
                (uid in right.opened or value == forced.get(uid))
                and all(event[name] in values for name, values in right.demands)
                for right, forced, _ in held
            ):
                return who, event, uid
    return None


@given(randoms)
def test_what_a_holder_sees_through_its_own_rights_is_a_function_of_what_is_open_to_it(rng):
    """Of all events there are, those that are equal in the open cells are equal through every self-issued right."""
    assert leak(draw_world(rng)) is None


@given(randoms)
def test_a_holder_sets_nothing_through_its_own_rights_that_it_could_not_set_before(rng):
    """Every event that leaves under a self-issued right has values of its publisher only where they were open."""
    assert forgery(draw_world(rng)) is None


@given(randoms)
def test_a_reader_keeps_of_an_origin_only_what_its_versions_have(rng):
    """Parcels carry no version: what an origin's right on one version does not open is not taken from it."""
    assert smuggled(draw_world(rng), rng.sample(EVENTS, 6)) is None


@pytest.mark.parametrize("search", [leak, forgery], ids=["leak", "forgery"])
def test_the_law_switched_off_is_noticed(search, monkeypatch):
    """The same search finds a violation as soon as links may say what they like."""
    found = (search(draw_world(random.Random(seed))) for seed in range(400))
    monkeypatch.setattr(DERIVE, "narrow", lambda held, given, **_: Narrowed(intersect(held, given)))
    assert any(found)


def test_shares_that_need_not_agree_are_noticed(monkeypatch):
    """Nor may one member of a threshold speak of what another closes."""
    found = (leak(draw_world(random.Random(seed))) for seed in range(1_500))
    monkeypatch.setattr(DERIVE, "join", lambda shares, _budget, **_: Narrowed(intersect(shares[0][0], shares[1][0])))
    assert any(found)


def all_of_one_version_is_all_of_every(self, version, uids, budget=None):
    """Take a right on all attributes at its word, whatever its version."""
    return uids


@pytest.mark.parametrize("search", [leak, smuggled], ids=["leak", "smuggled"])
def test_versions_that_make_no_difference_are_noticed(search, monkeypatch):
    """The same search finds a violation where a right on one version is taken for one on every."""
    monkeypatch.setattr(KnownVersions, "opened", all_of_one_version_is_all_of_every)
    worlds = (draw_world(random.Random(seed)) for seed in range(1_500))
    assert any(search(world) if search is leak else search(world, EVENTS[-4:]) for world in worlds)


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
