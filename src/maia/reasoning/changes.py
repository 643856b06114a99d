"""What changes from one world to another: who gains, loses or keeps less of which attribute.

Two moments, a certificate more or a certificate less: each is a pair of worlds, and the answer is the difference of
what everybody holds in them, decided in both. Where somebody keeps an attribute, but in other rows, a row shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from maia.authority import Action
from maia.errors import UncheckedError
from maia.events import EventType, TypeId, Value
from maia.kernel import Clause
from maia.principals import CertificateId, KeyId
from maia.reasoning.cells import shown
from maia.reasoning.compare import AttributeRight, Rights, Witness, implies
from maia.reasoning.world import World

ON_CELLS = (Action.PUBLISH, Action.SUBSCRIBE)


@dataclass(frozen=True, slots=True, order=True)
class HeldAttribute:
    """An attribute that somebody reads or writes in some row: who, how, of which type, which attribute."""

    key: KeyId
    action: str
    type_id: TypeId
    uid: str


@dataclass(frozen=True, slots=True)
class Changed:
    """An attribute that somebody keeps, but not in the same rows: a row in which it is shown in one world alone."""

    held: HeldAttribute
    row: Mapping[str, Value] = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The difference between two worlds.

    Attributes:
        began: Attributes that are held in the second world alone, sorted.
        ended: Attributes that are held in the first world alone, sorted.
        widened: Those that are held in both, in more rows in the second, each with one of them.
        narrowed: Those that are held in both, in fewer rows in the second, each with one that is lost.
        doubts: What could not be told: of whom, and the code of what stood in the way.
        unknown: Certificates of either world that wait for a statement.
    """

    began: tuple[HeldAttribute, ...]
    ended: tuple[HeldAttribute, ...]
    widened: tuple[Changed, ...] = ()
    narrowed: tuple[Changed, ...] = ()
    doubts: tuple[tuple[KeyId, str], ...] = ()
    unknown: tuple[CertificateId, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anything changes."""
        return bool(self.began or self.ended or self.widened or self.narrowed)

    @property
    def complete(self) -> bool:
        """Whether nothing was left in doubt."""
        return not self.doubts and not self.unknown


@dataclass(slots=True)
class _View:
    """What one world gives to everybody."""

    world: World
    doubts: dict[KeyId, str] = field(default_factory=dict)
    unknown: set[CertificateId] = field(default_factory=set)

    def keys(self, action: Action, version: EventType) -> frozenset[KeyId]:
        found = self.world.candidates(action, version)
        self.unknown.update(found.unknown)
        return frozenset(found.keys)

    def clauses(self, key: KeyId, action: Action, version: EventType) -> tuple[Clause, ...]:
        """Decide for a principal."""
        try:
            return self.world.clauses(key, action, version)
        except UncheckedError as error:
            self.doubts[key] = error.code
            return ()

    def holds(self, key: KeyId, clauses: tuple[Clause, ...], action: Action, version: EventType, uid: str) -> bool:
        """Tell whether an attribute is open in some row by a certificate; no certificate gives or takes an owner's."""
        if any(not clause.chain and clause.opens(uid) for clause in clauses):
            return False
        try:
            return shown(self.world, clauses, action, version, uid) is not None
        except UncheckedError as error:
            self.doubts[key] = error.code
            return False


def changes(before: World, after: World, *, among: Collection[KeyId] | None = None) -> Changes:
    """Compare what everybody holds in two worlds.

    Args:
        before: The first.
        after: The second.
        among: Look at these principals only.

    Raises:
        UncheckedError: There is more evidence than one search may look at.
    """
    views = _View(before), _View(after)
    held: tuple[set[HeldAttribute], set[HeldAttribute]] = set(), set()
    offers: dict[HeldAttribute, tuple[list[AttributeRight], list[AttributeRight]]] = {}
    for version, worlds in _all_versions(before, after):
        for action in ON_CELLS:
            keys = frozenset[KeyId]().union(*(views[side].keys(action, version) for side in worlds))
            for key in sorted(keys if among is None else keys & frozenset(among)):
                clauses = [views[side].clauses(key, action, version) if side in worlds else () for side in (0, 1)]
                for item in version.attributes:
                    what = HeldAttribute(key, action.value, version.type_id, str(item.uid))
                    for side, view in enumerate(views):
                        if clauses[side] and view.holds(key, clauses[side], action, version, what.uid):
                            held[side].add(what)
                        offers.setdefault(what, ([], []))[side].extend(offers_of(clauses[side], what.uid))
    doubts = {**views[0].doubts, **views[1].doubts}
    narrowed, widened = (
        tuple(_moved(before, offers, sorted(held[0] & held[1]), doubts, back=back)) for back in (False, True)
    )
    return Changes(
        began=tuple(sorted(held[1] - held[0])), ended=tuple(sorted(held[0] - held[1])),
        widened=widened, narrowed=narrowed, doubts=tuple(sorted(doubts.items())),
        unknown=tuple(sorted(views[0].unknown | views[1].unknown)),
    )  # fmt: skip


def ends(world: World, certificates: Iterable[CertificateId]) -> Changes:
    """Tell what ends with certificates: what nobody would hold any more without them.

    Only principals are looked at to whom some chain of certificates leads from these.

    Raises:
        UncheckedError: There is more evidence than one search may look at.
    """
    gone = frozenset(certificates)
    return changes(world, world.without(gone), among=world.pool.led_to(gone))


def offers_of(clauses: Iterable[Clause], uid: str) -> list[AttributeRight]:
    """Give what clauses show of an attribute, as rights that can be compared.

    Of an inherited attribute a clause on the type itself must admit the row as well.
    """
    held = tuple(clauses)
    own = [clause for clause in held if clause.holder is None]
    found: list[AttributeRight] = []
    for opener in held:
        if opener.opens(uid):
            for group in [(opener,)] if opener.holder is None else [(opener, clause) for clause in own]:
                demands = tuple(demand for clause in group for demand in clause.constraints)
                sure = not any(clause.conditions or clause.cells.bounds for clause in group)
                found.append(AttributeRight(demands, sure))
    return found


def _moved(
    world: World,
    offers: Mapping[HeldAttribute, tuple[list[AttributeRight], list[AttributeRight]]],
    kept: Iterable[HeldAttribute],
    doubts: dict[KeyId, str],
    *,
    back: bool,
) -> Iterable[Changed]:
    for what in kept:
        first, second = offers[what][back], offers[what][not back]
        if set(first) <= set(second):
            continue
        kinds = world.sessions.kinds(what.type_id)
        one, other = (Rights(kinds, {what: side}) for side in (first, second))
        try:
            witness: Witness[HeldAttribute] | None = implies(one, other).witness
        except UncheckedError as error:
            doubts[what.key] = error.code
            continue
        if witness is not None:
            yield Changed(what, witness.row)


def _all_versions(before: World, after: World) -> list[tuple[EventType, tuple[int, ...]]]:
    """List the versions that are known in either world, with the worlds that know them."""
    found: dict[object, tuple[EventType, list[int]]] = {}
    for side, world in enumerate((before, after)):
        for version in world.versions():
            found.setdefault(version.name, (version, []))[1].append(side)
    return [(version, tuple(sides)) for version, sides in found.values()]
