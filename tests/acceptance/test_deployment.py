"""A version is deployed while others run: nobody is stopped, and clients of before and after get the same events."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import maia
from maia.testing import Command, deliver_here, publish_here

TYPE = "pito/Sighting"


def delivered(home: Command, subscription: str, who: str) -> list[dict[str, Any]]:
    """Give what a subscription was delivered, as its client reads it, without the names and stamps of events."""
    rows = home("deliver", "show", subscription, "--as", who, "--json").lines
    return [{name: value for name, value in row.items() if not name.startswith("_")} for row in rows]


@pytest.mark.requirement("3.02")
def test_a_version_is_deployed_under_a_running_publisher_and_both_kinds_of_subscribers_get_its_events(
    maia_command: Command,
) -> None:
    """One domain stays open all the while: version 1 comes, the publisher of 0 goes on, and 0 and 1 both receive."""
    home = maia_command
    home.do("domain", "init", str(home.home))
    home.keys("pito", "camera", "smith", "jones")
    home.do("type", "define", TYPE, "--attribute", "plate:string:1", "--attribute", "place:string:2")
    rights = {"broker": "publish,subscribe", "camera": "publish", "smith": "subscribe", "jones": "subscribe"}
    for who, action in rights.items():
        home.grant("--from", "pito", "--to", who, "--type", TYPE, "--action", action)
    subscribe = ("deliver", "add")
    home.do(*subscribe, "old", "--as", "smith", "--type", f"{TYPE}@0")
    with maia.open(home.home) as running:
        camera = running.prove("camera")

        def publish(version: str, name: str, **row: object) -> None:
            at = datetime.now(UTC)
            plan = running.publish_plan(f"{TYPE}@{version}", client=camera, publication=name, at=at)
            assert publish_here(running.home, TYPE, [row], as_="camera", at=at, plan=plan) == 1

        publish("0", "one", plate="A", place="Kent")
        deliver_here(running.home)
        assert home.refused(*subscribe, "new", "--as", "jones", "--type", f"{TYPE}@1")[1] == "TYPE_NOT_FOUND"
        evolve = ("type", "evolve", f"{TYPE}@0", "--rename", "plate=numberplate", "--add", "speed:integer:3")
        assert home.do(*evolve, "--number", "counter")["version"] == "1"
        again = home.refused("type", "evolve", f"{TYPE}@0", "--add", "colour:string:4", "--number", "1")
        assert again[1] == "VERSION_TAKEN", "another deployment is another number"
        home.do(*subscribe, "new", "--as", "jones", "--type", f"{TYPE}@1")
        publish("0", "two", plate="B", place="Kent")
        publish("1", "three", numberplate="C", place="Victoria", speed=30)
        deliver_here(running.home)
        assert running.deliver_plan(f"{TYPE}@0", client=running.prove("smith"), commits=())
    assert delivered(home, "old", "smith") == [
        {"plate": "A", "place": "Kent"}, {"plate": "B", "place": "Kent"}, {"plate": "C", "place": "Victoria"},
    ]  # fmt: skip
    assert delivered(home, "new", "jones") == [
        {"numberplate": "B", "place": "Kent", "speed": None}, {"numberplate": "C", "place": "Victoria", "speed": 30},
    ]  # fmt: skip
    assert {row["version"] for row in home.do("type", "show")["types"]} == {"0", "1"}
