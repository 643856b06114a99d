"""The detective's court order on a live stream, from appointment to revocation, and three ways to lose it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.authority import exposure_window
from maia.domain import DeliveryJob, Domain, Wanted, delivery_job
from maia.errors import DeniedError
from maia.kernel import milliseconds
from maia.testing import DETECTIVE_POLICY, TYPE_NAME, DetectiveWorld, Loss, detective_world

MAY = datetime(2008, 5, 1, 9, tzinfo=UTC)
ORDER_ENDS = datetime(2008, 6, 30, 23, 59, 59, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CAR, OTHER = "AE05 XYZ", "BX51 ABC"


@dataclass
class Stream:
    """The police's delivery job beside the world, with a clock that the test moves."""

    world: DetectiveWorld
    now: datetime

    def __post_init__(self) -> None:
        """Subscribe for Smith."""
        self.wanted = (Wanted(name="smith", as_="Smith", type=TYPE_NAME),)
        job = delivery_job(Domain.open(self.world.met.path), self.wanted)
        self.job: DeliveryJob = replace(job, clock=lambda: self.now)

    def pass_seconds(self, seconds: int) -> None:
        """Let time pass: each second a list if it is due, two sightings, and a micro-batch."""
        for _ in range(seconds):
            self.now += SECOND
            self.world.service.beat(at=self.now)
            self.world.sight([CAR, OTHER], at=self.now)
            self.job.run_here()

    def rows(self) -> list[dict[str, object]]:
        """Open Smith's outbox."""
        found = self.job.outbox.read("smith", self.job.make_secret())
        return [row for batch in found for row in batch.to_pylist()]

    def seen(self) -> list[int]:
        """List the seconds, counted from the beginning, whose sightings Smith got."""
        start = milliseconds(MAY)
        return [(row["_stamp"] - start) // 1000 for row in self.rows()]


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """Give the world in May 2008, with nobody assigned to the case."""
    return Stream(detective_world(tmp_path, now=MAY), MAY)


def begin(stream: Stream) -> None:
    """Appoint, assign and activate."""
    stream.world.appoint(Loss, at=stream.now, order_until=ORDER_ENDS)
    stream.world.activate(at=stream.now)


@pytest.mark.parametrize("missing", list(Loss))
def test_without_one_of_its_conditions_the_role_is_refused(stream: Stream, missing: Loss) -> None:
    """Order, status and assignment: any two are not enough, and Smith sees nothing."""
    stream.world.appoint(set(Loss) - {missing}, at=stream.now, order_until=ORDER_ENDS)
    with pytest.raises(DeniedError):
        stream.world.activate(at=stream.now)
    stream.pass_seconds(2)
    assert stream.rows() == []


def test_the_role_gives_the_capability_of_the_thesis_and_it_ends_with_the_order(stream: Stream) -> None:
    """The role becomes Cap10: same issuer, subject and right; its last instant is the order's, 2008-06-30."""
    begin(stream)
    made, cap10 = stream.world.certificate, stream.world.network.certificates["Cap10"]
    for part in ("issuer", "subject", "delegate", "tag"):
        assert getattr(made.body, part) == getattr(cap10.body, part), part
    assert made.body.period.not_after == ORDER_ENDS
    stream.pass_seconds(2)
    assert [(row["numberplate"], row["location"]) for row in stream.rows()] == [(CAR, "Victoria")] * 2


def test_after_the_end_of_the_order_the_stream_is_closed(stream: Stream) -> None:
    """On the last second of June 30 he sees his car; a second later he does not, and the role has fallen."""
    begin(stream)
    stream.now = ORDER_ENDS - 2 * SECOND
    stream.pass_seconds(4)
    last = (ORDER_ENDS - MAY) // SECOND
    assert stream.seen() == [last - 1, last]
    stream.world.service.refresh(at=stream.now)
    assert stream.world.service.roles(at=stream.now) == ()
    with pytest.raises(DeniedError):
        stream.world.activate(at=stream.now)


@pytest.mark.parametrize("loss", list(Loss))
def test_each_of_three_losses_ends_delivery_and_a_new_start_gives_a_new_certificate(stream: Stream, loss: Loss) -> None:
    """Long before the certificate's own end; what was delivered stays; the old certificate stays dead."""
    begin(stream)
    first = stream.world.certificate
    stream.pass_seconds(3)
    revocation = stream.world.lose(loss, at=stream.now)
    assert revocation.roles == (f"smith: npTracker('{CAR}')",)
    assert first.certificate_id in {item.certificate_id for item in revocation.certificates}
    window = stream.world.exposure(revocation).window
    stream.pass_seconds(8)
    assert stream.seen() == [1, 2, 3]
    assert timedelta(0) < window <= stream.world.service.settings.rhythm.window
    with pytest.raises(DeniedError):
        stream.world.activate(at=stream.now)
    stream.world.appoint([loss], at=stream.now, order_until=ORDER_ENDS)
    stream.pass_seconds(1)
    assert stream.seen() == [1, 2, 3]  # a role that fell stays down until it is activated anew
    second = stream.world.activate(at=stream.now)
    assert second.certificate_id != first.certificate_id
    stream.pass_seconds(2)
    assert stream.seen() == [1, 2, 3, 13, 14]


@pytest.mark.parametrize("loss", list(Loss))
def test_a_withheld_withdrawal_ends_access_with_the_list(stream: Stream, loss: Loss) -> None:
    """The police's lists do not reach a broker elsewhere any more: access is over when the last list is."""
    begin(stream)
    stream.pass_seconds(3)
    held = stream.world.met.statements.load()
    printed = exposure_window(stream.world.certificate, at=stream.now, statements=held).window
    # a station beside the headquarters: it has the broker, and neither the police's key nor their register
    station = stream.world.met.path.with_name("station")
    away = shutil.ignore_patterns("Met.key", "series", "store.db*", "lanes")
    shutil.copytree(stream.world.met.path, station, ignore=away)
    stream.job = replace(delivery_job(Domain.open(station), stream.wanted), clock=lambda: stream.now)
    stream.job.run_here()
    assert stream.seen() == [1, 2, 3]
    revoked, waits = stream.now, set[str]()
    stream.world.lose(loss, at=stream.now)
    shutil.rmtree(stream.world.met.log_path / "_lanes")  # nothing gets through
    for _ in range(12):
        stream.now += SECOND
        stream.world.sight([CAR], at=stream.now)
        stream.job.run_here()
        waits |= {code for item in stream.job.outbox.head().waiting for code in item.subscriptions.values()}
    assert waits == {"NO_STATEMENT"}
    last = max(stream.seen())
    assert MAY + last * SECOND < revoked + printed
    assert last >= 3


def test_the_cascade_goes_from_the_assignment_to_the_stream(stream: Stream) -> None:
    """The assignment is deleted: role gone, capability on the list, subscription closed, in this order."""
    begin(stream)
    stream.pass_seconds(2)
    stream.world.lose(Loss.CASE, at=stream.now)
    actions = [item.action for item in stream.world.service.journal()]
    assert actions.index("retract") < actions.index("fall")
    before = stream.seen()
    stream.pass_seconds(2)
    assert stream.seen() == before == [1, 2]


def test_a_predicate_that_is_not_monitored_does_not_end_the_role(stream: Stream) -> None:
    """Without the star, the assignment is asked at activation only: its end takes nothing away."""
    stream.world.service.apply(
        DETECTIVE_POLICY.replace("?caseAssignment(self, case)*", "?caseAssignment(self, case)"), at=stream.now
    )
    begin(stream)
    stream.pass_seconds(2)
    revocation = stream.world.service.retract(Loss.CASE.value, at=stream.now)
    assert revocation.roles == ()
    stream.pass_seconds(2)
    assert stream.seen() == [1, 2, 3, 4]
