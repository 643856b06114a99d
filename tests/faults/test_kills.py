"""Killed at any durable step, and again while recovering: every acknowledged event arrives once, and nothing twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import killing
import pytest
from killing import Worker
from network import CCS_SUBSCRIPTIONS, MET_SUBSCRIPTIONS, build, delivered
from progress import TORTURE, say

from maia.domain import Domain, delivery_job
from maia.encryption import parse_parcel

pytestmark = pytest.mark.slow
PUBLICATIONS = [(f"publication-{number}", [f"PLATE {number}{letter}" for letter in "ABC"]) for number in range(3)]
PUBLICATIONS.append(("publication-x", ["AE05 XYZ"]))
PLATES = Counter(plate for _, plates in PUBLICATIONS for plate in plates)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """Give a process that works and dies on command."""
    started = Worker.start()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give homes to copy."""
    root = tmp_path_factory.mktemp("template") / "net"
    build(root)
    return root


def copy(template: Path, target: Path) -> Path:
    """Start from the same homes each time."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(template, target)
    return target


def check_exactly_once(root: Path) -> None:
    """Compare what subscriptions got with the ledger."""
    ccs, met = (
        delivery_job(Domain.open(root / "ccs"), CCS_SUBSCRIPTIONS),
        delivery_job(Domain.open(root / "met"), MET_SUBSCRIPTIONS),
    )
    assert Counter(row["numberplate"] for row in delivered(ccs, "billing")) == PLATES
    statistics = list(delivered(ccs, "statistics"))
    assert len(statistics) == len({row["_event"] for row in statistics}) == sum(PLATES.values())
    assert {row["numberplate"] for row in statistics} == {None}
    assert [row["numberplate"] for row in delivered(met, "detective")] == ["AE05 XYZ"]
    assert not list(ccs.outbox.dead_letters())
    check_parcels(root)


def check_parcels(root: Path) -> None:
    """No parcel id twice and stamps unique, over committed files and those that killed tasks left."""
    import pyarrow.parquet as pq

    headers = []
    for path in (root / "log").glob("type=*/origin=*/date=*/*.parquet"):
        try:
            table = pq.read_table(path)
        except (OSError, ValueError):
            continue  # cut off by a kill: never committed, and the outbox check above read all that were
        headers += [parse_parcel(parcel).header for parcel in table.column("parcel").to_pylist()]
    assert headers
    assert len({header.parcel_id for header in headers}) == len(headers)
    assert len({(header.origin, header.stamp) for header in headers}) == len(headers)


def kill_points(steps: int) -> list[tuple[int, bool]]:
    """All steps, before and after; or a few of them, spread."""
    points = [(step, after) for step in range(1, steps + 1) for after in (False, True)]
    return points if TORTURE else points[:: max(1, len(points) // 16)]


@pytest.mark.fault("F01")
@pytest.mark.fault("F02")
@pytest.mark.threat("T44")
def test_kill_at_durable_steps_loses_and_repeats_nothing(worker: Worker, template: Path, tmp_path: Path) -> None:
    """The loop of SQLite: die at step 1, 2, 3 … of a run, start again, compare with the ledger."""
    unhurt = worker.run(copy(template, tmp_path / "net"), PUBLICATIONS)
    assert unhurt["ended"] == 0
    check_exactly_once(tmp_path / "net")
    points = kill_points(unhurt["steps"])
    assert len(points) >= 16
    for number, (step, after) in enumerate(points):
        say("kills", number, len(points))
        root = copy(template, tmp_path / "net")
        assert worker.run(root, PUBLICATIONS, kill=step, after=after)["ended"] == -9, (step, after)
        assert worker.run(root, PUBLICATIONS)["ended"] == 0, (step, after)
        check_exactly_once(root)


@pytest.mark.fault("F05")
def test_second_kill_during_recovery_loses_and_repeats_nothing(worker: Worker, template: Path, tmp_path: Path) -> None:
    """Pairs (n, m) of steps: killed at the n-th of the work and again at the m-th of the recovery, then left alone."""
    steps = worker.run(copy(template, tmp_path / "net"), PUBLICATIONS)["steps"]
    chosen = random.Random(5)
    every = [(n, m) for n in range(1, steps + 1) for m in range(1, steps + 1)]
    pairs = chosen.sample(every, min(len(every), 2000 if TORTURE else 6))
    again = 0
    for number, (n, m) in enumerate(pairs):
        root = copy(template, tmp_path / "net")
        assert worker.run(root, PUBLICATIONS, kill=n, after=chosen.random() < 0.5)["ended"] == -9, (n, m)
        # What is left to do may have fewer than m steps; then the recovery ends unhurt.
        again += worker.run(root, PUBLICATIONS, kill=m, after=chosen.random() < 0.5)["ended"] == -9
        assert worker.run(root, PUBLICATIONS)["ended"] == 0, (n, m)
        check_exactly_once(root)
        say("pairs of kills", number + 1, len(pairs))
    assert again >= len(pairs) // 4


@pytest.mark.fault("F02")
def test_acknowledged_publication_survives_any_later_kill(worker: Worker, template: Path, tmp_path: Path) -> None:
    """What was acknowledged is in the log although nothing publishes it again; no subscriber was there yet."""
    steps = worker.run(copy(template, tmp_path / "net"), PUBLICATIONS)["steps"]
    for step in range(1, steps + 1, 1 if TORTURE else 12):
        root = copy(template, tmp_path / "net")
        known = worker.run(root, PUBLICATIONS, kill=step)["acknowledged"]
        job = delivery_job(Domain.open(root / "ccs"), CCS_SUBSCRIPTIONS)
        job.run_here()
        got = Counter(row["numberplate"] for row in delivered(job, "billing"))
        acknowledged = Counter(plate for name, plates in PUBLICATIONS if name in known for plate in plates)
        assert got >= acknowledged, step
        assert max(got.values(), default=1) == 1, step


REFUSING = {
    "every sync fails from the fifth on": ["-e", "trace=fsync", "-e", "inject=fsync:error=EIO:when=5+"],
    "one sync fails": ["-e", "trace=fsync", "-e", "inject=fsync:error=EIO:when=9"],
    "the disk is full when a name is made": [
        "-e", "trace=link,linkat", "-e", "inject=link,linkat:error=ENOSPC:when=2+",
    ],
    "the disk is read-only when a file takes its place": [
        "-e", "trace=rename,renameat,renameat2", "-e", "inject=rename,renameat,renameat2:error=EROFS:when=2+",
    ],
}  # fmt: skip


UNAVAILABLE = ("=FILE_UNAVAILABLE", "=AUDIT_UNAVAILABLE")
"""How it is said: the audit hears of an operation before anything of it is written."""


def work_once(root: Path, *before: str, **environment: str) -> tuple[int, list[str]]:
    """Do the work in a process of its own; return how it ended and what it said."""
    command = [*before, sys.executable, killing.__file__, str(root), json.dumps(PUBLICATIONS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    return done.returncode, done.stdout.split()


@pytest.mark.fault("F06")
@pytest.mark.parametrize("case", REFUSING)
def test_system_that_refuses_stops_the_work_by_name_and_loses_nothing(
    template: Path, tmp_path: Path, require_tool: Callable[[str], str], case: str
) -> None:
    """An error of the disk is said by its code; when the disk is well again the work goes on, exactly once."""
    root = copy(template, tmp_path / "net")
    ended, said = work_once(root, require_tool("strace"), "-f", "-qq", "-o", os.devnull, *REFUSING[case])
    assert ended == 3
    assert said[-1] in UNAVAILABLE
    assert work_once(root)[0] == 0
    check_exactly_once(root)


@pytest.mark.fault("F06")
def test_file_that_cannot_grow_stops_the_work_by_name_and_loses_nothing(template: Path, tmp_path: Path) -> None:
    """A short write, as of a full disk, is never taken for a whole file."""
    for size in (300, 1000, 1500, 2000, 2500):
        root = copy(template, tmp_path / "net")
        ended, said = work_once(root, KILLING_FILE_SIZE=str(size))
        assert ended == 3, size
        assert said[-1] in UNAVAILABLE, size
        assert work_once(root)[0] == 0
        check_exactly_once(root)
