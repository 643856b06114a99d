"""When a group's key changes: rules 16.04 to 16.06, and what happens at their edges."""

from __future__ import annotations

import pytest

from maia.encryption import (
    ChangeKind,
    GroupChange,
    plan_refreshes,
)

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


JOINS = {
    "authorised since before the last refresh": ([at(130, "join", "m", 90)], []),
    "authorised since after it": ([at(130, "join", "m", 120)], [130]),
    "authorised since that very instant": ([at(130, "join", "m", 100)], []),
    "the second of two newcomers, authorised at the first one's refresh": (
        [at(130, "join", "m", 120), at(140, "join", "o", 125)], [130]),
    "the second of two newcomers, not": ([at(130, "join", "m", 120), at(140, "join", "o", 135)], [130, 140]),
    "two newcomers at one instant": ([at(130, "join", "m", 120), at(130, "join", "o", 130)], [130]),
    "a credential of tomorrow": ([at(130, "join", "m", 140, 500)], []),
    "a credential of yesterday": ([at(130, "join", "m", 90, 120)], []),
    "a member that renews": ([MEMBER, at(250, "join", "m", 240, FOR_EVER)], []),
}  # fmt: skip


@pytest.mark.parametrize("changes, expected", JOINS.values(), ids=JOINS)
def test_a_join_refreshes_unless_the_joiner_was_authorised_at_the_last_refresh(changes, expected):
    """Last refresh at 100: a capability from 90 needs none, one from 120 does."""
    assert planned(*changes) == expected


LEAVES = {
    "the credential ends first": ([at(110, "join", "m", 90, 260), at(200, "leave", "m")], 200, [260]),
    "the period ends first": ([at(110, "join", "m", 90, 400), at(200, "leave", "m")], 200, [300]),
    "revoked meanwhile": ([at(110, "join", "m", 90, 260), at(200, "leave", "m"), at(210, "revoke", "m")], 200, [210]),
    "revoked inside": ([at(110, "join", "m", 90, 260), at(210, "revoke", "m")], 200, [210]),
    "revoked and leaves": ([at(110, "join", "m", 90, 260), at(210, "revoke", "m"), at(220, "leave", "m")], 200, [210]),
}  # fmt: skip


@pytest.mark.threat("T42")
@pytest.mark.parametrize("changes, period, expected", LEAVES.values(), ids=LEAVES)
def test_a_leave_waits_for_the_end_of_the_authority_or_the_period(changes, period, expected):
    """Leaves at 200: refresh at 260, at 300 when the period is due first, at 210 when revoked then."""
    assert planned(*changes, period=period, until=399) == expected


def test_no_key_is_current_for_longer_than_the_period():
    """Period 3600: due an hour after the last refresh of any kind, `until` included."""
    changes = (FIRST, STAYS, at(1000, "join", "m", 500))
    times = [r.at for r in plan_refreshes(changes, period=3600, until=11_800)]
    assert times == [1000, 4600, 8200, 11_800]
    assert plan_refreshes(changes, period=3600, until=11_799)[-1].at == 8200
