"""Finding the lanes of a type in a store where anybody may make folders.

A name proves nothing, and reading a lane costs something. Rules kept here:

- as long as there are no more than `MAX_LANES`, each is looked at;
- when there are more, each is judged by the newest commit of its own owner: a lane whose origin has a right takes a
  place of whoever issued that right, and each issuer has `MAX_LANES` places. Lanes that are in doubt share as many.
  A stranger's lane takes nobody's place, so no number of folders hides a lane that counts;
- who was found to be a stranger is looked at again in turn, a few at each look, so that strangers cost a listing. What
  they cost at the first look of a process grows with their number, as the disk that they fill does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator

from maia.log.commits import MAX_COMMIT, Commit, read_commit
from maia.log.event_lane import EVENTS, lane_name
from maia.log.lane import MAX_LANES, LaneReader, find_lanes
from maia.log.lane_objects import LaneId
from maia.log.store import Store

Admits = Callable[[Commit], str | None]
"""Tells whose place a lane takes, by a commit of its own; nothing for a stranger's."""
_PAGE = 131_072
_AGAIN = 256
_BACK = 8


class LaneSearch:
    """Finds lanes, and remembers who was a stranger."""

    def __init__(self, store: Store) -> None:
        """Search a store."""
        self._store = store
        self._places: dict[str, str] = {}
        self._strangers: dict[str, None] = {}

    def find(self, topic: str, known: Collection[str], judge: Callable[[], Admits] | None) -> list[LaneId]:
        """Find the lanes of a type that are to be looked at.

        Args:
            topic: The type's id, in hex.
            known: Lanes that are looked at whatever else there is, by name; they may be found again.
            judge: Gives who judges lanes, asked when there are many.

        Raises:
            UsageError: It is no type.
            UnavailableError: The store did not answer.
        """
        few = find_lanes(self._store, EVENTS, topic, limit=MAX_LANES + len(known) + 1)
        if judge is None or len(few) <= MAX_LANES + len(known):
            return list(few[: MAX_LANES + len(known)])
        admits = judge()
        again = set([name for name in self._strangers if name.startswith(f"{topic}/")][:_AGAIN])
        shares: Counter[str] = Counter()
        found: list[LaneId] = []
        for lane in self._all(topic):
            name = lane_name(lane)
            if name in known or (name in self._strangers and name not in again):
                continue
            place = self._places.get(name) or self._judge(lane, admits)
            self._strangers.pop(name, None)
            if place is None:
                self._strangers[name] = None  # the last to be looked at again
            elif shares[place] < MAX_LANES:
                self._places[name] = place
                shares[place] += 1
                found.append(lane)
        return found

    def _all(self, topic: str) -> Iterator[LaneId]:
        after = None
        while page := find_lanes(self._store, EVENTS, topic, after=after, limit=_PAGE):
            yield from page
            after = page[-1].owner

    def _judge(self, lane: LaneId, admits: Admits) -> str | None:
        """Judge a lane by the newest commit that its head leads to, or by its first."""
        reader = LaneReader(self._store, lane, limit=MAX_COMMIT)
        head = reader.head()
        newest = 0 if head is None else max(head.place.number, 0)
        for number in range(newest, max(-1, newest - _BACK), -1):
            record = reader.record(number)
            commit = None if record is None else read_commit(record, before=-1)
            if commit is not None and not commit.wrong:
                return admits(commit)
        return None
