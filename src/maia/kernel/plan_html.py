"""Plans in a notebook: clauses, filters and chains by hash. A plan holds no key, and no value of an event is shown."""

from __future__ import annotations

from collections.abc import Iterable

from maia.encoding import format_advanced, html_table
from maia.events import EventType, TypeId
from maia.kernel.clauses import Clause
from maia.kernel.delivery import Subscription

_HEAD = ("opens", "in rows where", "chain")


def publishing_html(event_type: EventType, clauses: Iterable[Clause]) -> str:
    """Show what a publisher may set."""
    return html_table(f"publish {event_type.name}", _HEAD, (_row(event_type, clause) for clause in clauses))


def delivery_html(type_id: TypeId, subscriptions: Iterable[Subscription]) -> str:
    """Show what each subscription may see."""
    rows = (
        (
            item.identity,
            str(item.event_type.name),
            ", ".join(sorted(item.filter.attributes)),
            *_row(item.event_type, one),
        )
        for item in subscriptions
        for one in item.clauses
    )
    return html_table(f"deliver type {type_id.hex()[:16]}", ("subscription", "version", "filters by uid", *_HEAD), rows)


def _row(event_type: EventType, clause: Clause) -> tuple[str, str, str]:
    opened = ", ".join(f"{item.name} ({item.uid})" for item in event_type.attributes if clause.opens(item.uid))
    demands = " and ".join(f"{uid} in {format_advanced(tag.to_sexp())}" for uid, tag in clause.constraints)
    chain = " -> ".join(identity.hex()[:16] for identity in clause.chain)
    return opened or "nothing", demands or "any", chain or "the owner itself"
