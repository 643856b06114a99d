"""Stamps: strictly increasing over kills and clocks set back; far ahead, they are refused and move nothing."""

from __future__ import annotations

import os
import random
import signal
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from network import CCS_SUBSCRIPTIONS, Network, delivered, publish_here, sightings

import maia.home.home as clocked
from maia.domain import Domain, delivery_job, read_parked
from maia.errors import UnavailableError
from maia.home import Home

TORTURE = bool(os.environ.get("MAIA_TORTURE"))


def reserve(home: Path, clock: datetime, report: int) -> None:
    """Take stamps without end and say each after it was reserved."""
    clocked.now = lambda: clock
    opened = Home.open(home)
    while True:
        os.write(report, b"%d\n" % opened.next_stamp())


@pytest.mark.threat("T45")
def test_stamps_increase_over_kills_and_a_clock_that_goes_back(network: Network) -> None:
    """Killed at any moment, with clocks up to twenty seconds apart: no stamp is given twice or out of order."""
    chosen = random.Random(45)
    start = datetime.now(UTC)
    seen: list[int] = []
    for _ in range(100 if TORTURE else 12):
        clock = start - timedelta(seconds=chosen.randrange(20))
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                reserve(network.ccs, clock, writer)
            finally:
                os._exit(1)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            lines = [pipe.readline() for _ in range(chosen.randrange(1, 6))]
            os.kill(pid, signal.SIGKILL)
            lines += pipe.readlines()
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        seen += [int(line) for line in lines if line.endswith("\n")]
    assert len(seen) > 20
    assert all(later > earlier for earlier, later in pairwise(seen))


@pytest.mark.threat("T45")
def test_processes_at_the_same_time_never_share_a_stamp(network: Network) -> None:
    """Four processes take stamps at once."""
    reader, writer = os.pipe()
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            try:
                opened = Home.open(network.ccs)
                for _ in range(25):
                    os.write(writer, b"%d\n" % opened.next_stamp())
            finally:
                os._exit(0)
        children.append(pid)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        stamps = [int(line) for line in pipe]
    for pid in children:
        os.waitpid(pid, 0)
    assert len(stamps) == len(set(stamps)) == 100


@pytest.mark.fault("F11")
@pytest.mark.threat("T41")
def test_stamp_ten_years_ahead_waits_and_moves_nothing(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bad clock: nothing more is stamped by it; what it stamped waits for its time and is not lost."""
    publish_here(network, "late", [sightings(["LATE"])])
    ahead = datetime.now(UTC) + timedelta(days=3650)
    with monkeypatch.context() as patched:
        patched.setattr(clocked, "now", lambda: ahead)
        with pytest.raises(UnavailableError, match="CLOCK_AHEAD"):
            publish_here(network, "ahead", [sightings(["AHEAD"])])
        (network.ccs / "pace").unlink()
        publish_here(network, "ahead", [sightings(["AHEAD"])], at=ahead)
    with pytest.raises(UnavailableError, match="CLOCK_BACK"):
        publish_here(network, "now", [sightings(["NOW"])])
    (network.ccs / "clock").unlink()  # as the message says
    with pytest.raises(UnavailableError, match="STAMPS_AHEAD"):
        publish_here(network, "now", [sightings(["NOW"])])
    # Late: the job runs an hour after the events came.
    domain = Domain.open(network.ccs)
    domain.clock = lambda: datetime.now(UTC) + timedelta(hours=1)
    job = delivery_job(domain, CCS_SUBSCRIPTIONS)
    job.run_here()
    assert [row["numberplate"] for row in delivered(job, "billing")] == ["LATE"]
    assert list(job.outbox.dead_letters()) == []
    assert [item.code for item in read_parked(network.ccs)] == ["STAMP_AHEAD"]


def test_two_stamps_in_one_millisecond_and_a_clock_set_back(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two publications in one millisecond get t and t+1; with the clock five seconds back stamps still increase."""
    clock = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    monkeypatch.setattr(clocked, "now", lambda: clock)
    home = Home.open(network.ccs)
    first, second = home.next_stamp(), home.next_stamp()
    assert (first, second) == (int(clock.timestamp() * 1000), int(clock.timestamp() * 1000) + 1)
    monkeypatch.setattr(clocked, "now", lambda: clock - timedelta(seconds=5))
    assert Home.open(network.ccs).next_stamp() > second
