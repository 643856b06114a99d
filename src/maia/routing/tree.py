"""The state of one type at one broker: who wants its events, who publishes them, and what the next broker was told.

Rules kept here:

- towards the root goes only what nothing told covers (`CoveringSet`); what hid something brings it back when it goes;
- a filter over attributes that this broker cannot read is sealed to it: it is told as it is, covers nothing, and
  matches as far as the broker can read;
- a filter is *in force* when the root knows it, or one that covers it; only then does silence mean that nothing
  matched. A confirmation goes down when the one from above is there;
- a publisher's bounds travel with its advertisement and are merged where they meet; an event from a hop that none of
  the bounds of that hop admits is refused, and a merge never admits more or less than its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from maia.errors import UncheckedError
from maia.filters import Announcement, CoveringSet, TypedFilter, covers, equivalent, matches, merge
from maia.routing.evidence import NetworkRequest
from maia.routing.identifiers import Identifier
from maia.routing.messages import AdvertisedLane, HeldEvent, Lane, WantedFilter

MAX_LANES = 4096
"""How many lanes of a type a broker keeps track of; the oldest goes first."""
MAX_FILTERS = 100_000
"""How many filters of a type one neighbour may ask for."""
MAX_BOUNDS = 64
"""How many bounds of one lane travel; more become one without demands."""


@dataclass(frozen=True, slots=True)
class LocalSubscription:
    """What a client of this broker asked for, since when, and under which name it is told."""

    filter_: TypedFilter
    since: float
    name: Hashable


@dataclass(frozen=True, slots=True)
class LocalPublisher:
    """What a client of this broker may publish, and what it signed."""

    bound: TypedFilter
    evidence: NetworkRequest | None = None


@dataclass(frozen=True, slots=True)
class _Kept:
    filter_: TypedFilter
    evidence: NetworkRequest | None


@dataclass(frozen=True, slots=True)
class ToldChange:
    """What a neighbour must hear: filters by number, and numbers that are taken back."""

    added: tuple[WantedFilter, ...] = ()
    dropped: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped)


@dataclass(slots=True)
class Tree:
    """The entries of a type, and what is told of them."""

    key: Identifier
    readable: frozenset[str] | None = None
    clients: dict[str, LocalSubscription] = field(default_factory=dict)
    publishers: dict[str, LocalPublisher] = field(default_factory=dict)
    children: dict[Identifier, dict[int, tuple[TypedFilter, Hashable]]] = field(default_factory=dict)
    lanes: dict[Identifier, dict[Lane, AdvertisedLane]] = field(default_factory=dict)
    heads: dict[Lane, int] = field(default_factory=dict)
    said: dict[Lane, AdvertisedLane] = field(default_factory=dict)
    newly: dict[Identifier, int] = field(default_factory=dict)
    closed_at: float | None = None
    parent: Identifier | None = None
    attached: bool = False
    version: int = 0
    whole_version: int = 0
    confirmed: int = 0
    asking: list[tuple[Identifier, int, int]] = field(default_factory=list)
    skipped: dict[tuple[Identifier, Lane], tuple[int, int]] = field(default_factory=dict)
    states: dict[TypedFilter, HeldEvent] = field(default_factory=dict)
    _covering: CoveringSet = field(default_factory=CoveringSet)
    _apart: dict[Hashable, None] = field(default_factory=dict)
    _filters: dict[Hashable, _Kept] = field(default_factory=dict)
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    @property
    def entries(self) -> int:
        """How many advertisements and subscriptions are kept here."""
        return (
            len(self.clients)
            + len(self.publishers)
            + sum(map(len, self.children.values()))
            + sum(not item.closed for lanes in self.lanes.values() for item in lanes.values())
        )

    @property
    def empty(self) -> bool:
        """Whether nothing needs this state any more."""
        return not (self.clients or self.publishers or self.children or self.lanes or self.closed_at is not None)

    @property
    def in_force(self) -> bool:
        """Whether what comes from above is complete: the next broker confirmed all that it was told at once."""
        return self.parent is None or (self.attached and self.confirmed >= self.whole_version)

    def wanted(self, hop: Identifier, values: Mapping[str, object]) -> bool:
        """Whether a neighbour wants an event, as far as this broker can read it."""
        return any(self.may_match(found, values) for found, _ in self.children.get(hop, {}).values())

    def reads(self, filter_: TypedFilter) -> bool:
        """Whether this broker can read all that a filter is about."""
        return self.readable is None or filter_.attributes <= self.readable

    def may_match(self, filter_: TypedFilter, values: Mapping[str, object]) -> bool:
        """Whether an event matches a filter, as far as this broker can read both."""
        readable = self.readable
        if readable is None or filter_.attributes <= readable:
            return matches(filter_, values)
        read = tuple(item for item in filter_.constraints if item.attribute in readable)
        return matches(TypedFilter(constraints=read), values)

    # ------------------------------------------------------------------ filters, and which of them are told

    def change(
        self, added: Mapping[Hashable, WantedFilter], dropped: Iterable[Hashable] = (), *, number: Callable[[], int]
    ) -> ToldChange:
        """Take filters in, then others out, and say what that means for the next broker; no name is used twice."""
        told: dict[Hashable, None] = {}
        taken: dict[Hashable, None] = {}

        def note(change: Announcement) -> None:
            for name in change.withdraw:
                if told.pop(name, _NONE) is _NONE:
                    taken[name] = None
            for name in change.announce:
                if taken.pop(name, _NONE) is _NONE:
                    told[name] = None

        for name, wanted in added.items():
            note(self._add(name, wanted))
        for name in dropped:
            note(self._remove(name))
        gone = tuple(self._numbers.pop(name) for name in taken)
        if gone and self.parent is not None:
            # What nobody up there is told to send is known here no longer.
            wishes = [self._filters[name].filter_ for name in (*self._covering.announced, *self._apart)]
            self.states = {wish: held for wish, held in self.states.items() if covered(wishes, wish)}
        self._numbers.update((name, number()) for name in told)
        return ToldChange(tuple(map(self._wanted, told)), gone)

    def told(self) -> tuple[WantedFilter, ...]:
        """All filters that the next broker must know."""
        return tuple(map(self._wanted, (*self._covering.announced, *self._apart)))

    def _wanted(self, name: Hashable) -> WantedFilter:
        kept = self._filters[name]
        return WantedFilter(self._numbers[name], kept.filter_, kept.evidence)

    def _add(self, name: Hashable, wanted: WantedFilter) -> Announcement:
        filter_ = wanted.filter_
        self._filters[name] = _Kept(filter_, wanted.evidence)
        if self.reads(filter_):
            try:
                return self._covering.add(name, filter_)
            except UncheckedError:
                pass  # too large to be compared: told by itself
        self._apart[name] = None
        return Announcement(announce=(name,))

    def _remove(self, name: Hashable) -> Announcement:
        if name in self._apart:
            del self._apart[name]
            change = Announcement(withdraw=(name,))
        else:
            change = self._covering.remove(name)
        del self._filters[name]
        return change

    # ------------------------------------------------------------------ publishers, and what they may publish

    def advertised(self, own: Lane, head: int) -> dict[Lane, AdvertisedLane]:
        """All lanes that come from here or through here, with the bounds of all who publish to them, merged."""
        found: dict[Lane, list[AdvertisedLane]] = {}
        if self.publishers:
            signed = tuple(item.evidence for item in self.publishers.values() if item.evidence is not None)
            found[own] = [AdvertisedLane(own, head, tuple(item.bound for item in self.publishers.values()), signed)]
        elif self.closed_at is not None:
            found[own] = [AdvertisedLane(own, head, (), closed=True)]
        for lanes in self.lanes.values():
            for lane, item in lanes.items():
                found.setdefault(lane, []).append(item)
        heads = {**self.heads, own: head}
        return {
            lane: AdvertisedLane(
                lane,
                heads.get(lane, 0),
                merge_bounds(bound for item in items for bound in item.bounds),
                tuple(dict.fromkeys(signed for item in items for signed in item.evidence)),
                all(item.closed for item in items),
            )
            for lane, items in found.items()
        }

    def admitted(self, hop: Identifier, lane: Lane, values: Mapping[str, object]) -> bool:
        """Whether an event that comes up from a hop is one that was advertised there, as far as it can be read."""
        item = self.lanes.get(hop, {}).get(lane)
        return item is not None and any(self.may_match(bound, values) for bound in item.bounds)

    def advance(self, lane: Lane, number: int) -> None:
        """Remember how far a lane is."""
        self.heads[lane] = max(number, self.heads.pop(lane, 0))
        if len(self.heads) > MAX_LANES:
            del self.heads[next(iter(self.heads))]


_NONE = object()


def merge_bounds(bounds: Iterable[TypedFilter]) -> tuple[TypedFilter, ...]:
    """Write alternatives in as few filters as an exact union allows.

    >>> from maia.filters import compile_filter, format_filter
    >>> low, high = (compile_filter(text, {"x": "integer"}) for text in ("x > 0 and x < 5", "x >= 5 and x < 9"))
    >>> [format_filter(bound) for bound in merge_bounds([low, high])]
    ['x > 0 and x < 9']
    """
    merged: list[TypedFilter] = []
    for bound in bounds:
        for place, other in enumerate(merged):
            both = _union(other, bound)
            if both is not None:
                merged[place] = both
                break
        else:
            merged.append(bound)
    # More than that is not carried along: nothing valid is ever refused, at the price of refusing nothing.
    return tuple(merged) if len(merged) <= MAX_BOUNDS else (TypedFilter(),)


def covered(filters: Iterable[TypedFilter], filter_: TypedFilter) -> bool:
    """Whether one of the filters covers another for certain."""
    for wider in filters:
        try:
            if covers(wider, filter_):
                return True
        except UncheckedError:
            continue
    return False


def same_bounds(a: tuple[TypedFilter, ...], b: tuple[TypedFilter, ...]) -> bool:
    """Whether two lists of bounds say the same, filter by filter."""
    try:
        return len(a) == len(b) and all(map(equivalent, a, b))
    except UncheckedError:
        return a == b


def _union(a: TypedFilter, b: TypedFilter) -> TypedFilter | None:
    try:
        return merge(a, b)
    except UncheckedError:
        return None
