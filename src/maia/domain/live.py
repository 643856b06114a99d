"""Who uses a type now: the subscriptions that a home keeps, and the attributes that each of them is shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from maia.authority import Action
from maia.domain.domain import Domain
from maia.domain.types import find_type
from maia.domain.wanted import Wanted, read_subscriptions
from maia.errors import MaiaError
from maia.events import EventType, LiveClient, TypeId, Uid


def live_clients(domain: Domain, type_id: TypeId, *, at: datetime) -> Iterator[LiveClient]:
    """Name the clients that subscribe here to some version of a type, with the uids that their rights open.

    One whose rights cannot be judged now counts as using all.
    """
    known = domain.known(at=at)
    for item in read_subscriptions(domain.path):
        try:
            name = find_type(domain.home, item.type, item.version, among=known.names)
            if name.type_id != type_id:
                continue
            event_type = known.sessions.event_type(name.type_id, name.version.text, at=at)
        except MaiaError:
            continue  # no subscription to a version that is known
        yield LiveClient(name=item.as_, uids=_opened(domain, item, event_type, at))


def _opened(domain: Domain, item: Wanted, event_type: EventType, at: datetime) -> frozenset[Uid] | None:
    known = domain.known(at=at)
    try:
        key = domain.home.key(item.as_)
        clauses = known.sessions.clauses(key, Action.SUBSCRIBE, event_type, known.pool, at=at)
    except MaiaError:
        return None
    return frozenset(uid for uid in event_type.uids if any(clause.opens(uid) for clause in clauses))
