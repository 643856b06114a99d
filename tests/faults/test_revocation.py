"""Revocation under load, cut links, crashes and clocks: nothing reaches a revoked party after the printed window."""

from __future__ import annotations

import importlib
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from network import ahead

from maia.authority import Rhythm
from maia.domain.delivery_work import Group, Report, Work
from maia.errors import UnavailableError
from maia.home import Home
from maia.kernel import MAX_LEAD, milliseconds, reserve_stamps
from maia.testing import StatementPublisher

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
TORTURE = bool(os.environ.get("MAIA_TORTURE"))
PER_WAY = 8
WORLDS = 210 if TORTURE else 8  # 48 trials each


@pytest.fixture(scope="module")
def trials() -> Iterator[ModuleType]:
    """Load the worlds that the benchmark uses too."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("revocation_trials")
    finally:
        sys.path.remove(str(FOLDER))


def check_horizon(trial: Any) -> None:
    """No event is delivered twice, nor stamped later than the revocation and the printed window."""
    assert trial.printed is not None, trial.name
    assert len(set(trial.events)) == len(trial.events), trial.name
    assert trial.measured <= trial.printed, (trial.name, trial.revoked, trial.measured, trial.printed)


@pytest.mark.slow
@pytest.mark.fault("F17")
@pytest.mark.parametrize("seed", range(WORLDS))
def test_nothing_is_delivered_after_the_printed_window(trials: ModuleType, tmp_path: Path, seed: int) -> None:
    """48 rights of six kinds, withdrawn at random instants under load; in every third world a link is cut as well."""
    cut = seed % 3 == 2
    world = trials.play(tmp_path / "net", seed=seed, per_way=PER_WAY, cut=cut)
    assert len(world.trials) == PER_WAY * len(trials.Way)
    for trial in world.trials:
        check_horizon(trial)
        if not cut:  # whoever is not revoked loses nothing
            served = [batch for batch in world.batches if batch < trial.revoked]
            due = {stamp for stamp in world.published if served and stamp <= milliseconds(served[-1])}
            assert due <= set(trial.stamps), trial.name
    at_once = [
        trial for trial in world.trials if trial.way in (trials.Way.ACTIVE, trials.Way.ROLE, trials.Way.ONE_TIME)
    ]
    if not cut:  # told at once: the next micro-batch knows
        assert {trial.measured for trial in at_once} == {timedelta(0)}


def small(trials: ModuleType, root: Path, *, seconds: int = 17, **rest: Any) -> Any:
    """Make a world with one subscriber of each kind, not yet run."""
    return trials.World(root, random.Random(1), 1, seconds, **rest)


def by_way(trials: ModuleType, world: Any) -> dict[Any, Any]:
    """Find the one trial of each kind."""
    return {trial.way: trial for trial in world.trials}


def at_end(trials: ModuleType, world: Any) -> None:
    """Let nobody be revoked before the world is over."""
    for trial in world.trials:
        trial.revoked = trials.START + timedelta(hours=2)


class Untouched:
    """A world in which nobody is revoked: what ends does so by silence alone."""

    def __new__(cls, trials: ModuleType, root: Path, **rest: Any) -> Any:
        """Make one, built but not run."""
        world = small(trials, root, **rest)
        world.build()
        at_end(trials, world)
        world.build = lambda: None
        return world


def watch(world: Any) -> dict[str, list[tuple[float, int]]]:
    """Note, after each micro-batch of a world that is not run yet, at which second it was and who has how much."""
    noted: dict[str, list[tuple[float, int]]] = {trial.name: [] for trial in world.trials}
    deliver = world._batch

    def batch() -> None:
        deliver()
        counts = world.job.outbox.count(noted)
        for name, steps in noted.items():
            steps.append(((world.now - world.began).total_seconds(), counts[name]))

    world.began, world._batch = world.now, batch
    return noted


def complete(world: Any, trial: Any) -> bool:
    """Tell whether a trial was delivered all that was published before the last micro-batch, in order, each once."""
    due = [stamp for stamp, rows in world.published.items() for _ in range(rows)]
    due = [stamp for stamp in due if stamp <= milliseconds(world.batches[-1])]
    return len(set(trial.events)) == len(trial.events) and trial.stamps == due


@pytest.mark.fault("F12")
def test_a_cut_revocation_topic_ends_what_depends_on_it_and_nothing_else(trials: ModuleType, tmp_path: Path) -> None:
    """The link is down for three list periods: dependents stop at the end of their list, the others go on.

    When it is up again, and nobody was revoked, those who waited get what they missed, in order and once.
    """
    down, up = 4.5, 4.5 + 3 * 6
    world = Untouched(trials, tmp_path / "net", seconds=32, cut=(down, up))
    noted = watch(world)
    world.run()
    ways, found = trials.Way, by_way(trials, world)
    for way in ways:
        assert complete(world, found[way]), way
    for way in (ways.TIMED_LIST, ways.REVALIDATION, ways.ACTIVE, ways.ROLE):
        window = (trials.BEATS if way in (ways.ACTIVE, ways.ROLE) else trials.LISTS).window.total_seconds()
        dark = {count for second, count in noted[found[way].name] if down + window < second < up}
        assert len(dark) == 1, (way, dark)
        assert dark != {0}


@pytest.mark.fault("F16")
def test_a_broker_that_starts_cold_and_cut_off_delivers_nothing_that_needs_a_list(
    trials: ModuleType, tmp_path: Path
) -> None:
    """It starts with empty caches and no link; what needs a list begins with the link, what needs none at once."""
    world = Untouched(trials, tmp_path / "net", seconds=14, cut=(0, 8))
    noted = watch(world)
    world.run()
    ways, found = trials.Way, by_way(trials, world)
    for way in ways:
        waits = way not in (ways.EXPIRY, ways.ONE_TIME)
        early = {count for second, count in noted[found[way].name] if second < 8}
        assert (early == {0}) is waits, way
        assert complete(world, found[way]), way


@pytest.mark.fault("F18")
@pytest.mark.parametrize("attempts", [1, 3])
def test_a_batch_in_flight_when_its_reader_is_revoked_delivers_less_after_the_crash(
    trials: ModuleType, tmp_path: Path, attempts: int
) -> None:
    """The attempts wrote files and died; the withdrawal comes over the log; only the last attempt counts."""
    world = Untouched(trials, tmp_path / "net")
    world.run()
    way = trials.Way.ACTIVE
    before = {name: len(list(rows(world, name))) for name in (item.name for item in world.wanted)}
    world.now += timedelta(seconds=0.1)
    world._lists()
    world._publish()

    def die(work: Work, groups: Sequence[Group]) -> list[Report]:
        written.extend(len(work.deliver(group).files) for group in groups)
        raise KeyboardInterrupt

    written: list[int] = []
    head = world.job.outbox.head()
    for _ in range(attempts):
        with pytest.raises(KeyboardInterrupt):
            world.job.step(head.batch + 1, ahead(world.job), die)
    assert written == [len(world.trials)] * attempts
    [smith] = [trial for trial in world.trials if trial.way is way]
    smith.revoked = world.now
    world._revoke(smith)
    world._batch()
    for item in world.wanted:
        events = [row["_event"] for row in rows(world, item.name)]
        assert len(set(events)) == len(events)
        grown = len(events) - before[item.name]
        assert (grown == 0) is (item.name == smith.name), item.name


def rows(world: Any, name: str) -> Iterator[dict[str, Any]]:
    """Open an outbox."""
    for batch in world.job.outbox.read(name, world.job.make_secret()):
        yield from batch.to_pylist()


def after(seconds: float, offset: timedelta) -> Callable[[ModuleType], Callable[[datetime], datetime]]:
    """Let a clock jump at some second."""
    return lambda trials: lambda now: now + offset if now > trials.START + timedelta(seconds=seconds) else now


SECOND = timedelta(seconds=1)
CLOCKS = {
    "NTP steps it 4 s ahead": after(5, 4 * SECOND),
    "NTP steps it 4 s back": after(5, -4 * SECOND),
    "it drifts by 500 ppm for an hour": lambda trials: lambda now: now + 3600 * SECOND * 500e-6,
    "a leap second is repeated": after(4, -SECOND),
}


@pytest.mark.slow
@pytest.mark.fault("F19")
@pytest.mark.threat("T61")
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
def test_the_horizon_holds_with_the_declared_skew(trials: ModuleType, tmp_path: Path, clock: Any) -> None:
    """The broker's clock differs from the issuers' and publishers' by up to the declared 5 s."""
    world = trials.World(tmp_path / "net", random.Random(7), 3, 17, skew=5 * SECOND, broker_clock=clock(trials))
    world.run()
    for trial in world.trials:
        check_horizon(trial)
    assert any(trial.measured > timedelta(0) for trial in world.trials)


