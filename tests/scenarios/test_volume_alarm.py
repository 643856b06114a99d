"""A subscriber that takes in everything it may see is pointed out by its volume."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "faults"))

from network import CCS_SUBSCRIPTIONS, build, delivered, publish_here, sightings

from maia.domain import Domain, delivery_job
from maia.errors import UsageError
from maia.home import Home
from maia.kernel import VolumeWatch
from maia.log import read_audit

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_subscription_that_takes_too_much_is_an_alarm_in_the_audit(tmp_path: Path) -> None:
    """Five sightings are more than three an hour: both offices are pointed out once, screening goes on."""
    network = build(tmp_path / "net")
    home = Home.open(network.ccs)
    (home.path / "maia.toml").write_text(replace(home.config, alarm=3).to_toml(), "utf-8")
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    for number in range(5):
        publish_here(network, f"p{number}", [sightings([f"P{number}"])])
        job.run_here()
    assert [row["location"] for row in delivered(job, "billing")] == [None] * 5
    rows = read_audit(home.audit_path)
    alarms = [(row.subject, row.code, row.events) for row in rows if row.kind == "alarm"]
    assert sorted(alarms) == [("billing", "VOLUME_HIGH", 4), ("statistics", "VOLUME_HIGH", 4)]


def test_the_period_slides_and_an_alarm_is_given_once_in_it() -> None:
    """What lies a period back no longer counts; a volume that stays high alarms anew after a period."""
    watch = VolumeWatch(events=10, period=HOUR)
    assert watch.observe("a", 10, at=NOON) is None
    assert watch.observe("b", 1, at=NOON) is None
    assert watch.observe("a", 1, at=NOON + HOUR - timedelta(seconds=1)) == 11
    assert watch.observe("a", 1, at=NOON + HOUR - timedelta(milliseconds=1)) is None
    assert watch.observe("a", 8, at=NOON + HOUR) is None
    assert watch.observe("a", 20, at=NOON + 3 * HOUR) == 20


def test_many_small_steps_are_never_counted_as_fewer() -> None:
    """The memory of a subscription is bounded, and what it forgets it counts for longer."""
    watch = VolumeWatch(events=9_999, period=HOUR)
    found = [watch.observe("a", 1, at=NOON + timedelta(milliseconds=number)) for number in range(10_000)]
    assert [number for number, taken in enumerate(found) if taken is not None] == [9_999]
    assert found[-1] == 10_000


def test_subscriptions_that_are_gone_are_forgotten() -> None:
    """Somebody who comes back under the name begins anew."""
    watch = VolumeWatch(events=1, period=HOUR)
    assert watch.observe("a", 1, at=NOON) is None
    watch.keep(frozenset({"b"}))
    assert watch.observe("a", 1, at=NOON) is None


@pytest.mark.parametrize("events, period", [(0, HOUR), (-1, HOUR), (1, timedelta())])
def test_a_volume_that_is_none_is_refused(events: int, period: timedelta) -> None:
    """A limit that could never or always be broken is a mistake."""
    with pytest.raises(UsageError):
        VolumeWatch(events=events, period=period)
