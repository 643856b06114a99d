"""Whose attribute it is: the right and the key that an inherited attribute follows.

A child's events hold the attributes of the version that it extends beside its own. Rules kept here:

- an attribute belongs to the type that defines it, in events of children too: rights on that type open and set it, and
  the key groups of that type seal it. A right on the child says nothing of what it inherits, a right on the parent
  nothing of what the child adds;
- a clause counts for the attributes of its own type, and for none when its demands, bounds or conditions ask for
  others: whoever gives rights on a child need not hold what the child inherits, and may not speak of it (the law of
  speech);
- a child's event is an event of the parent as well, with what known versions of the child take over from it and nothing
  else, provided that it carries some of it: whoever may set none of the parent's attributes publishes the child alone;
- a uid that known versions of a type hold from two types, itself included, is nobody's, and neither sealed nor opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from maia.authority import VerifiedEventType, attributes_of, uids_tag
from maia.encryption import KeyGroupId
from maia.events import TypeId
from maia.kernel.clauses import Clause

Holder = TypeId | None
"""A type that attributes are inherited from; ``None`` for the type of the events itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """From which types the attributes of a type's events come.

    Attributes:
        type_id: The type as which the events are read or published.
        holders: By uid, the type of an inherited attribute; ``None`` where known versions contradict each other.
        as_parent: Whether the events are a child's, of which only the attributes in ``holders`` are seen.
    """

    type_id: TypeId
    holders: Mapping[str, TypeId | None] = field(default_factory=dict)
    as_parent: bool = False

    def type_of(self, uid: str) -> TypeId | None:
        """Tell which type an attribute belongs to; ``None`` when it is not to be seen."""
        return self.holders.get(uid, None if self.as_parent else self.type_id)

    def group(self, label: bytes) -> KeyGroupId | None:
        """Name the key group of a block; ``None`` for a block that is not to be opened."""
        holder = self.type_of(label.decode("ascii", "backslashreplace"))
        return None if holder is None else KeyGroupId(holder, label)

    def parts(self, uids: Iterable[str]) -> dict[Holder, list[str]]:
        """Sort attributes by whose they are, the type's own first; those of nobody are left out."""
        found: dict[Holder, list[str]] = {None: []}
        for uid in uids:
            holder = self.type_of(uid)
            if holder is not None:
                found.setdefault(None if holder == self.type_id else holder, []).append(uid)
        return found

    def of_child(self, child: Descent) -> Descent:
        """Tell what is seen of a child's events, by whoever reads them as events of this type."""
        shown = {self.type_id, *self.holders.values()} - {None}
        holders = {uid: holder for uid, holder in child.holders.items() if holder in shown}
        return Descent(type_id=self.type_id, holders=holders, as_parent=True)


def parts_of(uids: Iterable[str], descent: Descent | None) -> dict[Holder, list[str]]:
    """Sort attributes by whose they are; all are the type's own where nothing is inherited."""
    return {None: list(uids)} if descent is None else descent.parts(uids)


def descent_of(type_id: TypeId, versions: Iterable[VerifiedEventType]) -> Descent:
    """Put together from which types the known versions of a type take their attributes."""
    known = tuple(versions)
    own = {uid for version in known for uid in version.definition.uids}
    holders: dict[str, TypeId | None] = {}
    for version in known:
        for ancestor in version.lineage[1:]:
            holder = ancestor.definition.type_id
            for uid in ancestor.definition.uids:
                # SECURITY: a block says its uid and no version, so one uid of two types could be either's.
                clash = uid in own or holders.get(uid, holder) != holder
                holders[uid] = None if clash else holder
    return Descent(type_id=type_id, holders=holders)


def confined(clauses: Iterable[Clause], uids: Iterable[str], *, holder: Holder) -> tuple[Clause, ...]:
    """Keep of clauses on one type of a lineage what they say of that type's own attributes.

    Args:
        clauses: Derived from rights on the type.
        uids: Its own attributes.
        holder: The type, when the events are those of a type that extends it.
    """
    own = frozenset(str(uid) for uid in uids)
    found = []
    for clause in clauses:
        opened = sorted(uid for uid in own if clause.opens(uid))
        # SECURITY: rows must not be chosen, nor conditions asked, by attributes that another type's rights open.
        if _named(clause) <= own and (opened or not own):
            found.append(replace(clause, cells=replace(clause.cells, uids=uids_tag(opened)), holder=holder))
    return tuple(found)


def _named(clause: Clause) -> frozenset[str]:
    """List the attributes that a clause asks about; a condition that may ask about any asks about ``*``."""
    found = {uid for uid, _ in clause.constraints}
    found.update(uid for bound in clause.cells.bounds for uid in bound.filter.attributes)
    for condition in clause.conditions:
        named = attributes_of(condition)
        found |= {"*"} if named is None else named
    return frozenset(found)
