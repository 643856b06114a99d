"""A plan is worked by within its term, and not outside."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from maia.authority import StatementBook
from maia.errors import PlanOverError, UnavailableError
from maia.kernel import PlanTerm, milliseconds
from maia.principals import KeySigner, OnlineTest, TestKind
from maia.testing import grant, listing

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
MET = KeySigner(bytes(32))


def term(*ends: datetime | None, age: timedelta = 10 * MINUTE, skew: timedelta = 5 * SECOND) -> PlanTerm:
    """Make the term of a plan of noon."""
    return PlanTerm.of(ends, made=NOON, age=age, skew=skew)


ENDS = {
    "the first of several ends": ((NOON + 2 * MINUTE, None, NOON + MINUTE), NOON + MINUTE),
    "the greatest age, where nothing ends": ((None, None), NOON + 10 * MINUTE),
    "the greatest age, where all ends later": ((NOON + 60 * MINUTE,), NOON + 10 * MINUTE),
    "at once, where a right was over already": ((NOON,), NOON),
}


@pytest.mark.parametrize("ends, until", ENDS.values(), ids=ENDS.keys())
def test_a_plan_ends_with(ends: tuple[datetime | None, ...], until: datetime) -> None:
    """The first of what it leans on, or its age."""
    assert term(*ends).until == until


@pytest.mark.parametrize(
    "now, over",
    [
        (NOON - 31 * SECOND, True),
        (NOON - 30 * SECOND, False),
        (NOON, False),
        (NOON + MINUTE + 5 * SECOND - timedelta(microseconds=1), False),
        (NOON + MINUTE + 5 * SECOND, True),
    ],
)
def test_a_worker_refuses_outside_the_term(now: datetime, *, over: bool) -> None:
    """By its own clock, which may be off by the skew; one that is far behind the plan tells no time."""
    plan = term(NOON + MINUTE)
    if not over:
        plan.check(now)
        return
    with pytest.raises(PlanOverError) as raised:
        plan.check(now)
    assert raised.value.code == "PLAN_OVER"
    assert isinstance(raised.value, UnavailableError), "trying again helps, with a new plan"


def test_events_are_stamped_within_the_term() -> None:
    """Readers judge at the stamp, without any skew; so does the broker."""
    plan = term(NOON + MINUTE)
    plan.check_stamp(milliseconds(NOON + MINUTE) - 1)
    with pytest.raises(PlanOverError):
        plan.check_stamp(milliseconds(NOON + MINUTE))


def test_a_revocation_that_was_heard_ends_a_plan_at_once() -> None:
    """What a list takes away, and what no list confirms any more."""
    test = OnlineTest(TestKind.CRL, MET.public_key)
    right = grant(MET, KeySigner(bytes(31) + b"1"), "(ftp read)", tests=[test])
    plan = PlanTerm.of((), made=NOON, age=MINUTE, skew=SECOND, rests_on=[(right.certificate_id, test)])
    book = StatementBook()
    with pytest.raises(PlanOverError, match="NO_STATEMENT"):
        plan.check_statements(book, at=NOON)
    book.accept(listing(TestKind.CRL, MET))
    plan.check_statements(book, at=NOON)
    book.accept(listing(TestKind.CRL, MET, [right], sequence=2))
    with pytest.raises(PlanOverError, match="REVOKED"):
        plan.check_statements(book, at=NOON)
