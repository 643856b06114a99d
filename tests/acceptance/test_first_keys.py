"""The first keys of a type, made by one of several processes of a home; the others use them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from processes import environment

import maia
from maia.errors import SealError
from maia.testing import Command, publish_here, publish_plan, read_here

PUBLISH = """
import sys
from datetime import UTC, datetime
import maia
from maia.testing import publish_here, publish_plan

home, name = maia.open(sys.argv[1]).home, sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
plan = publish_plan(home, "Sighting", as_="camera", publication=name, at=datetime.now(UTC))
print("planned", flush=True)
sys.stdin.readline()
rows = [{"plate": name, "place": "Victoria"}]
print(publish_here(home, "Sighting", rows, as_="camera", at=datetime.now(UTC), plan=plan, publication=name), flush=True)
"""


def make_home(path: Path, *, managed: bool) -> Command:
    """Make a home whose type is sealed by attribute and has no keys yet; its own manager gives them, or nobody does."""
    home = Command(path)
    home.do("domain", "init", str(home.home), *(["--key"] if managed else []))
    home.keys("camera", "smith", *([] if managed else ["pito"]))
    owner = "domain" if managed else "pito"
    if managed:
        home.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
    attributes = ("--attribute", "plate:string:1", "--attribute", "place:string:2")
    home.do("type", "define", f"{owner}/Sighting@1", *attributes, "--encryption", "attribute")
    for who, action in (("broker", "publish,subscribe"), ("camera", "publish"), ("smith", "subscribe")):
        home.grant("--from", owner, "--to", who, "--type", f"{owner}/Sighting", "--action", action)
    return home


@pytest.mark.parametrize("managed", [True, False], ids=["managed by the home", "without a manager"])
def test_two_processes_publish_the_first_events_of_a_type_under_one_key(tmp_path: Path, managed: bool) -> None:
    """Both plan at once; one makes the keys, the other uses them, and a reader opens what both sealed."""
    home = make_home(tmp_path / "met", managed=managed)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PUBLISH, str(home.home), name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )
        for name in ("first", "second")
    ]  # fmt: skip
    try:
        for one in running:
            assert _line(one) == "ready"
        for one in running:
            _go(one)
        for one in running:
            assert _line(one) == "planned"
        for one in running:  # one after the other: the stamps of a broker increase
            _go(one)
            assert _line(one) == "1"
    finally:
        for one in running:
            one.kill()
            one.communicate()
    opened = maia.open(home.home).home
    ring = opened.keyring()
    assert {len(ring.epochs(group)) for group in ring.groups()} == {1}
    assert sorted(row["plate"] for row in read_here(opened, "Sighting", as_="smith")) == ["first", "second"]


def test_whoever_planned_a_moment_before_the_first_keys_seals_with_them(tmp_path: Path) -> None:
    """The keys begin a moment after an instant at which another process began to publish: that uses them too."""
    opened = maia.open(make_home(tmp_path / "met", managed=False).home).home
    now = datetime.now(UTC)
    plan = publish_plan(opened, "Sighting", as_="camera", publication="winner", at=now)
    row = {"plate": "AE05 XYZ", "place": "Victoria"}
    before = now - timedelta(milliseconds=20)
    assert publish_here(opened, "Sighting", [row], as_="camera", at=before) == 1
    later = now + timedelta(seconds=1)
    assert publish_here(opened, "Sighting", [row], as_="camera", at=later, plan=plan, publication="winner") == 1
    assert len(read_here(opened, "Sighting", as_="smith")) == 2
    with pytest.raises(SealError, match="NO_KEY"):
        publish_here(opened, "Sighting", [row], as_="camera", at=now - timedelta(seconds=20))


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    found = process.stdout.readline().strip()
    if not found:
        assert process.stderr is not None
        pytest.fail(process.stderr.read()[-2000:])
    return found
