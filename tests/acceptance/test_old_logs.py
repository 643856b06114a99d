"""A log that grew old is looked at as quickly as a young one, and what a home remembers of it decides nothing."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import maia
from maia.principals import KeySigner
from maia.testing import TYPE_NAME, Command, LaneOf, NumberplateHomes, numberplate_homes, publish_here, read_here

pytestmark = pytest.mark.threat("T27")
COMMITS = 70
"""So many that a home remembers how far it read them."""


@pytest.fixture
def world(tmp_path: Path) -> NumberplateHomes:
    """Build homes over a log in which somebody has a lane of some length."""
    made = numberplate_homes(tmp_path)
    lane = LaneOf(made.ccs.parent / "log", made.event_type.type_id.hex(), KeySigner.generate(), tmp_path / "other")
    began = datetime.now(UTC) - timedelta(hours=1)
    for number in range(COMMITS):
        lane.commit(f"p{number}", at=began + timedelta(seconds=number))
    return made


def shown(world: NumberplateHomes) -> tuple[list[str], dict[str, Any]]:
    """Give the publications that `maia log show` names, and what it says of their lane."""
    found = Command(world.ccs).do("log", "show", "--limit", "1000")
    [lane] = found["lanes"]
    return [item["publication"] for item in found["commits"]], lane


def memory(world: NumberplateHomes) -> Path:
    """Give the file in which the home remembers the lane."""
    [found] = (world.ccs / "seen").rglob("seen")
    return found


def test_a_home_remembers_a_lane_and_believes_the_lane(world: NumberplateHomes) -> None:
    """A home that read a lane reads on; junk in the place of what it remembers changes nothing, and is told."""
    everything = [f"p{number}" for number in range(COMMITS)]
    for _ in range(2):
        publications, lane = shown(world)
        assert (publications, lane["alarm"], lane["finding"]) == (everything, None, None)
    kept = memory(world).read_bytes()
    memory(world).write_bytes(kept[:-20] + b"x" + kept[-19:])
    publications, lane = shown(world)
    assert (publications, lane["alarm"], lane["finding"]) == (everything, None, "LANE_MEMORY")
    assert shown(world)[1]["finding"] is None


def test_a_lane_that_lost_its_end_is_told_to_whoever_read_it(world: NumberplateHomes) -> None:
    """Who cuts a lane off behind what its head says is found out by every home that had read further."""
    shown(world)
    [last] = (world.ccs.parent / "log").rglob(f"{COMMITS - 1:012d}.record")
    octets = last.read_bytes()
    last.unlink()
    for _ in range(2):
        publications, lane = shown(world)
        assert (len(publications), lane["finding"]) == (COMMITS - 1, "LANE_MEMORY")
    status = Command(world.ccs).do("status")
    assert any("LANE_MEMORY" in problem for problem in status["problems"])
    last.write_bytes(octets)
    publications, lane = shown(world)
    assert (len(publications), lane["finding"]) == (COMMITS, None)


def publish(home: Path, plate: str) -> None:
    """Let the camera publish a sighting."""
    opened, at = maia.open(home).home, datetime.now(UTC)
    row = {"numberplate": plate, "timestamp": at, "location": "Victoria"}
    publish_here(opened, TYPE_NAME, [row], as_="CCTV", at=at)


def read(home: Path) -> list[str]:
    """Read what the billing office may see at a home, as a batch."""
    rows = read_here(maia.open(home).home, TYPE_NAME, as_="BO", attributes=["numberplate"], lenient=True)
    return sorted(str(row["numberplate"]) for row in rows)


def doubts(home: Path) -> tuple[set[str], bool]:
    """Give the codes for which readers wait, and whether `maia status` has a problem with a lane."""
    status = Command(home).do("status")
    told = any("LANE_MEMORY" in problem for problem in status["problems"])
    return {item["code"] for item in status["log"]["parked"]}, told


def test_a_lane_that_is_taken_away_is_missed_by_whoever_read_it(tmp_path: Path) -> None:
    """No batch read shows fewer rows in silence: a lane that is gone or cut waits, and its return ends it."""
    world = numberplate_homes(tmp_path)
    world.add_key(world.met, "BO")
    met, log, plates = world.met, world.ccs.parent / "log", ["P1", "P2", "P3"]
    for plate in plates:
        publish(world.ccs, plate)
    assert read(met) == plates
    assert doubts(met) == (set(), False)
    [lane] = log.glob("type=*/origin=*")
    whole = tmp_path / "whole"
    shutil.copytree(lane, whole)

    def cut() -> None:
        (lane / "000000000002.record").unlink()
        (lane / "head").unlink()

    deeds = {
        "cut off": (cut, ["P1", "P2"]),
        "the lane": (lambda: shutil.rmtree(lane), []),
        "the type": (lambda: shutil.rmtree(lane.parent), []),
    }
    for deed, left in deeds.values():
        deed()
        assert read(met) == left
        assert doubts(met) == ({"LANE_MEMORY"}, True)
        assert Command(met)("doctor", "--json").code == 1
        assert [item["finding"] for item in Command(met).do("log", "show")["lanes"]] == ["LANE_MEMORY"]
        shutil.rmtree(lane, ignore_errors=True)
        shutil.copytree(whole, lane)
        assert read(met) == plates
        assert doubts(met) == (set(), False)
    told = [row["reason"] for row in Command(met).do("audit", "--kind", "alarm")["rows"]]
    assert told == ["LANE_MEMORY"] * len(deeds)
    assert Command(world.ccs).do("log", "compact")["before"] == len(plates)
    assert read(met) == plates
    assert Command(world.ccs).do("log", "expire", "--older-than", "0s", "--yes")["events"] == len(plates)
    assert read(met) == []
    assert doubts(met) == (set(), False)  # what its owner let go is not missed


def test_a_lane_of_a_stranger_is_not_missed(world: NumberplateHomes) -> None:
    """Who has no right makes a lane and takes it away: nobody waits for it."""
    read(world.ccs)
    [lane] = (world.ccs.parent / "log").glob("type=*/origin=*")
    shutil.rmtree(lane)
    assert read(world.ccs) == []
    assert doubts(world.ccs) == (set(), False)


def test_whoever_subscribes_is_told_of_a_lane_that_is_gone(spark: Any, tmp_path: Path) -> None:
    """The command that shows no row of a lane that was taken away says so, and fails."""
    world = numberplate_homes(tmp_path)
    world.add_key(world.met, "BO")
    publish(world.ccs, "P1")
    assert read(world.met) == ["P1"]
    [lane] = (world.ccs.parent / "log").glob("type=*/origin=*")
    shutil.rmtree(lane)
    ran = Command(world.met)("subscribe", "--type", TYPE_NAME, "--as", "BO", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert "not all of it was read: LANE_MEMORY" in ran.err
