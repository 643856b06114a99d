"""When a group's key changes: rules 16.04 to 16.06, and what happens at their edges."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from key_world import TYPE, World

from maia.encryption import (
    ChangeKind,
    GroupChange,
    plan_refreshes,
)
from maia.testing import served

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


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Give the owner's home, whose manager runs, and the Met, which is a domain."""
    made = World(tmp_path)
    made.pito.do("name", "add", "domains", "--from", "domain", "--to", "met")
    with served("key-manager", made.pito.home) as port:
        made.point_to(port)
        yield made


def begun(world: World, attribute: str, number: int) -> datetime:
    """Wait until an epoch has begun, by the clock; tell since when. The test's own limit of time ends the wait."""
    while True:
        epochs = world.history(attribute)["epochs"]
        if len(epochs) >= number:
            start = datetime.fromisoformat(epochs[number - 1]["start"])
            if datetime.now(UTC) > start:
                return start


@pytest.mark.slow
@pytest.mark.requirement("16.04")
def test_a_broker_that_was_authorised_at_the_last_refresh_changes_no_key_by_joining(world: World) -> None:
    """One right began before the last refresh and one after it: by joining both groups the second key changes."""
    for attribute in ("plate", "place"):
        world.pito.do("keys", "refresh", f"Sighting/{attribute}")
    last = max(begun(world, attribute, 1) for attribute in ("plate", "place"))
    right = ("--action", "subscribe", "--attribute")
    world.give(*right, "plate", "--not-before", (last - timedelta(minutes=1)).isoformat())
    world.give(*right, "place", "--not-before", (last + timedelta(seconds=1)).isoformat())
    keys: set[str] = set()
    while keys != {"1", "2"}:  # until the second right has begun
        code, said, keys = world.join()
        assert code == 0, said
    found = {attribute: world.history(attribute) for attribute in ("plate", "place")}
    assert [epoch["causes"] for epoch in found["plate"]["epochs"][1:]] == []
    assert [epoch["causes"] for epoch in found["place"]["epochs"][1:]] == [["join"]]
    assert {item["kind"] for what in found.values() for item in what["changes"]} == {"join"}


@pytest.mark.slow
@pytest.mark.threat("T42")
@pytest.mark.requirement("16.05")
def test_a_key_outlives_a_leaver_by_its_credential(world: World) -> None:
    """The Met leaves: nothing changes before its right ends, and then at once."""
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=40)
    world.give("--action", "subscribe", "--attribute", "plate", "--until", ends.isoformat())
    assert world.join()[0] == 0
    [first] = world.history("plate")["epochs"]
    world.met.do("keys", "leave", TYPE)
    assert world.history("plate")["epochs"] == [first]
    start = begun(world, "plate", 2)
    assert world.history("plate")["epochs"][1]["causes"] == ["end"]
    assert timedelta(0) <= start - ends <= timedelta(seconds=1)
