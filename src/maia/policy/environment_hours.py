"""Time and calendar as a fact: whether an instant lies in stated hours of stated days, in a stated zone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from maia.errors import UsageError
from maia.policy.environment import Predicate
from maia.policy.terms import Atom

_DAYS = frozenset(range(1, 8))
MAX_HOLIDAYS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """True from ``start`` until before ``end`` on the given days, by the clock of a zone, holidays excepted.

    Hours that end before they start run over midnight and belong to the day they start on. Equal ends are a whole day.

    >>> from datetime import UTC
    >>> office = Hours(name="office", zone="Europe/London", start=time(9), end=time(17), days=frozenset(range(1, 6)))
    >>> office.ask(Atom("office"), at=datetime(2026, 7, 1, 8, 30, tzinfo=UTC))  # a Wednesday, half past nine in London
    True
    >>> office.ask(Atom("office"), at=datetime(2026, 7, 4, 10, 0, tzinfo=UTC))  # a Saturday
    False

    Attributes:
        name: Of the fact, which has no parameters.
        zone: Name of the time zone.
        start: First minute.
        end: First minute after.
        days: Days of the week, Monday is 1.
        holidays: Days on which it does not start.
    """

    name: str
    zone: str
    start: time
    end: time
    days: frozenset[int] = _DAYS
    holidays: frozenset[date] = frozenset()

    def __post_init__(self) -> None:
        """Refuse a zone or a day that does not exist."""
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise UsageError(f"`{self.zone}` is no time zone", code="PROVIDER_ZONE") from error
        if not self.days <= _DAYS or len(self.holidays) > MAX_HOLIDAYS:
            raise UsageError("days are numbered 1 to 7, and holidays are not without end", code="PROVIDER_DAYS")

    @property
    def predicate(self) -> Predicate:
        """A fact without parameters."""
        return Predicate(self.name, 0)

    def ask(self, fact: Atom, *, at: datetime) -> bool:  # noqa: ARG002 - there is one fact only
        """Tell whether the instant lies in the hours."""
        local = at.astimezone(ZoneInfo(self.zone))
        today, clock = local.date(), local.time().replace(tzinfo=None)
        if self.start < self.end:
            return self._counts(today) and self.start <= clock < self.end
        began = self._counts(today) and clock >= self.start
        return began or (clock < self.end and self._counts(today - timedelta(days=1)))

    def facts(self, *, at: datetime) -> frozenset[Atom]:
        """Give the fact while it holds."""
        fact = Atom(self.name)
        return frozenset((fact,)) if self.ask(fact, at=at) else frozenset()

    def _counts(self, day: date) -> bool:
        return day.isoweekday() in self.days and day not in self.holidays
