"""Emulation, as `maia demo --emulate` and `maia bench sealing` show it: one sub-event for each group of readers."""

from __future__ import annotations

from typing import Any

import pytest

from maia.testing import Command


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Play it once."""
    found: dict[str, Any] = Command(tmp_path_factory.mktemp("emulation")).do("demo", "numberplate", "--emulate")
    emulation: dict[str, Any] = found["emulation"]
    return emulation


@pytest.mark.requirement("15.16")
def test_one_publication_becomes_one_event_for_each_group(shown: dict[str, Any]) -> None:
    """Two sightings, published once, are six events for three groups; no group's key opens what is another's."""
    assert (shown["sightings"], shown["sub_events"], len(shown["groups"])) == (2, 6, 3)
    assert shown["groups"] == {
        "BO": ["numberplate", "timestamp"],
        "SO": ["timestamp", "location"],
        "Smith": ["numberplate", "timestamp", "location"],
    }
    assert shown["foreign"] == {"BO": 0, "SO": 0, "Smith": 0}
    assert shown["octets"]["emulated"] > shown["octets"]["by attribute"]


@pytest.mark.requirement("24.08")
def test_emulated_views_are_those_of_the_attribute_keys(shown: dict[str, Any]) -> None:
    """BO sees no place, SO no plate, Smith one car, and the camera stands at Victoria whatever it says: as 24.02."""
    seen = {who: [(row["numberplate"], row["location"]) for row in view] for who, view in shown["views"].items()}
    assert seen == {
        "BO": [("AE05 XYZ", None), ("BX51 ABC", None)],
        "SO": [(None, "Victoria"), (None, "Victoria")],
        "Smith": [("AE05 XYZ", "Victoria")],
    }
    assert shown["views"] == shown["direct"]
    assert shown["same_views"] is True


@pytest.mark.requirement("15.16")
@pytest.mark.requirement("21.07")
def test_emulation_needs_a_key_group_for_each_combination_of_attributes(
    shown: dict[str, Any], maia_command: Command
) -> None:
    """Five attributes: 32 against 5. With a reader for each, 31 parcels are really sealed."""
    assert shown["key_groups"] == {"3": [8, 3], "5": [32, 5]}
    small = ("--attributes", "5", "--events", "2", "--runs", "1")
    [found] = maia_command.do("bench", "sealing", *small, "--groups", "31")["emulated"]
    assert (found["key_groups"], found["own_key_groups"]) == (32, 5)
    assert (found["groups"], found["parcels"]) == (31, 31)
    assert found["octets"] > 10 * found["own_octets"]
    assert maia_command.refused("bench", "sealing", *small, "--groups", "0") == (2, "USAGE")
    [most] = maia_command.do("bench", "sealing", *small, "--groups", "1000")["emulated"]
    assert most["parcels"] == 31, "the group that reads nothing gets no event"


def test_only_the_numberplates_are_emulated(maia_command: Command) -> None:
    """Other scenarios have no such way."""
    assert maia_command.refused("demo", "trust", "--emulate") == (2, "USAGE")
