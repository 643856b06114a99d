"""Who is there: newcomers find their place, the lost are looked for, and leaves tell each other whom they know."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from maia.routing.handshake import LinkHandshake
from maia.routing.identifiers import Identifier
from maia.routing.links import Links
from maia.routing.messages import Ask, Join, Message, Peers
from maia.routing.neighbours import Routes

MAX_DOWN = 256
"""How many lost brokers are looked for; the oldest goes first."""
MAX_PROBE = 16
"""At most so many ticks pass until a lost broker is looked for again."""
MAX_PEERS = 256
"""How many brokers one message names."""
_GOSSIP = 8
_AGAIN = 4
_AT_ONCE = 4


class KnownBrokers:
    """Whom one broker knows, and whom it lost."""

    def __init__(self, routes: Routes, links: Links, handshake: LinkHandshake | None = None) -> None:
        """Know whom the routes know, and miss nobody; with a handshake, show what there is to show before speaking."""
        self.routes = routes
        self._links = links
        self._handshake = handshake
        self._contacts: tuple[Identifier, ...] = ()
        self._ticks = 0
        self.down: OrderedDict[Identifier, int] = OrderedDict()

    def join(self, contacts: Sequence[Identifier], *, now: float) -> None:
        """Enter the network through one of those who are in it; while nobody is known, the next one is tried."""
        self._contacts = tuple(contacts[:MAX_PEERS])
        self._knock(now)

    def heard(self, peer: Identifier, *, now: float) -> bool:
        """Take in somebody who spoke; true when it was lost or unknown before."""
        known = self.routes.known()
        if peer not in self.down and peer in known:
            return False
        self.down.pop(peer, None)
        self.routes.add(peer)
        if not known and self._contacts:
            self.send(peer, Join(self.routes.own), now=now)
        return True

    def lose(self, peer: Identifier) -> None:
        """Forget the way over somebody, and look for it from time to time."""
        self.down[peer] = 0
        if len(self.down) > MAX_DOWN:
            self.down.popitem(last=False)
        self.routes.remove(peer)

    def take(self, hop: Identifier, message: Join | Ask | Peers, *, now: float) -> None:
        """Answer, pass on or follow up what somebody said about who is there."""
        match message:
            case Join():
                self._joined(message.newcomer, now)
            case Ask():
                self.send(hop, Peers(tuple(sorted(self.routes.known()))[:MAX_PEERS]), now=now)
            case Peers():
                for peer in message.peers[:MAX_PEERS]:
                    if self.routes.wants(peer):
                        self._links.ask(peer, now=now)

    def send(self, peer: Identifier, message: Message, *, now: float) -> None:
        """Say something to somebody who is not lost."""
        if peer not in self.down:
            self.greet(peer, now=now)
            self._links.send(peer, message, now=now)

    def greet(self, peer: Identifier, *, now: float) -> None:
        """Show somebody what there is to show, once in a conversation."""
        shown = None if self._handshake is None else self._handshake.meet(peer, now=now)
        if shown is not None:
            self._links.send(peer, shown, now=now)

    def tick(self, lost: Iterable[Identifier], *, now: float) -> None:
        """Look for the lost, ask a leaf whom it knows, all of them when somebody was lost just now."""
        self._ticks += 1
        for peer, tries in self.down.items():
            if self._ticks % min(4 << tries, MAX_PROBE) == 0:
                self.down[peer] = min(tries + 1, MAX_PROBE)
                self._links.ask(peer, now=now)
        leaves = sorted(self.routes.watched() - self.down.keys())
        if any(True for _ in lost):
            asked = leaves
        else:
            asked = [leaves[self._ticks // _GOSSIP % len(leaves)]] if leaves and self._ticks % _GOSSIP == 0 else []
        for peer in asked:
            self.send(peer, Ask(), now=now)
        if not self.routes.known():
            self._knock(now)
        elif self._ticks % _AGAIN == 0:
            self._join_again(now)

    def _joined(self, newcomer: Identifier, now: float) -> None:
        if newcomer == self.routes.own:
            return
        onward = self.routes.next_hop(newcomer)
        known = tuple(sorted({*self.routes.known(), self.routes.own}))
        self._links.send(newcomer, Peers(known[:MAX_PEERS]), now=now)
        if onward is not None and onward != newcomer:
            self.send(onward, Join(newcomer), now=now)

    def _join_again(self, now: float) -> None:
        """Look for the own place anew, through all contacts in turn: two newcomers that met are no network."""
        for contact in self._contacts[:_AT_ONCE]:
            self.send(contact, Join(self.routes.own), now=now)
        self._contacts = (*self._contacts[_AT_ONCE:], *self._contacts[:_AT_ONCE])

    def _knock(self, now: float) -> None:
        if self._contacts:
            first, *others = self._contacts
            self._contacts = (*others, first)
            self._links.ask(first, now=now)
