"""When a group's key changes: rules 16.04 to 16.06, and what happens at their edges."""

from __future__ import annotations

import json

import pytest

from maia.conformance.keys import VERBS
from maia.encryption import (
    ChangeKind,
    GroupChange,
    GroupState,
    RefreshCause,
    next_refresh,
    plan_refreshes,
    step_group,
)
from maia.errors import MaiaError, UsageError

FOR_EVER = 100_000


def at(when, do, member="", valid_from=None, valid_to=None):
    """One change."""
    return GroupChange(at=when, kind=ChangeKind(do), member=member.encode(), valid_from=valid_from, valid_to=valid_to)


FIRST = at(100, "refresh")
STAYS = at(100, "join", "n", 50, FOR_EVER)
MEMBER = at(110, "join", "m", 90, 260)


def planned(*changes, period=10_000, until=999):
    """The times of the refreshes."""
    return [refresh.at for refresh in plan_refreshes((FIRST, STAYS, *changes), period=period, until=until)]


EDGES = {
    "a newcomer's refresh serves the leaver": ([MEMBER, at(200, "leave", "m"), at(230, "join", "o", 220)], [230]),
    "an ordered refresh serves the leaver": ([MEMBER, at(200, "leave", "m"), at(230, "refresh")], []),
    "back before the wait is over, for good": ([MEMBER, at(200, "leave", "m"), at(230, "join", "m", 90)], []),
    "back with a new credential only": ([MEMBER, at(200, "leave", "m"), at(230, "join", "m", 220)], []),
    "back on the old credential": ([MEMBER, at(200, "leave", "m"), at(230, "join", "m", 90, 260)], [260]),
    "back after the wait is over": ([MEMBER, at(200, "leave", "m"), at(270, "join", "m", 265)], [260, 270]),
    "the credential ends inside": ([MEMBER], [260]),
    "leaves after its end": ([MEMBER, at(300, "leave", "m")], [260]),
    "leaves at its end": ([MEMBER, at(260, "leave", "m")], [260]),
    "leaves twice": ([MEMBER, at(200, "leave", "m"), at(210, "leave", "m")], [260]),
    "revoked after it was served": (
        [MEMBER, at(200, "leave", "m"), at(230, "refresh"), at(240, "revoke", "m")], []),
    "revoked twice": ([MEMBER, at(210, "revoke", "m"), at(220, "revoke", "m")], [210]),
    "back on the revoked credential": ([MEMBER, at(210, "revoke", "m"), at(220, "join", "m", 90, 260)], [210]),
    "revoked and back at one instant": ([MEMBER, at(210, "revoke", "m"), at(210, "join", "m", 205)], [210]),
    "a stranger revoked": ([at(200, "revoke", "x")], []),
    "a stranger leaves": ([at(200, "leave", "x")], []),
    "a join and a revocation at one instant": ([MEMBER, at(210, "join", "o", 205), at(210, "revoke", "m")], [210]),
    "two ends at one instant": ([MEMBER, at(110, "join", "o", 90, 260)], [260]),
    "used up": ([at(170, "exhaust")], [170]),
}  # fmt: skip


@pytest.mark.parametrize("changes, expected", EDGES.values(), ids=EDGES)
def test_edges(changes, expected):
    """Every reason makes one refresh, serves everybody who waits, and nothing else makes any."""
    assert planned(*changes) == expected


def test_a_leave_at_the_instant_of_the_period_is_served_by_it():
    """What happens at one instant happens together."""
    assert planned(at(110, "join", "m", 90, 400), at(300, "leave", "m"), period=200, until=499) == [300]


def test_the_first_join_makes_the_first_key():
    """Without a key nobody was authorised at the last refresh, and nothing is due."""
    assert plan_refreshes((), period=10, until=1000) == ()
    assert plan_refreshes([at(50, "leave", "m"), at(60, "revoke", "m")], period=10, until=1000) == ()
    (first,) = plan_refreshes([at(70, "join", "m", 1)], period=None, until=1000)
    assert first.at == 70
    assert first.causes == {RefreshCause.JOIN}


def test_changes_are_taken_in_the_order_of_their_times():
    """The order in which they are told does not matter; what is later than the end does not count."""
    changes = [at(200, "leave", "m"), MEMBER, STAYS, FIRST, at(5000, "revoke", "n")]
    assert [r.at for r in plan_refreshes(changes, period=None, until=4999)] == [260]


def test_a_late_step_refreshes_once_and_never_back():
    """A manager that slept over two ends refreshes now; two refreshes never share a start."""
    state, _ = step_group(GroupState(), [at(0, "join", "m", 90, 260), at(0, "join", "n", 90, 270)], at=100, period=None)
    assert next_refresh(state, period=None) == 260
    state, refresh = step_group(state, [], at=500, period=None)
    assert refresh is not None
    assert (refresh.at, state.members, state.leavers) == (500, frozenset(), frozenset())
    state, again = step_group(state, [at(0, "exhaust")], at=400, period=None)
    assert again is not None
    assert (again.at, state.last) == (501, 501)
    assert next_refresh(state, period=None) is None


def test_members_and_leavers_are_known():
    """A leaver is known as one until the refresh that serves it."""
    state, _ = step_group(GroupState(last=100), [MEMBER], at=110, period=None)
    state, refresh = step_group(state, [at(200, "leave", "m")], at=200, period=None)
    assert refresh is None
    assert (state.members, state.leavers) == (frozenset(), {b"m"})


@pytest.mark.parametrize("period", [0, -1])
def test_a_period_is_positive(period):
    """Otherwise there would be no end of refreshes."""
    with pytest.raises(UsageError) as caught:
        plan_refreshes([FIRST], period=period, until=200)
    assert caught.value.code == "REFRESH_PERIOD"


def test_refreshes_are_bounded():
    """Somebody else's period and end do not keep us busy for ever."""
    with pytest.raises(UsageError) as caught:
        plan_refreshes([FIRST], period=1, until=10**9)
    assert caught.value.code == "REFRESH_LIMIT"


def test_the_conformance_verb_answers_in_the_form_of_the_question():
    """Seconds give seconds, ISO gives ISO, and a wrong field is named."""
    timeline = [
        {"at": 100, "do": "refresh"},
        {"at": 130.5, "do": "join", "member": "m", "valid_from": "1970-01-01T00:02:00Z", "valid_to": 400},
    ]
    verb = VERBS["key.refreshes"]
    assert json.dumps(verb({"timeline": timeline, "period": 100, "until": 300})) == "[130.5, 230.5]"
    assert verb({"timeline": timeline, "until": "1970-01-01T00:10:00Z"}) == [
        "1970-01-01T00:02:10.500000Z",
        "1970-01-01T00:06:40Z",
    ]
    for broken in ({"do": "dance"}, {"do": "join"}, {"do": "refresh", "at": True}, {"at": 1}):
        with pytest.raises(MaiaError):
            verb({"timeline": [broken], "period": 1, "until": 2})
