"""How the domain stands now: problems, lanes and lag, what was refused and why. All of it is the domain's own word."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from maia.domain import Domain, DomainStatus
from maia.errors import MaiaError
from maia.log import read_audit

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_MOST_ROWS = 200_000
_AGAIN = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNumbers:
    """How things stand.

    Attributes:
        at: When.
        status: The domain's standing.
        published: Events published in the last hour.
        delivered: Events delivered in the last hour.
        refused: Refusals of the last day, by code, the most frequent first.
        whole: Whether all of the last day was counted.
        problem: Why the standing cannot be told.
    """

    at: datetime
    status: DomainStatus | None
    published: int
    delivered: int
    refused: tuple[tuple[str, int], ...]
    whole: bool
    problem: str = ""

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong."""
        said = () if self.status is None else self.status.problems
        return (*((self.problem,) if self.problem else ()), *said)

    @property
    def calm(self) -> bool:
        """Whether nothing asks for attention."""
        log = None if self.status is None else self.status.log
        return not self.problems and not (log and (log.parked or log.missing))

    def to_json(self) -> dict[str, object]:
        """Write the strip."""
        log = None if self.status is None else self.status.log
        return {
            "calm": self.calm, "at": f"{self.at:%H:%M:%S} UTC",
            "problems": len(self.problems),
            "lanes": 0 if log is None else log.lanes, "commits": 0 if log is None else log.commits,
            "lag": 0 if log is None else log.lag, "parked": 0 if log is None else len(log.parked),
            "published": self.published, "delivered": self.delivered,
            "refused": sum(count for _, count in self.refused),
        }  # fmt: skip


class LiveView:
    """Looks at a domain, at most every two seconds however often it is asked."""

    def __init__(self, domain: Domain) -> None:
        """Look at this domain."""
        self._domain = domain
        self._last: LiveNumbers | None = None

    def now(self, *, at: datetime) -> LiveNumbers:
        """Tell how things stand."""
        last = self._last
        if last is None or not last.at <= at < last.at + _AGAIN:
            last = self._last = _look(self._domain, at=at)
        return last


def _look(domain: Domain, *, at: datetime) -> LiveNumbers:
    problem, status = "", None
    try:
        status = domain.status(at=at)
    except MaiaError as error:
        problem = f"[{error.code}] {error.message}"
    codes, events, count = Counter[str](), Counter[str](), 0
    for row in islice(read_audit(domain.home.audit_path, since=at - _DAY), _MOST_ROWS):
        count += 1
        if row.kind == "refuse":
            codes[row.code] += max(1, row.events)
        elif row.kind in ("publish", "deliver") and row.at >= at - _HOUR:
            events[row.kind] += row.events
    return LiveNumbers(
        at=at, status=status, published=events["publish"], delivered=events["deliver"],
        refused=tuple(codes.most_common()), whole=count < _MOST_ROWS, problem=problem,
    )  # fmt: skip
