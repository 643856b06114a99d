"""One round of a link: what the served log has and the own one has not, as much as fits into a round.

Rules kept here:

- lanes take turns, so that a long one keeps nobody waiting; one that cannot be copied on is parked, and others go on;
- a round ends: each lane has one turn in it, and further ones until so many records and octets were copied or looked
  at. What is left comes in the next;
- lanes that were seen before are looked at whether they are listed or not: who hides one takes it back;
- lanes of a type that goes direct are copied from who wrote them; offered by another, they are parked (`direct`);
- where the link has filters, what cannot match them is left out and noted (`leaving`). What another wish left out is
  fetched; a lane of which it is not served is parked;
- lanes that this home's own keys write are never copied: the home's own record decides about them;
- what begins to wait is an alarm in the audit, however the round ends, and contradictions are kept as they were signed;
- nobody is believed here: what counts is the signature of each lane's owner (`maia.log.lane_copy`).
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass

from maia.domain.domain import Domain
from maia.domain.link_files import MOST_CONTRARY, Link, link_store, marks_store, own_keys, state_path
from maia.domain.links.direct import DIRECT_ONLY, direct_lanes, neighbour_of
from maia.domain.links.leaving import filled_in, wanting
from maia.domain.parked import Parked, keep_parked
from maia.errors import EncodingError, MaiaError, NotFoundError
from maia.home import PRIVATE_FILE, Home, locked, make_folder, write_file
from maia.log import CopiedLane, DirectoryStore, LaneId, LaneMark, ReadableStore, all_lanes, copy_lane

_COUNTED = ("lanes", "records", "events", "octets", "expired", "ignored", "left", "missing")
_MAX_MARK = 1 << 16
_MARK = "mark"
_ROUND_RECORDS, _ROUND_OCTETS = 100_000, 64 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRound:
    """What a round brought.

    Attributes:
        lanes: How many lanes were looked at.
        records: How many records came: commits of events, and notices.
        events: How many events.
        octets: Of all that was copied.
        expired: Records that their origins let go before they were copied.
        ignored: Objects in the place of records that no origin signed.
        left: Events that were left out, since no filter of the link wants them.
        missing: Segments that another wish left out, that are wanted now, and that are not served.
        parked: Lanes that could not be copied on, and why.
        stopped: Whether somebody asked to stop before the end.
        more: Whether the round was long enough, and there is more to copy at once.
    """

    lanes: int = 0
    records: int = 0
    events: int = 0
    octets: int = 0
    expired: int = 0
    ignored: int = 0
    left: int = 0
    missing: int = 0
    parked: tuple[Parked, ...] = ()
    stopped: bool = False
    more: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """What came, and what did not, by name."""
        return {key: getattr(self, key) for key in _COUNTED}

    def after(self, copied: CopiedLane, filled: int = 0, missing: int = 0) -> LinkRound:
        """Count what was copied of one lane, octets that were fetched after all, and segments that were not."""
        return LinkRound(
            lanes=self.lanes, records=self.records + copied.records, events=self.events + copied.events,
            octets=self.octets + copied.octets + filled, expired=self.expired + copied.expired,
            ignored=self.ignored + copied.ignored, left=self.left + copied.left, missing=self.missing + missing,
        )  # fmt: skip


def pull_link(
    domain: Domain,
    link: Link,
    source: ReadableStore,
    *,
    tell: Callable[[LinkRound], None] = lambda _done: None,
    stop: Callable[[], bool] = lambda: False,
) -> LinkRound:
    """Copy what a served log has and the domain's log has not; one process at a time does so for a link.

    Args:
        domain: Whose log it comes into.
        link: Which link.
        source: The log that is served.
        tell: Hears how far it is, now and then.
        stop: Whether to stop; what was copied stays.

    Raises:
        UnavailableError: The served log or the own one does not answer; what was copied stays.
    """
    home = domain.home
    make_folder(state_path(home, link), mode=0o700)
    with locked(state_path(home, link)):
        return _pull(domain, link, source, tell, stop)


def note_failure(domain: Domain, link: Link, error: MaiaError) -> None:
    """Remember that a round did not come to its end, for whoever asks how the link stands."""
    make_folder(state_path(domain.home, link), mode=0o700)
    _remember(domain.home, link, {"at": domain.clock().isoformat(), "error": error.code, "message": error.message})


def _pull(
    domain: Domain,
    link: Link,
    source: ReadableStore,
    tell: Callable[[LinkRound], None],
    stop: Callable[[], bool],
) -> LinkRound:
    home, clock = domain.home, domain.clock
    marks, own, direct, neighbour = (
        marks_store(home, link),
        own_keys(home),
        direct_lanes(domain),
        neighbour_of(domain, link),
    )
    found = dict.fromkeys((*all_lanes(source, link.types or None), *all_lanes(marks)))
    turns = deque(lane for lane in found if lane.owner not in own)
    leaving = wanting(domain, link, source)
    done, parked, looked, passed = LinkRound(lanes=len(turns)), dict[str, str](), set[str](), 0
    stopped = more = False
    seen: Collection[str] | None = looked  # what is known of other lanes stays, unless the round comes to its end
    first = len(turns)
    try:
        while turns and not (stopped := stop()):
            # SECURITY: a lane that always has more would hold the round, and what others wait for would not be told.
            if first <= 0 and (passed >= _ROUND_RECORDS or done.octets >= _ROUND_OCTETS):
                more = True
                break
            lane, first = turns.popleft(), first - 1
            name, before = f"{lane.topic}/{lane.owner.hex()}", _read_mark(marks, lane)
            if not direct.wants(lane, neighbour):
                parked[name] = DIRECT_ONLY
                looked.add(name)
                continue
            copied = copy_lane(source, home.log_store, lane, mark=before, leave=leaving(lane))
            # Behind the copying: a record that was noted and had not come yet is here by now.
            filled, missing = (0, []) if copied.more else filled_in(home, link, source, lane)
            looked.add(name)
            if copied.mark != before:
                marks.put(f"{lane.folder}/{_MARK}", copied.mark.to_bytes())
            if copied.alarm is not None:
                parked[name] = copied.alarm.code
                _keep_contrary(home, link, copied)
            elif missing:
                parked[name] = missing[0]
            elif copied.more:
                turns.append(lane)
            done = done.after(copied, filled, len(missing))
            passed += copied.records + copied.passed + copied.segments
            tell(done)
            if not first and turns:  # each lane had its turn: what waits is told before long ones go on
                keep_parked(home, link.reader, sorted(parked.items()), at=clock(), looked=looked)
        seen = looked if turns else None
    finally:
        waiting = keep_parked(home, link.reader, sorted(parked.items()), at=clock(), looked=seen)
    done = LinkRound(
        lanes=done.lanes, records=done.records, events=done.events, octets=done.octets, expired=done.expired,
        ignored=done.ignored, left=done.left, missing=done.missing, parked=waiting, stopped=stopped, more=more,
    )  # fmt: skip
    _remember(home, link, {"at": clock().isoformat(), **done.counts})
    return done


def _read_mark(marks: DirectoryStore, lane: LaneId) -> LaneMark:
    try:
        return LaneMark.parse(marks.get(f"{lane.folder}/{_MARK}", limit=_MAX_MARK))
    except (NotFoundError, EncodingError):
        return LaneMark()


def _keep_contrary(home: Home, link: Link, copied: CopiedLane) -> None:
    """Keep the signed objects that contradict each other, once, so that anybody can be shown them."""
    if not copied.contrary or copied.alarm is None:
        return
    store, lane = link_store(home, link), copied.lane
    name = hashlib.sha256(b"".join(hashlib.sha256(item).digest() for item in copied.contrary)).hexdigest()[:16]
    folder = f"contrary/{copied.alarm.code.lower()}-{lane.owner.hex()[:16]}-{name}"
    if len(store.list_folders("contrary", "", limit=MOST_CONTRARY)) < MOST_CONTRARY:
        for number, item in enumerate(copied.contrary):
            store.put_new(f"{folder}/{number}", item)


def _remember(home: Home, link: Link, last: dict[str, object]) -> None:
    write_file(state_path(home, link) / "last.json", json.dumps(last).encode(), mode=PRIVATE_FILE)
