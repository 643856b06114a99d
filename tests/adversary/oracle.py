"""What may be known and what must arrive, worked out from the moves alone: sets over a small world, by brute force.

Written from the laws of the design, not from the code, and it imports nothing of it. Rights are enumerated chain by
chain; an event is a tuple of values; where an attack makes it uncertain what an honest party has heard, there are two
answers: what is *sure* to be in force, which must be served, and what *may* be.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from moves import PUBLISH, SUBSCRIBE, UIDS, Link, Option, Row, Sequence

PERIOD, LEAD = 60, 20
"""Of the owner's lists, in seconds; their sum is the worst case of a revocation that is withheld."""
SKEW = 5
"""By how much clocks may differ, in seconds."""
_EVERYTHING = (Option((PUBLISH, SUBSCRIBE), UIDS),)
BASE = (
    Link("o", "s", True, _EVERYTHING),
    Link("s", "sb", False, _EVERYTHING),
    Link("s", "camera", False, _EVERYTHING),
    Link("o", "m", True, _EVERYTHING),
    Link("m", "mb", False, _EVERYTHING),
    Link("m", "reader", False, _EVERYTHING),
    Link("x", "xb", False, _EVERYTHING),
)
"""What is always there: two honest domains with their brokers and clients, and what ``x`` gives its own broker."""


@dataclass(frozen=True)
class Right:
    """What one way through the alternatives of a chain opens, and what it demands of the row."""

    uids: frozenset[str]
    demands: tuple[tuple[str, frozenset[int]], ...] = ()

    def asked(self, uid: str) -> frozenset[int] | None:
        """What is demanded of one attribute, if anything."""
        return dict(self.demands).get(uid)

    def meet(self, option: Option) -> Right | None:
        """What is left of this right when it is handed on as that."""
        merged = dict(self.demands)
        for uid, values in option.demands:
            merged[uid] = frozenset(values) & merged.get(uid, frozenset(values))
        uids = self.uids & set(option.uids)
        return Right(uids, tuple(sorted(merged.items()))) if uids and all(merged.values()) else None

    def admits(self, row: Row) -> bool:
        """Whether a row meets the demands."""
        return all(cell(row, uid) in values for uid, values in self.demands)

    def sets(self, uid: str, value: int | None) -> bool:
        """Whether a publisher under this right can have given an attribute this value."""
        return value is None or uid in self.uids or self.asked(uid) == {value}


@dataclass(frozen=True)
class Holding:
    """What one chain gives to its end."""

    rights: tuple[Right, ...]
    conditions: frozenset[tuple[str, int]] = frozenset()

    def holds(self, row: Row) -> bool:
        """Whether the conditions of the chain are true for an event."""
        return all(cell(row, uid) == value for uid, value in self.conditions)


def cell(row: Row, uid: str) -> int | None:
    """One value of an event."""
    return row[UIDS.index(uid)]