@pytest.mark.fault("F19")
@pytest.mark.threat("T61")
@pytest.mark.parametrize("back", [31, 3600])
def test_a_clock_that_jumps_back_stops_the_job_and_revives_nothing(
    trials: ModuleType, tmp_path: Path, back: int
) -> None:
    """Beyond the window nothing is planned; when the clock is right again the job goes on and nothing is lost."""
    world = Untouched(trials, tmp_path / "net", seconds=5)
    world.run()
    right = world.broker_clock
    world.job = replace(world.job, clock=lambda: world.now - back * SECOND)
    world._publish()
    head = world.job.outbox.head()
    with pytest.raises(UnavailableError, match="CLOCK_BACK"):
        world.job.run_here()
    assert world.job.outbox.head() == head
    world.job = replace(world.job, clock=lambda: right(world.now))
    world.job.run_here()
    last = max(world.published)
    assert last in [row["_stamp"] for row in rows(world, by_way(trials, world)[trials.Way.EXPIRY].name)]


@pytest.mark.fault("F19")
@pytest.mark.threat("T61")
def test_a_clock_that_jumps_an_hour_ahead_denies_what_needs_a_list(trials: ModuleType, tmp_path: Path) -> None:
    """Every list is over by then; no right that hangs on one is stretched."""
    world = Untouched(trials, tmp_path / "net", seconds=5)
    world.run()
    counts = {item.name: len(list(rows(world, item.name))) for item in world.wanted}
    world._publish()
    world.job = replace(world.job, clock=lambda: world.now + 3600 * SECOND)
    world.job.run_here()
    assert {item.name: len(list(rows(world, item.name))) for item in world.wanted} == counts


