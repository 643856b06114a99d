"""Sets of rows, exactly: unions of boxes over finitely many kinds of values.

A right shows an attribute in the rows that meet its demands, each on one attribute. For each attribute the demands of
all rights that are compared sort its values into cells (`maia.filters.partition`), and the null is one more, which
meets none. A box is then a set of cells for each attribute that is asked about, and whether some row lies in one union
of boxes and outside another is found by cutting boxes apart. Every row that is found is a row of real values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from maia.authority import Budget, Tag
from maia.events import ArrayOf, AttributeType, StructOf, Value, ValueType
from maia.filters import partition
from maia.reasoning.demands import demand_of

Demands = tuple[tuple[str, Tag], ...]
"""What a right asks of a row: tags on values, by uid."""
Row = Mapping[str, Value]
"""The values of a row by uid; an attribute that is not there is null."""
MAX_STEPS = 200_000
_NULL = 1  # the bit of the cell that holds the null


@dataclass(frozen=True, slots=True)
class _Cells:
    """The kinds of values of one attribute: bit 0 is the null, bit n the n-th value."""

    values: tuple[Value | None, ...]
    masks: dict[Tag, int]

    @property
    def whole(self) -> int:
        return (1 << len(self.values)) - 1


Box = dict[str, int]


@dataclass(slots=True)
class Space:
    """All rows of a type, as far as some demands tell them apart.

    Attributes:
        kinds: The types of the attributes, by uid.
    """

    kinds: Mapping[str, ValueType]
    _tags: dict[str, dict[Tag, None]] = field(default_factory=dict)
    _cells: dict[str, _Cells] = field(default_factory=dict)

    @classmethod
    def of(cls, kinds: Mapping[str, ValueType], rights: Iterable[Demands]) -> Space:
        """Make the space in which these rights can be compared."""
        space = cls(kinds)
        for demands in rights:
            for uid, tag in demands:
                space._tags.setdefault(uid, {})[tag] = None
        return space

    def box(self, demands: Demands) -> Box | None:
        """Give the rows that meet all demands; nothing when no row does.

        Raises:
            UncheckedError: A demand cannot be reasoned about.
        """
        found: Box = {}
        for uid, tag in demands:
            cells = self.cells(uid)
            found[uid] = found.get(uid, cells.whole) & cells.masks[tag]
            if not found[uid]:
                return None
        return found

    def cells(self, uid: str) -> _Cells:
        """Sort the values of an attribute; once."""
        known = self._cells.get(uid)
        if known is None:
            known = self._cells[uid] = self._sort(uid)
        return known

    def _sort(self, uid: str) -> _Cells:
        tags = tuple(self._tags.get(uid, ()))
        kind = self.kinds.get(uid)
        if kind is None:  # of no known version: no row has a value there
            return _Cells((None,), dict.fromkeys(tags, 0))
        demands = [demand_of(tag, kind) for tag in tags]
        if kind.base is AttributeType.BINARY:
            return _Cells(
                (None, _whole(kind)), {tag: 2 if demand else 0 for tag, demand in zip(tags, demands, strict=True)}
            )
        found = partition(kind.base, demands)
        masks = {
            tag: sum(2 << place for place, cell in enumerate(found) if number in cell.meets)
            for number, tag in enumerate(tags)
        }
        return _Cells((None, *(cell.value for cell in found)), masks)

    def row(self, box: Box) -> dict[str, Value]:
        """Give a row of a box, with a value wherever it may have one."""
        row: dict[str, Value] = {}
        for uid in sorted(self.kinds):
            cells = self.cells(uid)
            mask = box.get(uid, cells.whole)
            chosen = (mask & ~_NULL) or mask
            value = cells.values[(chosen & -chosen).bit_length() - 1]
            if value is not None:
                row[uid] = value
        return row

    def common(self, one: Box, other: Box) -> Box | None:
        """Give the rows of both boxes; nothing when there are none."""
        found = dict(one)
        for uid, mask in other.items():
            found[uid] = found.get(uid, self.cells(uid).whole) & mask
            if not found[uid]:
                return None
        return found

    def outside(self, box: Box, covers: Sequence[Box], budget: Budget) -> Box | None:
        """Give rows of a box that lie in none of the others; nothing when there are none.

        Raises:
            UncheckedError: It takes more steps than the budget allows.
        """
        todo = [(box, [cover for cover in covers if self.common(box, cover) is not None])]
        while todo:
            rest, near = todo.pop()
            budget.spend(1 + len(near))
            if not near:
                return rest
            cover = max(near, key=lambda item: self._share(rest, item))
            others = [item for item in near if item is not cover]
            for uid, mask in cover.items():
                here = rest.get(uid, self.cells(uid).whole)
                if here & ~mask:
                    piece = {**rest, uid: here & ~mask}
                    todo.append((piece, [item for item in others if self.common(piece, item) is not None]))
                rest = {**rest, uid: here & mask}
        return None

    def _share(self, box: Box, cover: Box) -> float:
        """Tell how much of a box another one takes, roughly."""
        share = 1.0
        for uid, mask in cover.items():
            here = box.get(uid, self.cells(uid).whole)
            share *= (here & mask).bit_count() / here.bit_count()
        return share


def _whole(kind: ValueType) -> Value:
    """Give a value of a type that is sealed whole."""
    if isinstance(kind, ArrayOf):
        return []
    return {} if isinstance(kind, StructOf) else b"\0"


def steps() -> Budget:
    """Start the budget of one comparison."""
    return Budget(steps=MAX_STEPS, signatures=1)
