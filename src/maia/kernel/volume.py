"""Volume alarms: a subscription that takes in more than its domain expects is pointed out, and goes on.

A subscriber that logs everything it may see breaks no rule; only the amount tells it from others (row 22.05). Counts
are kept by subscription over a sliding period, in memory: after a restart the period begins anew.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from maia.errors import UsageError

VOLUME_HIGH = "VOLUME_HIGH"
_MAX_STEPS = 4_096


@dataclass(slots=True)
class _Taken:
    steps: deque[tuple[datetime, int]] = field(default_factory=deque)
    total: int = 0
    alarmed: datetime | None = None


class VolumeWatch:
    """Counts what subscriptions receive.

    >>> from datetime import UTC
    >>> watch = VolumeWatch(events=100, period=timedelta(hours=1))
    >>> noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
    >>> watch.observe("clerk", 60, at=noon)
    >>> watch.observe("clerk", 60, at=noon + timedelta(minutes=1))
    120
    """

    def __init__(self, *, events: int, period: timedelta) -> None:
        """Expect at most so many events of a subscription in any period.

        Raises:
            UsageError: The number or the period is not positive.
        """
        if events < 1 or period <= timedelta():
            raise UsageError("a volume is a positive number in a positive period", code="VOLUME_LIMIT")
        self._events = events
        self._period = period
        self._taken: dict[str, _Taken] = {}

    def observe(self, subscription: str, events: int, *, at: datetime) -> int | None:
        """Count a delivery.

        Returns:
            What the subscription received within the period, when that is too much; once a period.
        """
        if events == 0:
            return None
        taken = self._taken.setdefault(subscription, _Taken())
        while taken.steps and taken.steps[0][0] <= at - self._period:
            taken.total -= taken.steps.popleft()[1]
        if len(taken.steps) == _MAX_STEPS:
            # Two steps become one at the later instant: a little too much is counted, never too little.
            _, first = taken.steps.popleft()
            instant, second = taken.steps.popleft()
            taken.steps.appendleft((instant, first + second))
        taken.steps.append((at, events))
        taken.total += events
        quiet = taken.alarmed is not None and at < taken.alarmed + self._period
        if taken.total <= self._events or quiet:
            return None
        taken.alarmed = at
        return taken.total

    def keep(self, subscriptions: frozenset[str]) -> None:
        """Forget the subscriptions that are no more, so that what is counted stays bounded by what is delivered."""
        for gone in self._taken.keys() - subscriptions:
            del self._taken[gone]
