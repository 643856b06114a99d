"""The lanes of one broker: what its clients published, numbered and kept for those who ask later."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from maia.filters import TypedFilter, matches
from maia.routing.evidence import NetworkRequest
from maia.routing.identifiers import Identifier
from maia.routing.messages import Event, Lane, Pull, Pulled

MAX_PULLED = 256
"""How many events an answer holds; the rest is asked for again."""


class NumberedLanes:
    """Numbers events from 1 without gaps, and keeps the last ones of each type."""

    def __init__(self, own: Identifier, *, life: int, keep: int) -> None:
        """Keep nothing yet."""
        self._own, self._life, self._keep = own, life, keep
        self._events: dict[Identifier, deque[Event]] = {}
        self._heads: dict[Identifier, int] = {}

    def lane(self, key: Identifier) -> Lane:
        """The lane for a type."""
        return Lane(self._own, self._life, key)

    def head(self, key: Identifier) -> int:
        """The last number of a type; 0 before the first."""
        return self._heads.get(key, 0)

    def append(
        self, key: Identifier, values: Mapping[str, object], *, now: float, evidence: NetworkRequest | None
    ) -> Event:
        """Take an event in."""
        number = self._heads[key] = self.head(key) + 1
        event = Event(number, now, values, evidence)
        self._events.setdefault(key, deque(maxlen=self._keep)).append(event)
        return event

    def read(self, question: Pull) -> Pulled | None:
        """Answer a question about one of these lanes; ``None`` when it is about another."""
        key = question.lane.key
        if question.lane != self.lane(key):
            return None
        upto = min(question.number, self.head(key))
        found: list[Event] = []
        for event in self._events.get(key, ()):
            if not question.after < event.number <= upto or event.stamp < question.since:
                continue
            if any(matches(wanted, event.values) for wanted in question.filters):
                found.append(event)
                if len(found) == MAX_PULLED:
                    upto = event.number
                    break
        return Pulled(question.lane, question.after, upto, tuple(found))

    def last(self, lane: Lane, filter_: TypedFilter) -> Event | None:
        """The last event of one of these lanes that matches; ``None`` where there is none, or the lane is another's."""
        if lane != self.lane(lane.key):
            return None
        kept = reversed(self._events.get(lane.key, ()))
        return next((event for event in kept if matches(filter_, event.values)), None)
