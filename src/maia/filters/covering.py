"""Comparing filters without looking at events: the paper's relations (3), (4), (6) and (7), decided exactly.

Each relation is defined over *all possible notifications*: maps from attribute names to values of their types, the
empty one included. Since the constraints of different attributes do not interact, each reduces to questions per
attribute:

- (3) as subscriptions: ``b`` is contradictory, or ``a`` names only attributes that ``b`` names and for each of them the
  values ``b`` admits are among those ``a`` admits. (A notification may lack any attribute ``b`` does not name.)
- (4) strictly: ``b`` is contradictory, or both name the same attributes and the same inclusion holds.
- (6), (7) as advertisements: for each attribute ``b`` names, the union of what its constraints admit lies within the
  union of what the constraints of ``a`` admit. (7) rests on formula (5), hence equals (6).

A contradictory filter matches nothing and is covered by every filter. Answers are exact for every type, `suffix` and
`contains` included; the tests hold them against brute force and against an SMT solver.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from maia.errors import UncheckedError
from maia.filters import sets
from maia.filters.evaluate import Relation
from maia.filters.shapes import Shape, constraints_of, join_shapes, shape_of
from maia.filters.tree import Operator, TypedConstraint, TypedFilter


def covers(a: TypedFilter, b: TypedFilter, relation: Relation = Relation.SUBSCRIPTION) -> bool:
    """Say whether every notification that ``b`` covers is covered by ``a``.

    >>> from maia.filters import compile_filter
    >>> types = {"x": "integer"}
    >>> covers(compile_filter("x = 4", types), compile_filter("x > 3 and x < 5", types))
    True
    >>> covers(compile_filter("x > 5", types), compile_filter("x > 4", types))
    False

    Args:
        a: The filter that should be the wider one.
        b: The filter that should be the narrower one.
        relation: Relation (3), (4), (6) or (7), by the way the filters are read.

    Returns:
        Whether the relation holds. It is reflexive and transitive for every relation.

    Raises:
        UncheckedError: Texts and patterns are too large to be compared; treat as not covered.
    """
    match relation:
        case Relation.SUBSCRIPTION:
            return _covers_subscription(a, b, strict=False)
        case Relation.STRICT_SUBSCRIPTION:
            return _covers_subscription(a, b, strict=True)
        case Relation.ADVERTISEMENT | Relation.STRICT_ADVERTISEMENT:
            return _covers_advertisement(a, b)
        case _:
            assert_never(relation)


def surely_covers(a: TypedFilter, b: TypedFilter) -> bool:
    """Relation (3), where filters too large to be compared do not cover each other."""
    try:
        return covers(a, b)
    except UncheckedError:
        return False


def satisfiable(filter_: TypedFilter) -> bool:
    """Say whether any event matches the filter.

    >>> from maia.filters import compile_filter
    >>> satisfiable(compile_filter("x > 3 and x < 4", {"x": "integer"}))
    False
    >>> satisfiable(compile_filter("x > 3.0 and x < 4.0", {"x": "float"}))
    True

    Args:
        filter_: The typed filter, read as a conjunction.

    Returns:
        False exactly when the constraints contradict one another.

    Raises:
        UncheckedError: Texts and patterns are too large to be compared.
    """
    return all(_possible(constraints) for constraints in filter_.by_attribute().values())


def equivalent(a: TypedFilter, b: TypedFilter, relation: Relation = Relation.SUBSCRIPTION) -> bool:
    """Say whether two filters cover each other, hence cover the same notifications.

    >>> from maia.filters import compile_filter
    >>> types = {"x": "integer"}
    >>> equivalent(compile_filter("x >= 4 and x <= 4", types), compile_filter("x in (4)", types))
    True
    """
    return covers(a, b, relation) and covers(b, a, relation)


def intersect(*filters: TypedFilter) -> TypedFilter:
    """The filter that matches what all of them match: their constraints together, without doubles.

    A conflict on one attribute leaves a filter that admits nothing at all; it never drops the attribute (choice C30).

    >>> from maia.filters import compile_filter, format_filter
    >>> types = {"x": "integer"}
    >>> format_filter(intersect(compile_filter("x > 1", types), compile_filter("x > 1 and x < 9", types)))
    'x > 1 and x < 9'

    Args:
        filters: Typed filters over the same event type.

    Returns:
        Their conjunction, in the order of first appearance.

    Raises:
        FilterTypeError: The filters use one attribute with two types.
    """
    unique = dict.fromkeys(constraint for filter_ in filters for constraint in filter_.constraints)
    return TypedFilter(constraints=tuple(unique))


def merge(a: TypedFilter, b: TypedFilter) -> TypedFilter | None:
    """One filter that matches exactly what either matches, or None when the language has none.

    The result is never wider than the two: a merge that would admit more is not made.

    >>> from maia.filters import compile_filter, format_filter
    >>> types = {"x": "integer", "s": "string"}
    >>> low = compile_filter("s = 'a' and x > 0 and x <= 5", types)
    >>> high = compile_filter("s = 'a' and x > 5 and x < 9", types)
    >>> format_filter(merge(low, high))
    "s = 'a' and x > 0 and x < 9"
    >>> merge(compile_filter("x < 3", types), compile_filter("x > 9", types)) is None
    True

    Args:
        a: A typed filter.
        b: Another over the same event type.

    Returns:
        The exact union, or None.
    """
    if covers(a, b):
        return a
    if covers(b, a):
        return b
    first, second = shapes(a), shapes(b)
    if first.keys() != second.keys():
        return None
    different = [name for name, shape in first.items() if not _same(shape, second[name])]
    if len(different) != 1:
        return None
    name = different[0]
    one, other = first[name], second[name]
    if (one.endings, one.parts) != (other.endings, other.parts):
        return None
    united = constraints_of(
        name, Shape(type=one.type, cuts=sets.union(one.cuts, other.cuts), endings=one.endings, parts=one.parts)
    )
    if united is None:
        return None
    kept = a.by_attribute()
    return TypedFilter(constraints=tuple(c for key in first for c in (united if key == name else kept[key])))


def simplify(filter_: TypedFilter) -> TypedFilter:
    """An equivalent filter with as few constraints per attribute as the language allows.

    What is contradictory, or has no shorter form, is returned as it is.

    >>> from maia.filters import compile_filter, format_filter
    >>> format_filter(simplify(compile_filter("x > 3 and x < 5 and x != 9", {"x": "integer"})))
    'x = 4'

    Args:
        filter_: The typed filter, read as a conjunction.

    Returns:
        A filter that matches the same events, attributes in the order of their first appearance.
    """
    result: list[TypedConstraint] = []
    for attribute, constraints in filter_.by_attribute().items():
        shape = join_shapes(constraints)
        shorter = constraints_of(attribute, shape) if shape.possible else None
        result += constraints if shorter is None or len(shorter) > len(constraints) else shorter
    return TypedFilter(constraints=tuple(result))


def shapes(filter_: TypedFilter) -> dict[str, Shape]:
    """What a conjunction admits, attribute by attribute."""
    return {attribute: join_shapes(constraints) for attribute, constraints in filter_.by_attribute().items()}


def _covers_subscription(a: TypedFilter, b: TypedFilter, *, strict: bool) -> bool:
    narrow = shapes(b)
    if not all(shape.possible for shape in narrow.values()):
        return True
    wide = shapes(a)
    if not wide.keys() <= narrow.keys() or (strict and wide.keys() != narrow.keys()):
        return False
    return all(narrow[name].type is shape.type and narrow[name].within(shape) for name, shape in wide.items())


def _covers_advertisement(a: TypedFilter, b: TypedFilter) -> bool:
    wide = a.by_attribute()
    for attribute, constraints in b.by_attribute().items():
        alternatives = _alternatives(wide.get(attribute, ()), constraints[0])
        if not all(shape_of(constraint).within_any(alternatives) for constraint in constraints):
            return False
    return True


def _alternatives(constraints: Iterable[TypedConstraint], like: TypedConstraint) -> list[Shape]:
    return [shape_of(constraint) for constraint in constraints if constraint.type is like.type]


def _possible(constraints: tuple[TypedConstraint, ...]) -> bool:
    """Whether some value satisfies all constraints of one attribute; one equality alone always has its value."""
    alone = len(constraints) == 1 and constraints[0].operator in {Operator.EQUAL, Operator.IN, Operator.ANY}
    return alone or join_shapes(constraints).possible


def _same(first: Shape, second: Shape) -> bool:
    return first == second or (first.within(second) and second.within(first))
