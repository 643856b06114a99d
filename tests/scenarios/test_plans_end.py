"""A right that ends while a delivery job is on its way stops nobody else, and delivers nothing after its end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "faults"))

from network import CCS_SUBSCRIPTIONS, ahead, build, delivered, publish_here, sightings

from maia.authority import Action, type_right
from maia.domain import Domain, delivery_job
from maia.domain.delivery_work import Group, Report, Work, run_groups
from maia.errors import PlanOverError
from maia.testing import ATTRIBUTES, TYPE_NAME, Command, grant


class Clock:
    """Tells the time, and by and by a later one: a machine on which work takes long."""

    def __init__(self, start: datetime, *, late: int, by: timedelta) -> None:
        self.start, self.late, self.by, self.asked = start, late, by, 0

    def __call__(self) -> datetime:
        """Tell it; from the ``late``-th time on, later."""
        self.asked += 1
        return self.start + (self.by if self.asked >= self.late else timedelta())


@pytest.mark.fault("F18")
def test_plans_that_end_on_the_way_are_made_again(tmp_path: Path) -> None:
    """Billing has another right, for an hour: planned before its end and run after it, both offices get their events.

    The plan leaned on the right that ended; the new one does not, and nothing is delivered twice.
    """
    network = build(tmp_path / "net")
    people, hour = network.people, timedelta(hours=1)
    now = datetime.now(UTC).replace(microsecond=0)
    right = type_right(people.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE], attributes=[ATTRIBUTES["location"]])
    domain = Domain.open(network.ccs)
    domain.home.certificates.add(grant(people.people["CCS"], people.people["BO"], right, valid=(now, now + hour / 2)))
    publish_here(network, "one", [sightings(["P1"])])
    job = delivery_job(domain, CCS_SUBSCRIPTIONS)
    job.clock = Clock(datetime.now(UTC), late=4, by=hour)
    job.run_here()
    assert [(row["numberplate"], row["location"]) for row in delivered(job, "billing")] == [("P1", None)]
    assert len(list(delivered(job, "statistics"))) == 1


def test_a_job_whose_plans_are_always_over_gives_up(tmp_path: Path) -> None:
    """With a greatest age of no time at all nothing is delivered and nothing is lost; with some, everything comes."""
    network = build(tmp_path / "net", skew=0)
    publish_here(network, "one", [sightings(["P1"])])
    file = network.ccs / "maia.toml"
    text = file.read_text("utf-8")
    file.write_text(text.replace("skew = 0", "skew = 0\nplan_age = 0"), "utf-8")
    with pytest.raises(PlanOverError, match="PLAN_OVER"):
        delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS).run_here()
    file.write_text(text, "utf-8")
    job = delivery_job(Domain.open(network.ccs), CCS_SUBSCRIPTIONS)
    job.run_here()
    assert len(list(delivered(job, "billing"))) == 1
    assert Command(network.ccs).do("audit", "--kind", "refuse")["rows"] == []


def test_what_was_written_in_time_and_is_handed_over_late_counts_for_nothing(tmp_path: Path) -> None:
    """The workers were in time, the record that makes it count comes after the end of the right: planned anew."""
    network = build(tmp_path / "net")
    people, hour = network.people, timedelta(hours=1)
    now = datetime.now(UTC).replace(microsecond=0)
    right = type_right(people.key("PITO"), TYPE_NAME, actions=[Action.SUBSCRIBE], attributes=[ATTRIBUTES["location"]])
    domain = Domain.open(network.ccs)
    domain.home.certificates.add(grant(people.people["CCS"], people.people["BO"], right, valid=(now, now + hour / 2)))
    publish_here(network, "one", [sightings(["P1"])])
    job = delivery_job(domain, CCS_SUBSCRIPTIONS)
    instants = [datetime.now(UTC)]
    job.clock = lambda: instants[-1]
    attempts: list[int] = []

    def slow(work: Work, groups: Sequence[Group]) -> list[Report]:
        reports = list(run_groups(work, groups))
        attempts.append(sum(len(report.files) for report in reports))
        instants.append(now + hour)
        return reports

    job.step(0, ahead(job), slow)
    assert attempts == [2, 2]
    assert [(row["numberplate"], row["location"]) for row in delivered(job, "billing")] == [("P1", None)]
    assert len(list(delivered(job, "statistics"))) == 1
