"""Access-control filters in words, as a rule of a policy writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from maia.authority import Bounds, parse_tag
from maia.encoding import Sexp, printable
from maia.errors import MaiaError, UsageError
from maia.events import EventType
from maia.filters import Bound, TypedFilter, format_filter
from maia.policy import TypeCatalogue, check_bounds, compile_bounds, parse_bound


def describe_bounds(bounds: Iterable[Bound], names: Mapping[str, str]) -> str:
    """Say what all of some bounds, over uids, allow.

    >>> from maia.filters import BoundKind, compile_filter
    >>> cheap = Bound(filter=compile_filter('"2" < 100', {"2": "integer"}), kind=BoundKind.UPPER)
    >>> describe_bounds([cheap], {"2": "price"})
    'upper (price < 100)'
    """
    return " ".join(f"{bound.kind} ({', '.join(_constraints(bound, names))})" for bound in bounds)


def parse_bounds(texts: Sequence[str], known: tuple[EventType, ...], uids: Sequence[str] | None) -> tuple[Bound, ...]:
    """Read access-control filters by the definitions of the one type that they are about.

    Raises:
        UsageError: No type is known here: ``RIGHT_OPTIONS``.
        MalformedError: They are none, or nothing could meet them.
    """
    if not texts:
        return ()
    if not known:
        raise UsageError("a bound names attributes of one type that is kept here", code="RIGHT_OPTIONS")
    (described,) = TypeCatalogue(known).types()
    found = compile_bounds([parse_bound(text) for text in texts], described)
    check_bounds(found, described, uids)
    return found


def bounds_of(form: Sexp) -> tuple[Bound, ...]:
    """Read the bounds that stand in one alternative of a right; none where there is something else."""
    try:
        found = parse_tag(form)
    except MaiaError:
        return ()
    return found.members if isinstance(found, Bounds) else ()


def _constraints(bound: Bound, names: Mapping[str, str]) -> Iterable[str]:
    for item in bound.filter.constraints:
        named = replace(item, attribute=names.get(item.attribute, item.attribute))
        yield printable(format_filter(TypedFilter(constraints=(named,))))
