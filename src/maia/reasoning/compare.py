"""Six questions about what two sets of rights show: implies, equivalent, disjoint, always, never, errors.

What rights show is, for each attribute, a set of rows: those that meet the demands of one of the rights that open it.
The questions are about all rows that there could be, of real values and nulls, and are answered exactly; where an
answer is no, there is a row that shows it. A right with conditions on the event shows at most what its demands admit,
so it counts for what it could show on one side and for nothing on the other; where that leaves an answer open, or a
demand cannot be reasoned about, the question is not answered (`UncheckedError`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from maia.authority import Budget
from maia.errors import UncheckedError
from maia.events import Value, ValueType
from maia.reasoning.regions import Box, Demands, Space, steps

IN_DOUBT = "CONDITION_IN_DOUBT"
Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class AttributeRight:
    """One right on one attribute.

    Attributes:
        demands: What it asks of the row.
        sure: Whether that is all; a right with conditions on the event may show less.
    """

    demands: Demands = ()
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Witness(Generic[Place]):
    """A cell that shows that an answer is no.

    Attributes:
        place: Which attribute.
        row: The values of the row by uid; the others are null.
    """

    place: Place
    row: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Verdict(Generic[Place]):
    """Yes, or no with a cell that shows it. True in a condition only when yes."""

    witness: Witness[Place] | None

    def __bool__(self) -> bool:
        """Stand for the answer."""
        return self.witness is None


@dataclass(frozen=True, slots=True)
class Rights(Generic[Place]):
    """What somebody is shown: for each attribute of one type, the rights that open it.

    Attributes:
        kinds: The types of the attributes of the rows, by uid.
        offers: By attribute.
    """

    kinds: Mapping[str, ValueType]
    offers: Mapping[Place, Sequence[AttributeRight]]

    def of(self, place: Place) -> tuple[AttributeRight, ...]:
        """Give the rights on an attribute."""
        return tuple(self.offers.get(place, ()))


def implies(a: Rights[Place], b: Rights[Place]) -> Verdict[Place]:
    """Tell whether ``b`` shows whatever ``a`` shows.

    >>> from maia.authority import value_tag
    >>> from maia.events import AttributeType
    >>> kinds = {"7": AttributeType.INTEGER}
    >>> low, all_ = (Rights(kinds, {"7": [AttributeRight(demands)]}) for demands in ((("7", value_tag("<", 5)),), ()))
    >>> bool(implies(low, all_)), implies(all_, low).witness
    (True, Witness(place='7', row={'7': 5}))

    Raises:
        UncheckedError: It cannot be told.
    """
    return _first(a.offers, lambda place: _left(a.kinds, a.of(place), b.of(place), steps()))


def equivalent(a: Rights[Place], b: Rights[Place]) -> Verdict[Place]:
    """Tell whether both show the same; where not, the cell is one that one of them shows.

    Raises:
        UncheckedError: It cannot be told.
    """
    return implies(a, b) and implies(b, a)


def disjoint(a: Rights[Place], b: Rights[Place]) -> Verdict[Place]:
    """Tell whether no cell is shown by both.

    Raises:
        UncheckedError: It cannot be told.
    """
    return _first(a.offers, lambda place: _shared(a.kinds, a.of(place), b.of(place)))


def always(rights: Rights[Place], place: Place) -> Verdict[Place]:
    """Tell whether an attribute is shown in every row.

    Raises:
        UncheckedError: It cannot be told.
    """
    return _first((place,), lambda one: _left(rights.kinds, (AttributeRight(),), rights.of(one), steps()))


def never(rights: Rights[Place], place: Place) -> Verdict[Place]:
    """Tell whether an attribute is shown in no row.

    Raises:
        UncheckedError: It cannot be told.
    """
    return _first((place,), lambda one: _shared(rights.kinds, (AttributeRight(),), rights.of(one)))


def errors(rights: Rights[Place]) -> tuple[tuple[Place, str], ...]:
    """List the demands that no value of their attribute's type can meet: attribute opened, attribute asked about."""
    found: dict[tuple[Place, str], None] = {}
    for place, offers in rights.offers.items():
        space = Space.of(rights.kinds, (offer.demands for offer in offers))
        for offer in offers:
            for uid, tag in offer.demands:
                if not space.cells(uid).masks[tag]:
                    found[place, uid] = None
    return tuple(found)


def _first(places: Iterable[Place], look: Callable[[Place], Mapping[str, Value] | None]) -> Verdict[Place]:
    for place in places:
        row = look(place)
        if row is not None:
            return Verdict(Witness(place, row))
    return Verdict(None)


def _left(
    kinds: Mapping[str, ValueType], a: Sequence[AttributeRight], b: Sequence[AttributeRight], budget: Budget
) -> Mapping[str, Value] | None:
    """Give a row that ``a`` shows and ``b`` does not."""
    space = Space.of(kinds, (offer.demands for offer in (*a, *b)))
    surely, perhaps = (_boxes(space, b, sure=sure) for sure in (True, False))
    found = _outside(space, _boxes(space, a, sure=True), perhaps, budget)
    if found is None and _outside(space, _boxes(space, a, sure=False), surely, budget) is not None:
        raise _in_doubt()
    return None if found is None else space.row(found)


def _outside(space: Space, boxes: Sequence[Box], covers: Sequence[Box], budget: Budget) -> Box | None:
    return next((left for box in boxes if (left := space.outside(box, covers, budget)) is not None), None)


def _shared(
    kinds: Mapping[str, ValueType], a: Sequence[AttributeRight], b: Sequence[AttributeRight]
) -> Mapping[str, Value] | None:
    """Give a row that both show."""
    space = Space.of(kinds, (offer.demands for offer in (*a, *b)))
    for sure in (True, False):
        for one in _boxes(space, a, sure=sure):
            for other in _boxes(space, b, sure=sure):
                both = space.common(one, other)
                if both is not None:
                    if not sure:
                        raise _in_doubt()
                    return space.row(both)
    return None


def _boxes(space: Space, offers: Iterable[AttributeRight], *, sure: bool) -> list[Box]:
    """Give what rights show: surely, or perhaps."""
    found = (space.box(offer.demands) for offer in offers if offer.sure or not sure)
    return [box for box in found if box is not None]


def _in_doubt() -> UncheckedError:
    return UncheckedError("the answer depends on a condition on the event, which is not looked into", code=IN_DOUBT)
