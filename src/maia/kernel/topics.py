"""What publishing needs: one right, or, under a topic, one on the topic and on each of its super-topics.

An event under ``Stocks.Nokia`` reaches whoever subscribed to ``Stocks``, so whoever publishes it speaks there as well.
Rules kept here, for a client, for its broker, and for every other broker that opens the event:

- no clause is left unless each topic of the lineage gives one;
- a clause of the whole is the intersection of one from each: an attribute must be open in all, the demands of all
  count, and so do their conditions. Clauses of different topics that contradict each other give nothing;
- it demands besides that the attribute `topic` holds the topic's name. Where an event is published the name is put
  there, and a row that says another topic is refused (``OTHER_TOPIC``); an origin that wrote another broke its right.

Everything else about topics is as with any type: subscribing asks for one right, which a tag may give for a topic and
all below it (`maia.authority.type_right`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maia.authority import (
    Action,
    Derived,
    KnownVersions,
    Request,
    Tag,
    ask_type,
    intersect,
    is_nothing,
    value_tag,
)
from maia.events import TOPIC, EventType, lineage
from maia.kernel.clauses import Clause, affordable, clauses_from, in_order, versions_of
from maia.kernel.type_check import Checked, Refusal

OTHER_TOPIC = "OTHER_TOPIC"
_MOST = 64
"""Of so many clauses on one topic each is put beside each on the next."""


def requests_for(
    action: Action, event_type: EventType, *, any_version: bool = False, versions: KnownVersions | None = None
) -> tuple[Request, ...]:
    """Ask for all that an action on a type needs; under a topic, publishing needs a right on each of its lineage.

    Args:
        action: Publish or subscribe.
        event_type: The version in question.
        any_version: Ask for a right on any version, as about an origin, whose parcels carry none.
        versions: What is known of the type; this version alone by default.
    """
    name, known = event_type.name, versions_of((event_type,)) if versions is None else versions
    names = lineage(name.name) if _binds(action, event_type) else (name.name,)
    version = None if any_version else name.version.text
    return tuple(ask_type(action, name.owner, one, version, known) for one in names)


def clauses_for(
    action: Action, event_type: EventType, rights: Iterable[Iterable[Derived]], versions: KnownVersions | None = None
) -> tuple[Clause, ...]:
    """Turn what was derived for each of `requests_for` into the clauses of the whole.

    Raises:
        DeniedError: There are rights, and none that can be used.
    """
    known = versions_of((event_type,)) if versions is None else versions
    sets = [clauses_from(derived, known) for derived in rights]
    found = sets[0]
    for more in sets[1:]:
        pairs = product(affordable(found, most=_MOST), affordable(more, most=_MOST))
        found = _unlike(both for pair in pairs if (both := _both(*pair)) is not None)
    if not _binds(action, event_type):
        return found
    demand = ((event_type.by_name(TOPIC).uid, value_tag("=", event_type.name.name)),)
    return _unlike(bound for clause in found if (bound := _demanding(clause, demand)) is not None)


def in_topic(event_type: EventType, checked: Checked) -> Checked:
    """Put the topic's name into every row that is published under it; rows that say another one are refused."""
    if not event_type.options.topic or checked.batch is None:
        return checked
    at, name = checked.batch.schema.get_field_index(TOPIC), event_type.name.name
    column = checked.batch.column(at)
    other = np.asarray(pc.not_equal(column, name).fill_null(False))
    refused = tuple(Refusal(int(row), OTHER_TOPIC, TOPIC) for row in checked.rows[other])
    batch = checked.batch.set_column(
        at, checked.batch.schema.field(at), pa.repeat(pa.scalar(name, column.type), len(column))
    )
    left = batch.filter(pa.array(~other)) if refused else batch
    refusals = tuple(sorted((*checked.refusals, *refused), key=lambda item: item.row))
    return Checked(left if left.num_rows else None, checked.rows[~other], refusals)


def _binds(action: Action, event_type: EventType) -> bool:
    return action is Action.PUBLISH and event_type.options.topic


def _unlike(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """Keep equal clauses once, as many as can be afforded."""
    found: dict[tuple[object, ...], Clause] = {}
    for clause in clauses:
        known = found.setdefault((clause.cells, clause.conditions), clause)
        if known is not clause:
            more = (chain for chain in in_order((*known.others, *clause.chains)) if chain != known.chain)
            found[clause.cells, clause.conditions] = replace(known, others=tuple(more))
    return affordable(found.values())


def _both(one: Clause, other: Clause) -> Clause | None:
    """Say what two clauses say together, demands and bounds included; nothing when they leave nothing."""
    uids = intersect(one.cells.uids, other.cells.uids)
    if is_nothing(uids):
        return None
    met = replace(
        one,
        cells=replace(
            one.cells, uids=uids, mends=intersect(one.cells.mends, other.cells.mends),
            enforced=one.cells.enforced & other.cells.enforced,
            # SECURITY: every bound of both holds, as every demand does.
            bounds=tuple(dict.fromkeys((*one.cells.bounds, *other.cells.bounds))),
        ),
        conditions=tuple(dict.fromkeys((*one.conditions, *other.conditions))),
        chain=tuple(dict.fromkeys((*one.chain, *other.chain))),
        others=(*one.others, *other.others),
        until=min(_ends(one, other), default=None),
    )  # fmt: skip
    return _demanding(met, other.constraints)


def _ends(*clauses: Clause) -> Iterator[datetime]:
    return (clause.until for clause in clauses if clause.until is not None)


def _demanding(clause: Clause, demands: Iterable[tuple[str, Tag]]) -> Clause | None:
    """Add demands on the row; nothing when no row could meet them all."""
    found = dict(clause.constraints)
    for uid, tag in demands:
        found[uid] = intersect(found[uid], tag) if uid in found else tag
        if is_nothing(found[uid]):
            return None
    return replace(clause, cells=replace(clause.cells, constraints=tuple(sorted(found.items(), key=_by_uid))))


def _by_uid(demand: tuple[str, Tag]) -> str:
    return demand[0]