@pytest.mark.fault("F19")
def test_stamps_stay_increasing_whatever_the_clock_does() -> None:
    """Jumps of an hour, drift, a leap second: the next stamp is later than the last, or there is none."""
    rng, high, clock = random.Random(3), -1, 10**12
    for _ in range(2000):
        clock += rng.choice([0, 1, 7, -1000, 3_600_000, -3_600_000, rng.randrange(2000)])
        if high + 1 - clock > MAX_LEAD:
            with pytest.raises(UnavailableError, match="STAMPS_AHEAD"):
                reserve_stamps(high, now=clock, count=1)
            continue
        made = reserve_stamps(high, now=clock, count=rng.randrange(1, 4))
        assert made.first > high
        high = made.end - 1


@pytest.mark.fault("F12")
def test_a_publisher_that_was_silent_goes_on_with_a_gap_and_no_overlap(trials: ModuleType, tmp_path: Path) -> None:
    """The issuer's own process was down for three periods; its first list afterwards counts at once."""
    world = Untouched(trials, tmp_path / "net", seconds=4)
    world.run()
    active = by_way(trials, world)[trials.Way.ACTIVE]
    world.now += 9 * SECOND
    world._publish()
    world._batch()
    before = len(list(rows(world, active.name)))
    rhythm = Rhythm(period=3 * SECOND, lead=SECOND)
    issuer = StatementPublisher(notices=world.remote, signer=world.signers[trials.Way.ACTIVE], rhythm=rhythm)
    assert issuer.publish({}, at=world.now) is not None
    world._link()
    world._publish()
    world._batch()
    assert len(list(rows(world, active.name))) > before
    assert Home.open(world.met.path).statements.load().raw_statements()
