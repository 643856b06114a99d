"""The conformance verbs of filters and bounds: requests as JSON, answered by the functions of `maia.filters`.

An ill-typed event is answered like one that does not match; an ill-typed or malformed filter is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from maia.errors import DeniedError, FilterTypeError, UsageError
from maia.filters import (
    AttributeType,
    BoundKind,
    Relation,
    Side,
    TypedFilter,
    admits,
    allows,
    check_event,
    compile_filter,
    covers,
    read_event,
    satisfiable,
    screen,
)

_Choice = TypeVar("_Choice", bound=StrEnum)


def read_types(request: Mapping[str, object]) -> dict[str, str]:
    """The attribute types of a request, each a known one."""
    given = request.get("types", {})
    if not isinstance(given, Mapping):
        raise UsageError("`types` must be an object", code="REQUEST_FIELD")
    known = {kind.value for kind in AttributeType}
    for name, kind in given.items():
        if not isinstance(kind, str) or kind not in known:
            raise UsageError(f"the type of `{name}` is no attribute type", code="REQUEST_FIELD")
    return {str(name): str(kind) for name, kind in given.items()}


def read_filter(request: Mapping[str, object], field: str, types: Mapping[str, str]) -> TypedFilter:
    """A typed filter from a field of the request."""
    text = request.get(field)
    if not isinstance(text, str):
        raise UsageError(f"`{field}` must be a filter text", code="REQUEST_FIELD")
    return compile_filter(text, types)


def _choice(request: Mapping[str, object], field: str, choices: type[_Choice], default: _Choice | None) -> _Choice:
    given = request.get(field, default)
    if isinstance(given, str) and given in {choice.value for choice in choices}:
        return choices(given)
    names = ", ".join(choice.value for choice in choices)
    raise UsageError(f"`{field}` must be one of {names}", code="REQUEST_FIELD")


def _fits(event: Mapping[str, object], types: Mapping[str, str]) -> bool:
    try:
        check_event(event, types)
    except FilterTypeError:
        return False
    return True


def filter_matches(request: Mapping[str, object]) -> bool:
    """Whether a filter covers an event under a relation."""
    types = read_types(request)
    relation = _choice(request, "relation", Relation, Relation.SUBSCRIPTION)
    found = read_filter(request, "filter", types)
    event = read_event(request.get("event"), types)
    return _fits(event, types) and admits(relation, found, event)


def filter_covers(request: Mapping[str, object]) -> bool:
    """Whether filter `a` covers filter `b` under a relation."""
    types = read_types(request)
    relation = _choice(request, "relation", Relation, Relation.SUBSCRIPTION)
    return covers(read_filter(request, "a", types), read_filter(request, "b", types), relation)


def filter_satisfiable(request: Mapping[str, object]) -> bool:
    """Whether any event matches a filter."""
    return satisfiable(read_filter(request, "filter", read_types(request)))


def bound_allows(request: Mapping[str, object]) -> bool:
    """Whether a bound allows an event, advertisement or subscription."""
    types = read_types(request)
    kind = _choice(request, "kind", BoundKind, None)
    side = _choice(request, "side", Side, None)
    bound = read_filter(request, "bound", types)
    if side is not Side.PUBLISH:
        return allows(bound, kind=kind, side=side, subject=read_filter(request, "subject", types))
    event = read_event(request.get("subject"), types)
    return _fits(event, types) and allows(bound, kind=kind, side=side, subject=event)


def filter_screen(request: Mapping[str, object]) -> dict[str, object] | None:
    """What the rights show of an event that the filter matches, as JSON; null when nothing is shown."""
    types = read_types(request)
    rights = read_filter(request, "rights", types)
    found = read_filter(request, "filter", types)
    given = request.get("event")
    event = read_event(given, types)
    if not _fits(event, types):
        return None
    try:
        shown = screen(rights, found, event)
    except DeniedError:
        return None
    if shown is None or not isinstance(given, Mapping):
        return None
    return {name: given[name] for name in shown}


VERBS: dict[str, Callable[[Mapping[str, object]], object]] = {
    "bound.allows": bound_allows,
    "filter.covers": filter_covers,
    "filter.matches": filter_matches,
    "filter.satisfiable": filter_satisfiable,
    "filter.screen": filter_screen,
}
