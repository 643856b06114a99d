"""`maia log compact|expire|sweep` is killed at any durable step, while others read: nothing is lost, doubled or back.

One process runs the command and is killed with -9, another one reads the same log as a client. It reads at a home of
its own, since a home's files have locks, and a command that is stopped on its way would keep those of its home.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from killed_commands import Worker

import maia
from maia.testing import TYPE_NAME, Command, numberplate_homes, publish_here

TORTURE = bool(os.environ.get("MAIA_TORTURE"))
pytestmark = pytest.mark.slow
OLD, NEW = ([f"{kind} {number}{letter}" for number in range(3) for letter in "AB"] for kind in ("OLD", "NEW"))
BOTH = OLD + NEW
COMPACT = ("log", "compact")
EXPIRE = ("log", "expire", "--older-than", "30m", "--yes")
SWEEP = ("log", "sweep", "--older-than", "1h", "--yes")
ALLOWED = {COMPACT: (BOTH,), EXPIRE: (BOTH, NEW), SWEEP: (BOTH,)}
"""What a reader may see while a command is under way, and in which order, and in the end the last of it."""


@pytest.fixture(scope="module")
def upkeep() -> Iterator[Worker]:
    """Give the process whose commands are killed."""
    started = Worker.start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def reader() -> Iterator[Worker]:
    """Give the process that reads."""
    started = Worker.start()
    yield started
    started.stop()


@dataclass(frozen=True, slots=True)
class World:
    """A home with a log in which half of the events are old, and those who work on it and read it."""

    root: Path
    upkeep: Worker
    reader: Worker

    @property
    def home(self) -> Path:
        """The home of the lane's owner."""
        return self.root / "ccs"

    def shown(self) -> list[str] | str:
        """Tell what the other process sees as the billing office."""
        return self.reader.read(self.root / "second", TYPE_NAME, as_="BO", column="numberplate")

    def files(self) -> set[Path]:
        """List the files that hold events."""
        return {path for path in (self.root / "log").glob("type=*/origin=*/date=*/*") if path.is_file()}

    def grow_old(self) -> None:
        """Let two hours pass for what lies in the log: what somebody may still be writing is not swept."""
        long_ago = (datetime.now(UTC) - timedelta(hours=2)).timestamp()
        for path in self.files():
            os.utime(path, (long_ago, long_ago))


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory, upkeep: Worker) -> dict[tuple[str, ...], Path]:
    """Make homes to copy: the one to sweep holds what a killed compaction left."""
    root = tmp_path_factory.mktemp("upkeep")
    homes = numberplate_homes(root / "plain", since=timedelta(minutes=50))
    home = maia.open(homes.ccs).home
    for plates, ago in ((OLD, timedelta(minutes=45)), (NEW, timedelta(minutes=5))):
        for number in range(0, len(plates), 2):
            at = datetime.now(UTC) - ago + timedelta(seconds=number)
            rows = [{"numberplate": plate, "timestamp": at, "location": "Victoria"} for plate in plates[number:][:2]]
            publish_here(home, TYPE_NAME, rows, as_="CCTV", at=at)
    shutil.copytree(homes.ccs, root / "plain" / "second", ignore=shutil.ignore_patterns("lanes"))
    left = World(root / "left", upkeep, upkeep)
    steps = upkeep.run(copy(root / "plain", left.root) / "ccs", *COMPACT)["steps"]
    for kill in range(steps, 0, -1):
        shutil.rmtree(left.root)
        upkeep.run(copy(root / "plain", left.root) / "ccs", *COMPACT, kill=kill)
        if len(left.files()) > len(BOTH) // 2:  # the new file counts, and every old one is still there
            break
    left.grow_old()
    return {COMPACT: root / "plain", EXPIRE: root / "plain", SWEEP: left.root}


