"""The next stretch of the log that a reader may go through, lane by lane: what is proven moves on, what is not waits.

Rules kept here:

- nothing of a commit is opened before the commit was verified, its origin judged, and its segments found to be what was
  committed;
- a denial that is proven moves on: the origin's events are refused, and counted. A doubt parks that lane, at the place
  before it: evidence or a statement is missing, a segment is missing or damaged, a record is missing or forked, the
  stamp lies in the future, or the key is of an epoch that was not heard of yet. Other lanes go on, and the lane goes
  on when the doubt is gone;
- what is wrong with an object of another party is that party's refusal: whatever its certificates make the verifier
  raise is a denial of that lane;
- who reads a type goes through the lanes of its children as well, as far as their origins had a right on the type; what
  else they hold is the child's, and no refusal. A child that is not known here any more waits at its place;
- a lane that this home read and that is gone, or cut off, or begun anew is such a doubt (``LANE_MEMORY``): what is
  left of it is read, and it waits for what was there before;
- segments that a link left out, by a note of this home and a wish that the link still has, are not there to be read,
  and are no doubt;
- each lane has its share of a stretch, so that a busy one delays nobody;
- an origin with a right that has not said again where its lane ends, when it had promised to, is an alarm
  (``LANE_SILENT``): what it published last may be withheld. What is there is read all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from maia.domain.left_out import wishes_of, without_left_out
from maia.domain.memberships import GroupKeys
from maia.encryption import Keyring, Tolerance
from maia.errors import MaiaError, MalformedError, NotFoundError, VerificationError
from maia.events import EventType, TypeId, TypeName
from maia.kernel import Descent, LoggedParcel, milliseconds, require_heard_of
from maia.log import BEGINNING, Admits, Commit, EventLane, Places, read_place

if TYPE_CHECKING:
    from maia.domain.domain import Domain
    from maia.domain.snapshot import Snapshot


_NEVER = 1 << 63
SILENT = "LANE_SILENT"
"""The alarm about a lane whose end nobody confirms any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Commits that can be gone through now, and where that leads.

    Attributes:
        commits: In the order of their stamps.
        upto: The place after them, of every lane that was read so far.
        parked: Lanes that wait, each with the code of the doubt.
        silent: Lanes whose end nobody confirms any more, by name.
    """

    commits: tuple[Commit, ...] = ()
    upto: Places = field(default_factory=dict)
    parked: tuple[tuple[str, str], ...] = ()
    silent: tuple[str, ...] = ()

    @property
    def alarms(self) -> tuple[tuple[str, str], ...]:
        """All that is to be said of lanes: those that wait, and those that are silent."""
        return (*self.parked, *((lane, SILENT) for lane in self.silent))


def wire_types(domain: Domain, known: Snapshot, names: Iterable[str] | None = None) -> dict[str, EventType]:
    """Give the types that the domain knows by the ids they have in the log; or only those with certain ids."""
    found: dict[str, EventType] = {}
    for verified, _ in known.types:
        event_type = verified.event_type
        for identity in domain.home.wire_ids(event_type.type_id):
            found.setdefault(identity.hex(), event_type)
    return found if names is None else {name: found[name] for name in names if name in found}


def type_stretch(
    domain: Domain,
    *names: TypeName,
    after: Places,
    at: datetime,
    most: int | None = None,
    upto: Places | None = None,
    deep: bool = True,
    window: tuple[int, int] | None = None,
) -> Stretch:
    """Find the next stretch of types and of those that extend them, under all ids that they have in the log.

    A child's commit is none of the type's when its origin has no right to publish the type. See `next_stretch`.
    """
    known = domain.known(at=at)
    types: dict[str, EventType] = {}
    for name in names:
        event_type = known.sessions.event_type(name.type_id, name.version.text, at=at)
        types |= dict.fromkeys(known.read_as(name.type_id, domain.home), event_type)
        if len(names) == 1 and domain.home.type_ids() is not None:
            types |= {lane.partition("/")[0]: event_type for lane in after}  # ids that were keyed before
    return next_stretch(domain, types, after=after, at=at, most=most, upto=upto, deep=deep, window=window)


def next_stretch(
    domain: Domain,
    types: Mapping[str, EventType],
    *,
    after: Places,
    at: datetime,
    most: int | None = None,
    upto: Places | None = None,
    deep: bool = True,
    window: tuple[int, int] | None = None,
) -> Stretch:
    """Find the next stretch after an offset, and listen to the lists that its origins stand on; see `_next_stretch`."""
    heard = domain.planner.origins.signers
    found = _next_stretch(domain, types, after=after, at=at, most=most, upto=upto, deep=deep, window=window)
    if domain.planner.origins.signers != heard:
        domain.follow(at=at)
        return _next_stretch(domain, types, after=after, at=at, most=most, upto=upto, deep=deep, window=window)
    return found


def _next_stretch(
    domain: Domain,
    types: Mapping[str, EventType],
    *,
    after: Places,
    at: datetime,
    most: int | None = None,
    upto: Places | None = None,
    deep: bool = True,
    window: tuple[int, int] | None = None,
) -> Stretch:
    """Find the next stretch after an offset.

    Args:
        domain: Who reads.
        types: The types to read, by their ids in the log.
        after: Where each lane was left.
        at: Now.
        most: About so many commits at most, but at least one of each lane; 0 tells where the lanes begin.
        upto: Go no further than this.
        deep: Compare the digest of every segment now; otherwise whoever reads them does.
        window: Only commits that may hold stamps from the first on and before the second; others are not looked at.
    """
    known = domain.known(at=at)
    read, segments = _Reading(domain, known), _Segments(domain) if deep else None
    wishes = wishes_of(domain.home)
    lanes = domain.log.lanes(types, first=tuple(after))
    waiting = [lane for lane in lanes if lane.count > read_place(after.get(lane.name, BEGINNING))[0].number + 1]
    share = most if not most else max(1, most // max(1, len(waiting)))
    first, last = (-1, _NEVER) if window is None else window
    found: list[Commit] = []
    places, parked, silent = dict(after), list[tuple[str, str]](), list[str]()
    for lane in lanes:
        event_type = types[lane.lane.topic]
        start = _start(lane, after, upto, window)
        if lane.count and (upto is None or lane.name in upto):
            places.setdefault(lane.name, start)  # what expires from now on, before it was read, is told
        end = lane.count - 1 if upto is None else read_place(upto.get(lane.name, start))[0].number
        before = -1
        try:
            for number, (place, commit) in enumerate(lane.walk(start, end)):
                if share is not None and number >= share:
                    break
                if before >= last:
                    break  # stamps grow along a lane
                before = read_place(place)[1]
                if commit is not None and commit.stamp >= first:
                    commit = without_left_out(domain.home, commit, wishes)  # noqa: PLW2901 - as it was copied
                    descent = read.descent(event_type, commit)
                    code = _doubt(domain, known, event_type, lane, commit, descent, at=at, segments=segments)
                    if code:
                        parked.append((lane.name, code))
                        break
                    # A heartbeat adds nothing.
                    if (commit.publication or commit.wrong) and read.concerns(event_type, commit, descent):
                        found.append(commit)
                places[lane.name] = place
            else:
                if (alarm := lane.alarm or lane.doubt) is not None:
                    parked.append((lane.name, alarm.code))
                elif upto is None and _silent(domain, known, event_type, lane, at=at):
                    silent.append(lane.name)
        except (NotFoundError, VerificationError) as error:
            parked.append((lane.name, error.code))
    found.sort(key=lambda commit: (commit.stamp, commit.lane))
    return Stretch(commits=tuple(found), upto=places, parked=tuple(parked), silent=tuple(silent))


def admits_by(domain: Domain, known: Snapshot, types: Mapping[str, EventType]) -> Admits:
    """Tell whose place a lane takes when there are many: that of who gave its origin the right."""

    def admits(commit: Commit) -> str | None:
        event_type = types.get(commit.type_id)
        if event_type is None:
            return None
        judged = domain.planner.origins.judge(known, event_type, commit)
        return "in doubt" if judged.doubt else judged.giver if judged.tenures else None

    return admits


def _silent(domain: Domain, known: Snapshot, event_type: EventType, lane: EventLane, *, at: datetime) -> bool:
    """Tell whether an origin with a right has not said for too long where its lane ends."""
    head = lane.heard
    if head is None or not lane.count:
        return False  # one that never promised anything breaks no promise
    now = milliseconds(at) - domain.home.config.silence * 1000
    if head.due >= now or head.due <= head.asserted:
        return False
    newest = lane.newest()
    return newest is not None and bool(
        domain.planner.origins.judge(known, event_type, newest, stamp=milliseconds(at)).tenures
    )


def _start(lane: EventLane, after: Places, upto: Places | None, window: tuple[int, int] | None) -> str:
    """Tell where to begin in a lane: where it was left, or where it began when it was first seen.

    For a window, at a place that was read before and lies shortly before it.
    """
    if lane.name in after:
        return after[lane.name]
    near = None if window is None else lane.before(window[0])
    if near is not None:
        return near
    seen = None if upto is None else upto.get(lane.name)
    return seen if seen is not None and read_place(seen)[1] < 0 else lane.floor  # no record was read up to a floor


def _doubt(
    domain: Domain,
    known: Snapshot,
    event_type: EventType,
    lane: EventLane,
    commit: Commit,
    descent: Descent,
    *,
    at: datetime,
    segments: _Segments | None,
) -> str:
    """Tell why a commit has to wait; empty when it has not."""
    if commit.wrong:
        return ""
    judged = domain.planner.origins.judge(known, event_type, commit)
    if judged.doubt:
        return judged.doubt
    if not judged.tenures:
        return ""  # SECURITY: proven to have no right, so nothing of it is opened
    lane.hold()
    if commit.stamp > milliseconds(at) + domain.home.tolerance.skew:
        return "STAMP_AHEAD"
    return "" if segments is None else segments.doubt(lane, commit, descent)


class _Reading:
    """Tells as what the commits of a lane are read: the type's own, or a child's."""

    def __init__(self, domain: Domain, known: Snapshot) -> None:
        self._domain = domain
        self._known = known
        self._children: dict[TypeId, dict[str, Descent]] = {}
        self._own: dict[TypeId, Descent] = {}

    def descent(self, event_type: EventType, commit: Commit) -> Descent:
        """Tell from which types the attributes of a commit's events come, for whoever reads them as a type's."""
        type_id, sessions = event_type.type_id, self._known.sessions
        if type_id not in self._own:
            self._own[type_id] = sessions.descent(type_id)
            self._children[type_id] = {
                alias.hex(): seen
                for child, seen in sessions.children(type_id).items()
                for alias in self._domain.home.wire_ids(child)
            }
        return self._children[type_id].get(commit.type_id, self._own[type_id])

    def concerns(self, event_type: EventType, commit: Commit, descent: Descent) -> bool:
        """Tell whether a commit is one of the type's: its own, or a child's by an origin with a right on the type."""
        if not descent.as_parent:
            return True
        return not commit.wrong and bool(self._domain.planner.origins.judge(self._known, event_type, commit).tenures)


class _Segments:
    """Goes through segments once each, with the keys that this broker holds; those are read once for a stretch."""

    def __init__(self, domain: Domain) -> None:
        self._home = domain.home
        self._follows = (domain.home.path / "groups").exists()
        self._ring: Keyring | None = None
        self._tolerances: dict[frozenset[TypeId | None], Tolerance] = {}

    def doubt(self, lane: EventLane, commit: Commit, descent: Descent) -> str:
        """Tell which segment of a commit is not what was committed; empty when they all are.

        Raises:
            UncheckedError: One was sealed in an epoch that was not heard of yet: ``EPOCH_UNHEARD``.
        """
        for file in commit.files:
            newest = None
            try:
                if self._follows:
                    newest = lane.newest_parcel(file)
                else:
                    lane.check(file)
            except MaiaError as error:
                if error.code in ("FILE_UNAVAILABLE", "STORE_UNAVAILABLE"):
                    raise
                return error.code
            if newest is not None:
                self._require_keys(newest, descent)
        return ""

    def _require_keys(self, newest: LoggedParcel, descent: Descent) -> None:
        """See that the keys of the groups that this broker follows were heard of as far as a parcel needs them."""
        if self._ring is None:
            self._ring = self._home.keyring()
        types = frozenset((descent.type_id, *descent.holders.values()))
        if types not in self._tolerances:
            self._tolerances[types] = GroupKeys(self._home).tolerance(*types)
        with suppress(MalformedError):  # its origin's fault, and a dead letter
            require_heard_of(newest.parse(), self._ring, descent=descent, tolerance=self._tolerances[types])