@dataclass
class Oracle:
    """The model of one sequence.

    Attributes:
        now: Seconds since the beginning.
        links: All that was issued by whoever it says, in order.
        revoked: When the owner withdrew which of them.
        mixed: Whether the coalition's domain named a sub-domain beside its broker, which ends its place in groups.
        deaf: Whether notices of the owner may be missing from the log.
        muted: Since when all of them are, if they are.
        harmed: Whether objects of the honest publisher may be missing from the log or altered.
    """

    sequence: Sequence
    now: int = 0
    links: list[Link] = field(default_factory=list)
    revoked: dict[int, int] = field(default_factory=dict)
    mixed: bool = False
    deaf: bool = False
    muted: int | None = None
    harmed: bool = False

    def __post_init__(self) -> None:
        """Begin with what is always there and what was given."""
        self.links = [*BASE, *self.sequence.given]

    def listed(self) -> list[int]:
        """The links that the owner's lists can end."""
        return [number for number, link in enumerate(self.links) if link.listed]

    # -- time and revocation

    def in_force(self, number: int, at: int, *, sure: bool) -> bool:
        """Whether a link counts at an instant for somebody who follows the log."""
        link = self.links[number]
        if link.until is not None and at > link.until:
            return False
        if not link.listed:
            return True
        if self.muted is not None and at >= self.muted + PERIOD + LEAD:
            return False  # silence denies
        ended = self.revoked.get(number)
        if ended is None or at < ended:
            return not (self.deaf and sure)
        return self.deaf and not sure and at < ended + PERIOD + LEAD

    def alive(self, at: int, *, sure: bool) -> tuple[int, ...]:
        """The links that count at an instant."""
        return tuple(number for number in range(len(self.links)) if self.in_force(number, at, sure=sure))

    def carried(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Of the links on which a plan was made, those that may still carry it now, whatever was heard meanwhile."""
        return tuple(number for number in numbers if self._carries(number, self.now - SKEW))

    def _carries(self, number: int, at: int) -> bool:
        link, window = self.links[number], PERIOD + LEAD
        if link.until is not None and at > link.until:
            return False
        ends = [moment + window for moment in (self.revoked.get(number), self.muted) if moment is not None]
        return not link.listed or all(at < end for end in ends)

    # -- rights

    def holdings(self, key: str, action: str, numbers: tuple[int, ...]) -> list[Holding]:
        """Everything that chains of these links from the owner give to a key for an action."""
        alive = [self.links[number] for number in numbers]
        found: list[Holding] = []

        def walk(at_key: str, held: Holding, path: frozenset[str], *, delegate: bool) -> None:
            if at_key == key:
                found.append(held)
            if not delegate or at_key in path:
                return
            for link in alive:
                if link.issuer == at_key:
                    narrowed = _narrowed(held, link, action)
                    if narrowed is not None:
                        walk(link.subject, narrowed, path | {at_key}, delegate=link.delegate)

        walk("o", Holding((Right(frozenset(UIDS)),)), frozenset(), delegate=True)
        return found

    # -- what a reader gets

    def seen(
        self, key: str, row: Row, where: tuple[str, int] | None, numbers: tuple[int, ...]
    ) -> dict[str, int | None] | None:
        """The cells of an event that a key is shown by these links; nothing when the event is not delivered to it."""
        opened: set[str] = set()
        admitted = False
        for held in self.holdings(key, SUBSCRIBE, numbers):
            if held.holds(row):
                for right in held.rights:
                    if right.admits(row):
                        admitted, opened = True, opened | right.uids
        if not admitted or (where is not None and (where[0] not in opened or cell(row, where[0]) != where[1])):
            return None
        return {uid: cell(row, uid) for uid in opened}

    # -- what a publisher may have set

    def may_publish(self, key: str, row: Row, asked: Row, at: int) -> bool:
        """Whether an event that left an honest broker is one that its client's rights let out."""
        return any(
            held.holds(row)
            and any(
                right.admits(row)
                and all(
                    right.sets(uid, cell(row, uid))
                    and (cell(row, uid) in (None, cell(asked, uid)) or right.asked(uid) == {cell(row, uid)})
                    for uid in UIDS
                )
                for right in held.rights
            )
            for held in self.holdings(key, PUBLISH, self.alive(at, sure=False))
        )

    def may_stand(self, origin: str, sealed: Row, shown: Row, moments: tuple[int, ...]) -> bool:
        """Whether cells of an event of a dishonest origin are within what that origin may set, at some moment.

        A row that no right of the origin admits is not shown at all; conditions are its own broker's to ask.
        """
        for at in moments:
            rights = [
                right
                for held in self.holdings(origin, PUBLISH, self.alive(at, sure=False))
                for right in held.rights
                if right.admits(sealed)
            ]
            if rights and all(
                value is None or (value == cell(sealed, uid) and any(right.sets(uid, value) for right in rights))
                for uid, value in zip(UIDS, shown, strict=True)
            ):
                return True
        return False

    # -- who may hold keys

    def keys_for(self, broker: str, at: int, *, sure: bool) -> set[str]:
        """The attributes whose keys a key of the coalition may get: as the broker of a domain that the owner named.

        Rights on some rows, under conditions, or through hands that are no domain open no group. Which of its keys the
        coalition's domain calls brokers is its own affair; of ``xb`` it is sure, as long as that domain names no
        sub-domain beside it.
        """
        if not self.sequence.domain or (sure and (broker != "xb" or self.mixed)):
            return set()
        return {
            uid
            for number, link in enumerate(self.links)
            if (link.issuer, link.subject) == ("o", "x") and link.delegate and not link.conditions
            if self.in_force(number, at, sure=sure)
            for option in link.options
            if not option.demands
            for uid in option.uids
        }


def _narrowed(held: Holding, link: Link, action: str) -> Holding | None:
    """Hand a holding on by a link; a link that speaks of what is closed to its issuer gives nothing."""
    left: list[Right] = []
    new = {uid for uid, value in link.conditions if (uid, value) not in held.conditions}
    options = [option for option in link.options if action in option.actions]
    for right in held.rights:
        heard = [(option, met) for option in options if (met := right.meet(option)) is not None]
        said = new | {uid for option, met in heard for uid, _ in option.demands if met.asked(uid) != right.asked(uid)}
        if said <= right.uids:
            left += [met for _, met in heard]
    return Holding(tuple(left), held.conditions | set(link.conditions)) if left else None
