"""A client's own filter: from the names of its version to uids, and over nothing that is closed to it."""

from __future__ import annotations

from collections.abc import Iterable

from maia.errors import DeniedError
from maia.events import EventType, Uid
from maia.filters import TypedConstraint, TypedFilter
from maia.kernel.clauses import Clause


def uid_filter(event_type: EventType, typed: TypedFilter) -> TypedFilter:
    """Rewrite a client's filter from the names of its version to uids."""
    return TypedFilter(
        constraints=tuple(
            TypedConstraint(
                attribute=event_type.by_name(constraint.attribute).uid,
                type=constraint.type,
                operator=constraint.operator,
                values=constraint.values,
            )
            for constraint in typed.constraints
        )
    )


def check_readable(filter_: TypedFilter, clauses: Iterable[Clause], event_type: EventType | None = None) -> None:
    """Refuse a filter over an attribute that no clause opens: its matches would tell the value (row 7.07).

    The type, where it is known, gives the attribute its name in the message.

    Raises:
        DeniedError: With the code ``FILTER_NOT_AUTHORISED``.
    """
    held = tuple(clauses)
    for uid in sorted(filter_.attributes):
        if not any(clause.opens(uid) for clause in held):
            named = None if event_type is None else event_type.by_uid(Uid(uid))
            what = "an attribute that" if named is None else f"`{named.name}`, which"
            raise DeniedError(f"a filter over {what} is closed to the client", code="FILTER_NOT_AUTHORISED")
