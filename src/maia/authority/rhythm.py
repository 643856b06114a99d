"""When an issuer signs its next timed list: periods, heartbeats, and how early a list is sent.

Timed lists never overlap and cannot be taken back, so a list that reflects the newest decisions is signed as late as
delivery allows: ``lead`` before it comes into force. A heartbeat is the same with a short period. With a period of 5 s
and a lead of 2 s, lists are signed at 0, 5, 10 … for [0,7), [7,12), [12,17) …: a link that is cut at 12 ends access at
17, one period and one lead after the last beat (row 13.10), and that is the worst case for a withdrawal as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from maia.errors import UsageError
from maia.principals import check_aware


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How often an issuer signs a list, and how long before it comes into force.

    Attributes:
        period: How long one list is in force.
        lead: How long before its start it is signed; what it takes to reach every verifier.
    """

    period: timedelta
    lead: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        """Refuse a period that ends before the next list is due, and parts of seconds, which lists cannot say."""
        whole = all(part % timedelta(seconds=1) == timedelta(0) for part in (self.period, self.lead))
        if not whole or not timedelta(0) <= self.lead < self.period:
            raise UsageError("a rhythm has whole seconds, and a lead shorter than its period", code="RHYTHM")

    @property
    def window(self) -> timedelta:
        """The worst case between a decision and the end of the last list that ignores it.

        >>> Rhythm(period=timedelta(seconds=5), lead=timedelta(seconds=2)).window.total_seconds()
        7.0
        """
        return self.period + self.lead

    def due(self, last: datetime | None, *, at: datetime) -> tuple[datetime, datetime] | None:
        """Give the interval of the list that is to be signed now, or ``None`` while that is too early.

        Args:
            last: The end of the last list that was signed.
            at: Now.

        >>> from datetime import UTC
        >>> beats = Rhythm(period=timedelta(seconds=5), lead=timedelta(seconds=2))
        >>> noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
        >>> [instant.second for instant in beats.due(None, at=noon)]
        [0, 7]
        >>> beats.due(noon.replace(second=7), at=noon.replace(second=4)) is None
        True
        >>> [instant.second for instant in beats.due(noon.replace(second=7), at=noon.replace(second=5))]
        [7, 12]
        """
        now = check_aware(at).replace(microsecond=0)
        if last is not None and now < last - self.lead:
            return None
        if last is None or now >= last:  # the first, or after a silence: in force at once, and until the one after next
            starts = now if last is None else max(now, last)
            return starts, starts + self.window
        return last, last + self.period
