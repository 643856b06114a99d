"""What the clients of a broker get: every event once, whatever way it came, and a question for what did not come."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container
from dataclasses import dataclass

from maia.filters import matches
from maia.routing.accounts import Account
from maia.routing.identifiers import Identifier
from maia.routing.messages import Event, Lane, LaneOffer, Pull, Pulled
from maia.routing.tree import MAX_LANES, Tree

MAX_TRIES = 6
"""How often a lane's own broker is asked about a hole before something new is heard of the lane."""


@dataclass(frozen=True, slots=True)
class OverlayDelivery:
    """An event that a client of this broker gets."""

    client: str
    lane: Lane
    event: Event


class BrokerEdge:
    """The accounts of a broker's lanes, and the deliveries that follow from them."""

    def __init__(self, *, wait: float) -> None:
        """Account for nothing.

        Args:
            wait: How long the first answer may take, in seconds; each further one twice as long.
        """
        self._wait = wait
        self._accounts: OrderedDict[Lane, Account] = OrderedDict()
        self.deliveries: list[OverlayDelivery] = []

    def take_deliveries(self) -> list[OverlayDelivery]:
        """Hand over what clients get."""
        deliveries, self.deliveries = self.deliveries, []
        return deliveries

    def take(self, tree: Tree, offer: LaneOffer, *, claims: bool) -> None:
        """Account for an offer, and deliver what is new."""
        if not tree.clients:
            return
        account = self._accounts.get(offer.lane)
        if account is None:
            account = self._accounts[offer.lane] = Account()
            if len(self._accounts) > MAX_LANES:
                self._accounts.popitem(last=False)
        if offer.event is not None:
            self._deliver(tree, offer.lane, account, offer.event)
        if claims and (offer.event is None or offer.event.number in account):
            account.take(offer.after, offer.number)
        if account.tries >= MAX_TRIES:
            account.tries = 0

    def answered(self, tree: Tree, answer: Pulled) -> None:
        """Account for the answer to a question that was asked."""
        account = self._accounts.get(answer.lane)
        if account is None or account.asked_at is None:
            return
        account.asked_at, account.tries = None, 0
        for event in answer.events:
            if answer.after < event.number <= answer.number:
                self._deliver(tree, answer.lane, account, event)
        account.take(answer.after, answer.number)

    def question(self, tree: Tree, lane: Lane, now: float) -> Pull | None:
        """What to ask a lane's own broker now: about the first hole, and not too often."""
        account = self._accounts.get(lane)
        if account is None:
            return None
        hole = account.hole
        if hole is None or not tree.clients:
            account.asked_at, account.tries = None, 0
            return None
        if account.asked_at is not None:
            late = now - account.asked_at >= self._wait * (1 << account.tries)
            if account.tries >= MAX_TRIES or not late:
                return None
        account.asked_at = now
        account.tries += 1
        wishes = tree.clients.values()
        filters = tuple(dict.fromkeys(wish.filter_ for wish in wishes))
        return Pull(lane, *hole, min(wish.since for wish in wishes), filters)

    def lanes(self) -> tuple[Lane, ...]:
        """The lanes with a hole."""
        return tuple(lane for lane, account in self._accounts.items() if account.hole is not None)

    def waits(self, away: Container[Identifier]) -> bool:
        """Whether an answer is due from somebody who is not away."""
        return any(
            account.hole is not None and account.tries < MAX_TRIES and lane.origin not in away
            for lane, account in self._accounts.items()
        )

    def forget(self, key: Identifier) -> None:
        """Close the accounts of a type that no client wants any more."""
        for lane in [lane for lane in self._accounts if lane.key == key]:
            del self._accounts[lane]

    @property
    def size(self) -> int:
        """How many stretches are kept."""
        return sum(1 + account.stretches for account in self._accounts.values())

    def _deliver(self, tree: Tree, lane: Lane, account: Account, event: Event) -> None:
        if event.number in account or not account.take(event.number - 1, event.number):
            return
        for client, wish in tree.clients.items():
            if wish.since <= event.stamp and matches(wish.filter_, event.values):
                self.deliveries.append(OverlayDelivery(client, lane, event))
