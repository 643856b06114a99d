"""`maia demo numberplate`: the scenario through Spark, told by what the pipeline did."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

EVENTS = 4_000


@pytest.fixture(scope="module")
def stream():
    """Play the scenario once, in a process of its own, for machines."""
    program = "from maia.cli import main; main()"
    command = [sys.executable, "-c", program, "-q", "demo", "numberplate", "--events", str(EVENTS), "--json"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)["stream"]


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
