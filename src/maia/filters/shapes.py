"""What the constraints on one attribute admit, as a set: the normal form in which filters are compared.

For every type but string that is a union of intervals. For strings, order, equality, `in` and `prefix` are intervals
too, while `suffix` and `contains` stay beside them as texts a value must end with or contain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from maia.events import AttributeType
from maia.filters import sets
from maia.filters.patterns import TextDemand, inhabited
from maia.filters.sets import Cut, Cuts
from maia.filters.tree import Operator, TypedConstraint
from maia.filters.values import Key, from_key, sort_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The values of one type that lie in the intervals, end with every ending and contain every part."""

    type: AttributeType
    cuts: Cuts
    endings: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()

    @property
    def wanted(self) -> TextDemand:
        """The texts the shape asks for, in a fixed order."""
        return TextDemand(endings=tuple(sorted(self.endings)), parts=tuple(sorted(self.parts)))

    @property
    def possible(self) -> bool:
        """Whether any value has this shape."""
        return inhabited(self.cuts, self.wanted)

    def within(self, other: Shape) -> bool:
        """Whether every value of this shape has the other shape as well."""
        wanted = self.wanted
        if inhabited(sets.difference(self.cuts, other.cuts, self.type), wanted):
            return False
        if any(inhabited(self.cuts, replace(wanted, not_endings=(ending,))) for ending in sorted(other.endings)):
            return False
        return not any(inhabited(self.cuts, replace(wanted, not_parts=(part,))) for part in sorted(other.parts))

    def within_any(self, others: Sequence[Shape]) -> bool:
        """Whether every value of this shape has at least one of the other shapes, each that of one constraint."""
        # A shape of one constraint is an interval set, one ending, or one part; never a mixture.
        endings = tuple(sorted({ending for other in others for ending in other.endings}))
        parts = tuple(sorted({part for other in others for part in other.parts}))
        plain = [other.cuts for other in others if not other.endings and not other.parts]
        rest = sets.difference(self.cuts, sets.union_of([sets.EMPTY, *plain]), self.type)
        return not inhabited(rest, replace(self.wanted, not_endings=endings, not_parts=parts))


def shape_of(constraint: TypedConstraint) -> Shape:
    """The values one constraint admits."""
    kind = constraint.type
    everything = sets.everything(kind)
    operator = constraint.operator
    if operator is Operator.ANY:
        return Shape(type=kind, cuts=everything)
    if operator is Operator.IN:
        return Shape(type=kind, cuts=sets.points((sort_key(value, kind) for value in constraint.values), kind))
    if operator is Operator.SUFFIX:
        return Shape(type=kind, cuts=everything, endings=frozenset({str(constraint.value)}))
    if operator is Operator.CONTAINS:
        return Shape(type=kind, cuts=everything, parts=frozenset({str(constraint.value)}))
    return Shape(type=kind, cuts=_interval(constraint))


def join_shapes(constraints: Iterable[TypedConstraint]) -> Shape:
    """The values all the constraints of one attribute admit together; there is at least one constraint."""
    shapes = [shape_of(constraint) for constraint in constraints]
    if len(shapes) == 1:
        return shapes[0]
    return Shape(
        type=shapes[0].type,
        cuts=sets.intersection_of([shape.cuts for shape in shapes]),
        endings=frozenset[str]().union(*(shape.endings for shape in shapes)),
        parts=frozenset[str]().union(*(shape.parts for shape in shapes)),
    )


def constraints_of(attribute: str, shape: Shape) -> tuple[TypedConstraint, ...] | None:
    """Constraints whose conjunction is the shape, as few as the language allows; None when it has none.

    A union of intervals with a gap wider than one value has no conjunction, and neither has the empty set.
    """
    patterns = [
        *((Operator.SUFFIX, text) for text in sorted(shape.endings)),
        *((Operator.CONTAINS, text) for text in sorted(shape.parts)),
    ]
    tail = tuple(
        TypedConstraint(attribute=attribute, type=shape.type, operator=operator, values=(text,))
        for operator, text in patterns
    )
    head = _order_constraints(attribute, shape.type, shape.cuts)
    if head is None:
        return None
    if tail and len(head) == 1 and head[0].operator is Operator.ANY:
        return tail
    return (*head, *tail)


def _interval(constraint: TypedConstraint) -> Cuts:
    kind = constraint.type
    key = sort_key(constraint.value, kind)
    low, high = sets.bottom(kind), sets.TOP
    match constraint.operator:
        case Operator.EQUAL:
            return sets.points((key,), kind)
        case Operator.NOT_EQUAL:
            return sets.complement(sets.points((key,), kind), kind)
        case Operator.LESS:
            return sets.interval(low, sets.before(key))
        case Operator.AT_MOST:
            return sets.interval(low, sets.after(key, kind))
        case Operator.GREATER:
            return sets.interval(sets.after(key, kind), high)
        case Operator.AT_LEAST:
            return sets.interval(sets.before(key), high)
        case _:
            return sets.prefixed(str(key))


def _order_constraints(attribute: str, kind: AttributeType, cuts: Cuts) -> tuple[TypedConstraint, ...] | None:
    """Write a set of intervals as a conjunction, or None."""
    if not cuts:
        return None

    def constraint(operator: Operator, *keys: Key) -> TypedConstraint:
        values = tuple(from_key(key, kind) for key in keys)
        return TypedConstraint(attribute=attribute, type=kind, operator=operator, values=values)

    if cuts == sets.everything(kind):
        return (constraint(Operator.ANY),)
    single = [sets.point_of(low, high, kind) for low, high in sets.intervals(cuts)]
    keys = [key for key in single if key is not None]
    if len(keys) == len(single):
        return (constraint(Operator.EQUAL, keys[0]),) if len(keys) == 1 else (constraint(Operator.IN, *keys),)
    result: list[TypedConstraint] = []
    low, high = cuts[0], cuts[-1]
    if low != sets.bottom(kind):
        result.append(constraint(*_lower(low, kind)))
    if high != sets.TOP:
        result.append(constraint(Operator.AT_MOST if high[2] else Operator.LESS, high[1]))
    for hole_low, hole_high in zip(cuts[1:-1:2], cuts[2:-1:2], strict=True):
        hole = sets.point_of(hole_low, hole_high, kind)
        if hole is None:
            return None
        result.append(constraint(Operator.NOT_EQUAL, hole))
    return tuple(result)


def _lower(low: Cut, kind: AttributeType) -> tuple[Operator, Key]:
    """A lower end as people write it: after 3 rather than from 4 on."""
    _, key, side = low
    if side:
        return Operator.GREATER, key
    if kind is not AttributeType.DECIMAL:
        previous = sets.predecessor(key, kind)
        if previous is not None:
            return Operator.GREATER, previous
    return Operator.AT_LEAST, key
