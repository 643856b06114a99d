"""A filter that asks for what its client's right never shows: no error; it gets nothing, and that is said (5.11)."""

from __future__ import annotations

from maia.errors import TagError, UncheckedError
from maia.filters import TypedConstraint, TypedFilter, from_tag, satisfiable
from maia.kernel.clauses import Clause
from maia.kernel.delivery import Subscription

FILTER_CONTRADICTS_RIGHT = "FILTER_CONTRADICTS_RIGHT"


def contradicts_right(subscription: Subscription) -> bool:
    """Tell whether no row that some clause admits can match the filter, which is conjoined to it.

    What cannot be compared counts as possible: this is a notice and decides nothing.
    """
    admitting = [clause for clause in subscription.clauses if clause.counts and clause.holder is None]
    return bool(admitting) and not any(_possible(subscription, clause) for clause in admitting)


def _possible(subscription: Subscription, clause: Clause) -> bool:
    kinds = {str(item.uid): item.type for item in subscription.event_type.attributes}
    demanded: list[TypedConstraint] = []
    for uid, tag in clause.constraints:
        if uid in kinds:
            try:
                demanded += from_tag(tag.to_sexp(), uid, kinds[uid].base)
            except TagError:
                continue  # no filter says it
    try:
        return satisfiable(TypedFilter(constraints=(*subscription.filter.constraints, *demanded)))
    except UncheckedError:
        return True
