"""What a gateway's threads do for clients: the five operations of `Domain`, for a key that was proven over the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maia.authority import Action
from maia.domain import (
    Domain,
    OutboxPlace,
    ProvenClient,
    Wanted,
    check_connection,
    check_place,
    client_over_wire,
    end_subscription,
    find_subscription,
    hand_over,
    outbox_of,
    show_type,
    take_credentials,
    take_up_subscription,
)
from maia.errors import DeniedError, NotFoundError, UsageError
from maia.events import value_to_json
from maia.principals import Authenticated
from maia.wire import MAX_FRAME, write_frame

MOST_ROWS = 256
"""Events in one frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The next events of a subscription as a frame, and the place behind them; no frame when there are none."""

    text: str
    events: int
    place: OutboxPlace


def admit(domain: Domain, proof: Authenticated, brought: Sequence[bytes]) -> ProvenClient:
    """Let a client in whose key was proven, if it is one of this domain's and may connect.

    Raises:
        MaiaError: It is not, or may not.
    """
    client = client_over_wire(domain.home, proof)
    check_connection(domain, client, brought)
    return client


def advertise(domain: Domain, client: ProvenClient, fields: Mapping[str, Any]) -> None:
    """Say that a client will publish a type."""
    name = _named(domain, client, "publish", fields)
    domain.advertise(name, client=client, version=fields.get("version"), said=fields.get("where"))


def unadvertise(domain: Domain, client: ProvenClient, fields: Mapping[str, Any]) -> None:
    """Take that back.

    Raises:
        DeniedError: Nothing of it was advertised, or there is no such type: ``NOT_ADVERTISED``.
    """
    try:
        domain.unadvertise(fields["type"], client=client, version=fields.get("version"))
    except (NotFoundError, UsageError) as error:
        if not error.code.startswith("TYPE_"):
            raise
        # SECURITY: what is not there and what others advertise are one answer, or a client could ask what exists.
        raise DeniedError(f"`{client.name}` advertises none of this here", code="NOT_ADVERTISED") from error


def subscribe(domain: Domain, client: ProvenClient, fields: Mapping[str, Any]) -> OutboxPlace:
    """Keep a client's subscription, or go on with it from where the client says; give the place to go on from.

    Raises:
        MaiaError: The client has no right now, the filter is refused, or the place is not of this outbox.
    """
    place, outbox = OutboxPlace.parse(fields.get("after", "")), outbox_of(domain)
    check_place(outbox, place)
    name, version, newest = _named(domain, client, "subscribe", fields), fields.get("version"), outbox.latest()
    full = show_type(domain.home, domain.find_type(name, version))
    wanted = Wanted(name=fields["name"], as_=client.name, type=full, where=fields.get("where", ""))
    was_there = take_up_subscription(domain, wanted, client=client, bounded=True)
    if was_there or place.commit >= 0 or newest < 0:
        return place
    return OutboxPlace(commit=newest, events=0, digest=outbox.digest(newest)[:16])


def unsubscribe(domain: Domain, client: ProvenClient, fields: Mapping[str, Any]) -> None:
    """End a client's subscription."""
    end_subscription(domain, fields["name"], client=client)


def judge(domain: Domain, client: ProvenClient, name: str) -> None:
    """Refuse a client that may not have what its subscription shows any more."""
    kept = find_subscription(domain, name)
    domain.deliver_plan(
        kept.type, client=client, where=kept.where, version=kept.version, commits=(), tell=False
    )  # fmt: skip


def next_piece(domain: Domain, client: ProvenClient, name: str, *, after: OutboxPlace, most: int) -> Piece:
    """Take the next events of a subscription, with the rights of now, as one frame of bounded size."""
    most = min(most, MOST_ROWS)
    while True:
        found = hand_over(domain, client, name, after=after, most=most)
        if not found.events and not found.closed:
            return Piece(text="", events=0, place=found.place)
        rows = [
            {column: value_to_json(value) for column, value in row.items()}
            for batch in found.batches
            for row in batch.to_pylist()
        ]
        text = write_frame("events", name=name, rows=rows, after=str(found.place))
        if len(text) <= MAX_FRAME or most == 1:
            return Piece(text=text, events=found.events, place=found.place)
        most = max(1, most // 4)


def _named(domain: Domain, client: ProvenClient, action: str, fields: Mapping[str, Any]) -> str:
    """Name the type that a request is about, after the broker took what the client brought: definition, certificates.

    Raises:
        MaiaError: It is not named, or what was brought does not hold.
    """
    name, definition = fields.get("type"), fields.get("definition")
    if (name is None) is (definition is None):
        raise UsageError("name the type, or bring its definition", code="TYPE_OR_DEFINITION")
    text = (
        str(name)
        if definition is None
        else show_type(domain.home, domain.learn(definition, client=client, action=Action.parse(action)))
    )
    brought = fields.get("credentials", ())
    if brought:
        take_credentials(domain, client, brought, action, text, fields.get("version"))
    return text
