"""`maia demo numberplate`: the scenario through Spark, told by what the pipeline did."""

from __future__ import annotations

from typing import Any

import pytest

from demos import check_picture, play

EVENTS = 4_000


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    """Play the scenario once, in a process of its own, for machines."""
    return play("numberplate", "--events", str(EVENTS))


@pytest.fixture(scope="module")
def stream(facts: dict[str, Any]) -> dict[str, Any]:
    """Give what became of the sightings."""
    found: dict[str, Any] = facts["stream"]
    return found


@pytest.mark.spark
def test_every_event_is_published_or_refused(stream):
    """What goes in is published, or refused with a code."""
    assert stream["published"] + sum(stream["refused"].values()) == EVENTS
    assert set(stream["refused"]) == {"CONSTRAINT_VIOLATED"}


@pytest.mark.spark
def test_three_readers_see_three_views(stream):
    """Billing sees no place, statistics no plate, the detective one car with both; the camera's place is forced."""
    billing, statistics, detective = (stream["readers"][who]["rows"] for who in ("BO", "SO", "Smith"))
    assert {row["location"] for row in billing} == {None}
    assert all(row["numberplate"] for row in billing)
    assert {row["numberplate"] for row in statistics} == {None}
    assert all(row["location"] for row in statistics)
    assert {row["numberplate"] for row in detective} == {"AE05 XYZ"}
    assert stream["readers"]["BO"]["events"] == stream["published"]
    assert 0 < stream["readers"]["Smith"]["events"] < stream["published"]


@pytest.mark.spark
def test_a_relay_holds_no_key_and_finds_no_plate(stream):
    """The relay reads headers and ciphertext, and is denied when it asks."""
    assert stream["relay"]["holds_keys"] == 0
    assert stream["relay"]["finds_plate_in_log"] is False
    assert stream["denied"] == {"BO publishes": "NOT_PERMITTED", "Kent reads": "NOT_A_CLIENT"}


@pytest.mark.spark
def test_the_picture_is_what_was_printed(facts, script):
    """Cell by cell."""
    check_picture(script("pictures"), "numberplate", facts)
