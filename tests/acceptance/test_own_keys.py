"""Keys of a home that manages its own: they change with the period, and replaced ones go when their time is over."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from own_keys_world import OwnKeys

HOUR = timedelta(hours=1)


@pytest.mark.requirement("16.06")
def test_a_key_is_current_for_its_period_and_no_longer(tmp_path: Path) -> None:
    """`key_period = 3600`: each hour has a key of its own, announced ahead, and what is published is sealed with it."""
    world = OwnKeys(tmp_path / "pito", "key_period = 3600")
    for hour in range(5):
        world.publish(f"P{hour}")
        world.wait(minutes=59, seconds=57)  # within the lead of the next key
        world.wait(seconds=3)
    starts = [datetime.fromisoformat(epoch["start"]) for epoch in world.epochs()]
    assert [epoch["causes"] for epoch in world.epochs()] == [["join"], *[["period"]] * 5]
    assert {later - sooner for sooner, later in pairwise(starts)} == {HOUR}
    sealed = [parcel.header for parcel in world.parcels()]
    assert len({header.epoch for header in sealed}) == 5
    assert all(0 <= header.stamp - header.epoch < 3_600_000 for header in sealed), "none under a key past its hour"
    [due] = [item["due"] for item in world.command.do("keys", "groups")["groups"] if item["uid"] == "1"]
    assert datetime.fromisoformat(due) - starts[-1] == HOUR
    assert world.read() == [f"P{hour}" for hour in range(5)]


@pytest.mark.requirement("16.06")
def test_a_period_within_which_no_key_can_be_announced_is_refused(tmp_path: Path) -> None:
    """Nobody could follow keys that change faster than they are announced; nothing is sealed by such a setting."""
    world = OwnKeys(tmp_path / "pito", "key_period = 5")
    assert world.command.refused("keys", "join", "Sighting") == (2, "REFRESH_PERIOD")
    assert world.parcels() == []


@pytest.mark.threat("T41")
@pytest.mark.requirement("16.08")
@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        pytest.param(("history = 0", "grace = 30"), ["P2"], id="erased when nobody can seal with it, and its grace"),
        pytest.param(("history = 400000", "grace = 30"), ["P1", "P2"], id="kept for longer, since the home says so"),
    ],
)
def test_a_replaced_key_is_erased_when_its_time_is_over(
    tmp_path: Path, settings: tuple[str, ...], shown: list[str]
) -> None:
    """After its grace the key is gone from the home, and what it sealed is closed for good; newer events open."""
    world = OwnKeys(tmp_path / "pito", "key_period = 3600", *settings, ago_hours=72)
    world.publish("P1")
    world.wait(minutes=59, seconds=57)
    world.wait(seconds=4)
    world.publish("P2")
    assert len({parcel.header.epoch for parcel in world.parcels()}) == 2
    world.wait(days=2)
    assert world.read() == shown
    assert world.refused() == (set() if "P1" in shown else {"NO_KEY"})
