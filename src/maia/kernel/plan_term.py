"""The term of a plan: from when to when it may be worked by.

A reader's right is judged when it reads. A plan carries that judgement to workers, and may be worked by again long
after: a frame that is evaluated once more, a task that is tried again, a micro-batch that takes hours. Rules kept here:

- a plan ends at the earliest instant at which a link, a list or a statement that it leans on may carry it no longer,
  and when it is as old as plans of its domain may get, whichever is first;
- a worker refuses a plan that is over (``PLAN_OVER``), by its own clock and before each parcel. Clocks may differ by
  the skew that the domain declares, and that is how much later than the end a slow one may go on;
- a worker whose clock lies before the plan, by more than a domain takes for a clock that was put right a little, does
  not know what time it is and refuses as well;
- where what is known of revocations is at hand, a worker looks at it before it begins: what was withdrawn since ends
  the plan at once;
- what is published by a plan is stamped within its term: readers judge it at the stamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from maia.authority import CertificatePool, StatementBook
from maia.errors import PlanOverError, VerificationError
from maia.kernel.clauses import Clause
from maia.kernel.stamps import milliseconds
from maia.principals import CertificateId, OnlineTest, TestKind

Clock = Callable[[], datetime]
"""Tells what time it is where it is called."""
_BEHIND = timedelta(seconds=30)
_AGAIN = "rights are judged when a plan is made: read or publish again; a stream that is restarted goes on where it was"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTerm:
    """From when to when a plan may be worked by.

    Attributes:
        made: When it was made.
        until: The first instant at which it is over.
        skew: By how much the clock of a worker may differ.
        rests_on: The certificates that it leans on and that lists may withdraw, each with the test that names the list.
    """

    made: datetime
    until: datetime
    skew: timedelta
    rests_on: tuple[tuple[CertificateId, OnlineTest], ...] = ()

    @classmethod
    def of(
        cls,
        ends: Iterable[datetime | None],
        *,
        made: datetime,
        age: timedelta,
        skew: timedelta,
        rests_on: Iterable[tuple[CertificateId, OnlineTest]] = (),
    ) -> Self:
        """Take the first of several ends; without any, the plan ends with its greatest age.

        >>> from datetime import UTC
        >>> noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
        >>> minute = timedelta(minutes=1)
        >>> PlanTerm.of([None, noon + minute], made=noon, age=2 * minute, skew=minute).until == noon + minute
        True
        """
        until = min([made + age, *(end for end in ends if end is not None)])
        return cls(made=made, until=until, skew=skew, rests_on=tuple(dict.fromkeys(rests_on)))

    def check(self, now: datetime) -> None:
        """Refuse to work by a plan outside its term.

        Raises:
            PlanOverError: It is over, or the clock is behind it: ``PLAN_OVER``.
        """
        if now >= self.until + self.skew:
            raise PlanOverError(f"the plan was over at {self.until.isoformat(timespec='seconds')}; {_AGAIN}")
        if now < self.made - max(self.skew, _BEHIND):
            raise PlanOverError(
                f"the clock here is behind {self.made.isoformat(timespec='seconds')}, when the plan was made; set it "
                "right, and make the plan again"
            )

    def check_stamp(self, stamp: int) -> None:
        """Refuse to stamp events outside the term.

        Raises:
            PlanOverError: The plan is over by that stamp: ``PLAN_OVER``.
        """
        if stamp >= milliseconds(self.until):
            raise PlanOverError(f"the plan was over at {self.until.isoformat(timespec='seconds')}; {_AGAIN}")

    def check_statements(self, book: StatementBook, *, at: datetime) -> None:
        """Refuse a plan whose certificates were withdrawn since, as far as a book knows.

        Raises:
            PlanOverError: A list takes one of them away, or none confirms it any more: ``PLAN_OVER``.
        """
        for identity, test in self.rests_on:
            try:
                book.check(test, identity, at=at)
            except VerificationError as error:
                message = f"a right behind the plan is not in force any more ({error.code}); {_AGAIN}"
                raise PlanOverError(message) from error


def tests_behind(clauses: Iterable[Clause], evidence: CertificatePool) -> tuple[tuple[CertificateId, OnlineTest], ...]:
    """List the certificates of clauses that lists may withdraw, each with the test that names the list."""
    chains = dict.fromkeys(identity for clause in clauses for identity in clause.chain)
    return tuple(
        (identity, test)
        for identity in chains
        for test in evidence.get(identity).body.tests
        if test.kind is not TestKind.ONE_TIME
    )
