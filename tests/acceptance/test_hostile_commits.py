"""Commits that cost others more than their author: what a member signs is bounded for whoever copies and serves it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from link_world import LinkWorld, log_of, make_world, serving_log

import maia
from maia.clients import AddressPolicy, LogClient
from maia.principals import KeySigner
from maia.testing import TYPE_NAME, Command, LaneOf

LOOPBACK = AddressPolicy(loopback=True)
MAX_SEGMENTS = 8192
"""As docs/reference/log.md says."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> LinkWorld:
    """Build the domains; there is one event."""
    return make_world(tmp_path_factory.mktemp("hostile"), events=1)


@pytest.fixture
def kent(world: LinkWorld, tmp_path: Path) -> LaneOf:
    """Let a key of Kent's that has no right to the type write a lane of it; its log lies in a directory."""
    topic = world.homes.event_type.type_id.hex()
    return LaneOf(tmp_path / "log", topic, KeySigner.generate(), tmp_path / "own")


def copies(world: LinkWorld, lane: LaneOf) -> tuple[int, int]:
    """Let the publisher copy Kent's log; tell how many records came and how many segments lie there then."""
    ccs = Command(world.ccs)
    ccs.do("link", "add", "kent", str(lane.folder.parent.parent))
    done = ccs.do("link", "pull", "kent")
    ccs.do("link", "remove", "kent")
    copied = log_of(world.ccs) / lane.folder.relative_to(lane.folder.parent.parent)
    return done["records"], len(list(copied.glob("date=*/*")))


@pytest.mark.requirement("8.08")
def test_a_commit_names_each_segment_once_and_so_many(world: LinkWorld, kent: LaneOf) -> None:
    """One segment of a few octets named thirty thousand times would be opened as often, by whoever copies it."""
    times = [datetime.now(UTC) - timedelta(seconds=left) for left in (30, 20, 10)]
    twice, good, most = (kent.segment(name, at=at) for name, at in zip(("twice", "good", "most"), times, strict=True))
    kent.say("one twice", twice, twice, at=times[0])
    kent.say("as it should be", good, at=times[1])
    # All of them lie there, so that nothing else is wrong with the commit.
    folder, whole = kent.folder.parent.parent, most.path.rpartition("/")[0]
    many = [replace(most, path=f"{whole}/{number:012d}.parquet") for number in range(MAX_SEGMENTS)]
    for file in many:
        (folder / file.path).hardlink_to(folder / most.path)
    kent.say("too many", most, *many, at=times[2])
    assert copies(world, kent) == (3, 1)  # the lane goes on, and of what is no commit nothing was taken


@pytest.mark.requirement("15.10")
def test_nothing_is_opened_for_a_question_about_an_origin_without_a_right(
    world: LinkWorld, kent: LaneOf, tmp_path: Path
) -> None:
    """Who asks and who signed what has to be opened may be one: what nobody may publish is looked into for nobody."""
    at = datetime.now(UTC)
    kent.say("nothing of worth", kent.segment("one", at=at), at=at)
    copies(world, kent)
    met, out = world.reader(tmp_path), tmp_path / "filter"
    met.do("filter", "seal", "numberplate = 'nobody'", "--type", TYPE_NAME, "--out", str(out))
    record = f"{0:012d}.record"
    own = f"{kent.folder.parent.name}/origin={world.broker.public_key.key_id.hex()}/{record}"
    theirs = f"{kent.folder.parent.name}/{kent.folder.name}/{record}"
    with serving_log(world.ccs) as service:
        if not (met.home / "keys" / "CB.pub").exists():
            met.do("key", "import", "CB", str(world.ccs / "keys" / "CB.pub"))
        met.do("link", "add", "ccs", service.url, "--key", "CB")
        met.do("link", "pull", "ccs")
        signer = maia.open(met.home).home.broker
        with LogClient(service.url, signer=signer, server_key=world.broker.public_key, policy=LOOPBACK) as client:
            found = [client.unwanted(name, [out.read_bytes()]) for name in (own, theirs)]
    assert [len(segments) for segments, _ in found] == [1, 0]
    assert all(last >= 0 for _, last in found)  # it was looked at, and who copies goes on behind it