def copy(template: Path, target: Path) -> Path:
    """Start from the same homes each time."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(template, target))


def check_whole(world: World, words: tuple[str, ...]) -> None:
    """After the command ran to its end: all that should be there is read, no file is left over, and life goes on."""
    assert world.shown() == ALLOWED[words][-1]
    world.grow_old()
    assert world.upkeep.run(world.home, *SWEEP)["ended"] == 0
    assert world.shown() == ALLOWED[words][-1]
    assert len(world.files()) == (3 if words is EXPIRE else 1)
    assert world.upkeep.run(world.home, *SWEEP)["said"]["files"] == []
    assert not [item for item in Command(world.home).do("doctor")["findings"] if item["status"] == "problem"]
    at = datetime.now(UTC)
    row = {"numberplate": "LAST", "timestamp": at, "location": "Victoria"}
    assert publish_here(maia.open(world.home).home, TYPE_NAME, [row], as_="CCTV", at=at) == 1
    assert world.shown() == [*ALLOWED[words][-1], "LAST"]


@pytest.mark.fault("F01")
@pytest.mark.parametrize("words", ALLOWED, ids=lambda words: words[1])
def test_whoever_reads_between_two_steps_sees_all_that_has_not_expired(
    templates: dict[tuple[str, ...], Path], upkeep: Worker, reader: Worker, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Before each step another process reads: every event once, the old ones all or none, and never again."""
    world = World(copy(templates[words], tmp_path / "net"), upkeep, reader)
    seen = [world.shown()]
    ran = upkeep.run(world.home, *words, look=lambda: seen.append(world.shown()))
    assert ran["ended"] == 0
    assert len(seen) == ran["steps"] + 1 > 8
    check_whole(world, words)
    places = [ALLOWED[words].index(found) if found in ALLOWED[words] else found for found in seen]
    assert places == sorted(places)
    assert places[0] == 0


@pytest.mark.fault("F01")
@pytest.mark.parametrize("words", ALLOWED, ids=lambda words: words[1])
def test_killed_at_durable_steps_nothing_is_lost_or_doubled(
    templates: dict[tuple[str, ...], Path], upkeep: Worker, reader: Worker, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The loop of SQLite: die at step 1, 2, 3 …, another process reads, the command runs again, all is well."""
    steps = upkeep.run(copy(templates[words], tmp_path / "net") / "ccs", *words)["steps"]
    points = [(step, after) for step in range(1, steps + 1) for after in (False, True)]
    for step, after in points if TORTURE else points[:: max(1, len(points) // 6)]:
        world = World(copy(templates[words], tmp_path / "net"), upkeep, reader)
        assert upkeep.run(world.home, *words, kill=step, after=after)["ended"] == -9, (step, after)
        found = world.shown()
        assert found in ALLOWED[words], (step, after)
        assert upkeep.run(world.home, *words)["ended"] == 0, (step, after)
        check_whole(world, words)


@pytest.mark.fault("F05")
@pytest.mark.parametrize("words", ALLOWED, ids=lambda words: words[1])
def test_killed_again_while_it_recovers_nothing_is_lost_or_doubled(
    templates: dict[tuple[str, ...], Path], upkeep: Worker, reader: Worker, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Pairs of steps: killed at the n-th of the command and at the m-th of its repetition, then left alone."""
    steps = upkeep.run(copy(templates[words], tmp_path / "net") / "ccs", *words)["steps"]
    chosen, again = random.Random(11), 0
    last = steps if TORTURE else steps // 2  # so that there is something left to be killed at
    every = [(n, m) for n in range(1, last + 1) for m in range(1, steps // 4 + 1)]
    pairs = chosen.sample(every, min(len(every), 700 if TORTURE else 3))
    for n, m in pairs:
        world = World(copy(templates[words], tmp_path / "net"), upkeep, reader)
        assert upkeep.run(world.home, *words, kill=n, after=chosen.random() < 0.5)["ended"] == -9, (n, m)
        # What is left to do may have fewer than m steps; then the repetition ends unhurt.
        again += upkeep.run(world.home, *words, kill=m, after=chosen.random() < 0.5)["ended"] == -9
        assert world.shown() in ALLOWED[words], (n, m)
        assert upkeep.run(world.home, *words)["ended"] == 0, (n, m)
        check_whole(world, words)
    assert again
