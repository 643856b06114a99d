"""One broker of the overlay: a state machine that messages and the clock drive. It does no IO and draws no lots.

Per event type there is a tree whose root is the broker closest to the type's rendezvous. Subscriptions and
advertisements go up and leave entries; events go up to the root, and down wherever a filter wants them. What is kept
here, whatever the network does:

- the next broker towards the root is asked anew whenever somebody is found or lost; whoever has another one now tells
  it everything and takes everything back from the one before, so the tree repairs itself hop by hop;
- a client's broker accounts for every number of every lane. Silence counts only where all filters are in force; holes
  are filled by the lane's own broker, which keeps what it published. So nothing is lost and nothing comes twice;
- an event is delivered to a client of this broker whose filter it matches and that asked before it was published;
- everything that others can make grow is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from maia.authority import Action
from maia.errors import DeniedError, NotFoundError
from maia.filters import TypedFilter, matches, satisfiable
from maia.routing.edge import BrokerEdge, OverlayDelivery
from maia.routing.evidence import NetworkRequest
from maia.routing.forest import Forest
from maia.routing.handshake import LinkHandshake
from maia.routing.identifiers import Identifier
from maia.routing.lanes import NumberedLanes
from maia.routing.links import Links, Patience
from maia.routing.membership import KnownBrokers
from maia.routing.messages import (
    Advertise,
    AskState,
    Confirm,
    Event,
    Lane,
    LaneOffer,
    Message,
    Packet,
    Pull,
    Pulled,
    ShownCredentials,
    Subscribe,
    ToldState,
    WantedFilter,
)
from maia.routing.neighbours import Routes
from maia.routing.rights import NeighbourRights
from maia.routing.roles import BrokerRole
from maia.routing.state import TypeStates
from maia.routing.tree import LocalPublisher, LocalSubscription, Tree
from maia.routing.verification import Door, Gate

MAX_RECENT = 4096
"""How many events a broker remembers, so as not to pass one on twice."""


class Broker:
    """A broker: what its clients ask for, what its neighbours say, and what follows from both."""

    def __init__(
        self,
        routes: Routes,
        *,
        life: int = 1,
        patience: Patience | None = None,
        readable: frozenset[str] | None = None,
        gate: Gate | None = None,
        handshake: LinkHandshake | None = None,
        keep: int = 100_000,
        first_state: bool = False,
    ) -> None:
        """Begin with no entries.

        Args:
            routes: The way to any place.
            life: How often this broker began, counting this; it never begins twice with the same number.
            patience: How long it waits for others.
            readable: The attributes whose values and filters it can read; ``None`` is all.
            gate: What it verifies of the requests that pass; ``None`` trusts its neighbours.
            handshake: What it shows its neighbours and asks of them; ``None`` shows and asks nothing.
            keep: How many events of its own lanes it keeps for those who ask later.
            first_state: Whether the first publisher's answer is the state of a type; otherwise the newest.
        """
        self.own = routes.own
        self.life = life
        self.routes = routes
        self._patience = patience or Patience()
        self._links = Links(self.own, life=life, patience=self._patience)
        self._door = Door(gate)
        self._members = KnownBrokers(routes, self._links, handshake)
        self._lanes = NumberedLanes(self.own, life=life, keep=keep)
        self._edge = BrokerEdge(wait=self._patience.lost / 2)
        self._forest = Forest(self._members, self._lanes, readable=readable, handshake=handshake)
        self.states = TypeStates(
            self._members, self._forest, self._lanes, self._door, first=first_state, limit=self._patience.lost / 2
        )
        self._recent: OrderedDict[tuple[Lane, int], None] = OrderedDict()
        self._refused = 0

    # ------------------------------------------------------------------ what clients ask for

    def advertise(
        self,
        client: str,
        key: Identifier,
        *,
        now: float,
        bound: TypedFilter | None = None,
        evidence: NetworkRequest | None = None,
    ) -> None:
        """Let a client publish events of a type that match a bound."""
        bound = bound or TypedFilter()
        self._door.require(evidence, Action.PUBLISH, key, bound, at=now)
        tree = self._forest.at(key, now)
        tree.publishers[client] = LocalPublisher(bound, evidence)
        tree.closed_at = None
        self._forest.readvertise(tree, now)

    def unadvertise(self, client: str, key: Identifier, *, now: float) -> None:
        """End what a client advertised.

        Raises:
            NotFoundError: It advertised nothing of this type.
        """
        tree = self._forest.find(key)
        if tree is None or client not in tree.publishers:
            raise NotFoundError(f"`{client}` advertised nothing of this type", code="NOTHING_ADVERTISED")
        del tree.publishers[client]
        if not tree.publishers and self._lanes.head(key):
            tree.closed_at = now
        self._forest.readvertise(tree, now)
        self._forest.tidy(tree)

    def subscribe(
        self, client: str, key: Identifier, filter_: TypedFilter, *, now: float, evidence: NetworkRequest | None = None
    ) -> None:
        """Let a client see what is published from now on and matches; it replaces what the client asked for before.

        Raises:
            UncheckedError: The filter is too large to say whether it can match.
        """
        self._door.require(evidence, Action.SUBSCRIBE, key, filter_, at=now)
        satisfiable(filter_)
        tree = self._forest.at(key, now)
        before = tree.clients.get(client)
        name = ("client", client, self._forest.number())
        tree.clients[client] = LocalSubscription(filter_, now, name)
        self._forest.promised.pop((client, key), None)
        change = tree.change(
            {name: WantedFilter(0, filter_, evidence)},
            () if before is None else (before.name,),
            number=self._forest.number,
        )
        self._forest.tell(tree, change, now, asker=(self.own, self._forest.number()))

    def unsubscribe(self, client: str, key: Identifier, *, now: float) -> None:
        """End what a client asked for.

        Raises:
            NotFoundError: It asked for nothing of this type.
        """
        tree = self._forest.find(key)
        before = None if tree is None else tree.clients.pop(client, None)
        if tree is None or before is None:
            raise NotFoundError(f"`{client}` subscribed to nothing of this type", code="NOT_SUBSCRIBED")
        self._forest.promised.pop((client, key), None)
        self._forest.tell(tree, tree.change({}, (before.name,), number=self._forest.number), now)
        if not tree.clients:
            self._edge.forget(key)
        self._forest.tidy(tree)

    def publish(
        self,
        client: str,
        key: Identifier,
        values: Mapping[str, object],
        *,
        now: float,
        evidence: NetworkRequest | None = None,
    ) -> Event:
        """Take an event of a client: it is numbered, kept, and on its way.

        Raises:
            DeniedError: The client did not advertise the type, or the event is not within what it advertised.
        """
        self._door.require(evidence, Action.PUBLISH, key, values, at=now)
        tree = self._forest.find(key)
        publisher = None if tree is None else tree.publishers.get(client)
        if publisher is None:
            raise DeniedError(f"`{client}` advertised nothing of this type", code="NOT_ADVERTISED")
        if not matches(publisher.bound, values):
            raise DeniedError(f"the event is not within what `{client}` advertised", code="OUTSIDE_ADVERTISEMENT")
        event = self._lanes.append(key, values, now=now, evidence=evidence)
        self._pass(None, LaneOffer(self.lane(key), event.number - 1, event.number, event), now)
        return event

    def lane(self, key: Identifier) -> Lane:
        """The lane of this broker for a type."""
        return self._lanes.lane(key)

    # ------------------------------------------------------------------ what the network brings

    def join(self, contacts: Sequence[Identifier], *, now: float) -> None:
        """Enter the network through one of those who are in it; while nobody is known, the next one is tried."""
        self._members.join(contacts, now=now)

    def gain(self, certificates: Sequence[bytes], *, now: float) -> None:
        """Take new certificates, and show them to all neighbours."""
        self._forest.gain(certificates, now)

    def rights_of(self, peer: Identifier) -> NeighbourRights | None:
        """What a neighbour may do; ``None`` when nothing was asked of it."""
        return self._forest.rights.get(peer)

    def receive(self, packet: Packet, *, now: float) -> None:
        """Take a packet from the network."""
        if packet.target != self.own or packet.source == self.own:
            return
        heard = self._links.receive(packet, now=now)
        if not heard.counts:
            return
        if heard.afresh:
            self._forest.detach(packet.source, now)
        if self._members.heard(packet.source, now=now) or heard.afresh:
            self._forest.reattach(now)
        for message in heard.messages:
            self._take(packet.source, message, now)

    def tick(self, *, now: float) -> None:
        """Let time pass: send again, ask who is silent, notice who is lost, look for holes."""
        near = self._forest.near() | self.routes.watched()
        lost = self._links.tick(near - self._members.down.keys(), now=now)
        for peer in lost:
            self._members.lose(peer)
            self._forest.detach(peer, now)
        if lost:
            self._forest.reattach(now)
        self._members.tick(lost, now=now)
        for lane in self._edge.lanes():
            self._seek(lane, now)
        self._forest.close_old(now)
        self.states.tick(now=now)

    def take_deliveries(self) -> list[OverlayDelivery]:
        """Hand over what clients get."""
        return self._edge.take_deliveries()

    def take_packets(self) -> list[Packet]:
        """Hand over the packets that are to be sent."""
        return self._links.take_packets()

    @property
    def refused(self) -> int:
        """How many requests and events of neighbours were turned away."""
        return self._refused + self._forest.refused + self.states.refused

    @property
    def promised(self) -> Mapping[tuple[str, Identifier], float]:
        """Since when each subscription of a client is in force all the way to the root."""
        return self._forest.promised

    @property
    def entries(self) -> int:
        """How many advertisements and subscriptions are kept here."""
        return sum(tree.entries for tree in self._forest)

    @property
    def role(self) -> BrokerRole:
        """What this broker is by the clients that are connected to it."""
        return self._forest.role

    def entries_of(self, key: Identifier) -> Tree | None:
        """The state of one type; ``None`` where there is none."""
        return self._forest.find(key)

    @property
    def busy(self) -> bool:
        """Whether something is under way: a message not acknowledged, a hole or a state that was asked about."""
        return self._links.busy or self._edge.waits(self._members.down) or self.states.busy

    @property
    def size(self) -> int:
        """How much is kept beside entries and own events: what must not grow without end."""
        return (
            self._links.size
            + len(self._members.down)
            + self._edge.size
            + self.states.size
            + sum(len(tree.skipped) + len(tree.asking) + len(tree.heads) for tree in self._forest)
        )

    # ------------------------------------------------------------------ messages

    def _take(self, hop: Identifier, message: Message, now: float) -> None:
        match message:
            case LaneOffer():
                self._pass(hop, message, now)
            case Subscribe():
                self._forest.subscribed(hop, message, self._door.wishes(message, at=now), now)
            case Advertise():
                for item in self._forest.advertised(hop, message, self._door.lanes(message, at=now), now):
                    self._pass(hop, LaneOffer(item.lane, item.head, item.head), now)
            case Confirm():
                self._forest.confirmed(hop, message, now)
            case Pull():
                answer = self._lanes.read(message)
                if answer is not None:
                    self._links.send(hop, answer, now=now)
            case Pulled():
                tree = self._forest.find(message.lane.key)
                if tree is not None and hop == message.lane.origin:
                    good = self._door.events(message)
                    self._refused += len(message.events) - len(good.events)
                    self._edge.answered(tree, good)
                    self._seek(message.lane, now)
            case ShownCredentials():
                self._forest.met(hop, message, now)
            case AskState() | ToldState():
                self.states.take(hop, message, now=now)
            case _:
                self._members.take(hop, message, now=now)

    # ------------------------------------------------------------------ events

    def _pass(self, hop: Identifier | None, offer: LaneOffer, now: float) -> None:
        """Take an offer from below (``None`` is a client here) or above; account for it, and pass it on."""
        tree = self._forest.find(offer.lane.key)
        if tree is None:
            return
        below = hop is None or offer.lane in tree.lanes.get(hop, ())
        event = offer.event
        if hop is not None:
            if offer.lane.origin == self.own or not (below or hop == tree.parent):
                return
            if event is not None and not self._stands(tree, hop, offer, now, below=below):
                self._refused += 1
                return
        # An empty stretch claims nothing: it tells how far the lane is, whoever says so.
        claims = offer.claims and (below or tree.in_force or offer.after == offer.number)
        if event is not None:
            if (offer.lane, event.number) in self._recent:
                return
            self._recent[offer.lane, event.number] = None
            if len(self._recent) > MAX_RECENT:
                self._recent.popitem(last=False)
        torn = offer.after > tree.heads.get(offer.lane, 0)  # something before this did not come through here
        tree.advance(offer.lane, offer.number)
        self.states.passed(tree, offer, torn=torn)
        self._edge.take(tree, offer, claims=claims)
        self._seek(offer.lane, now)
        if offer.hops <= 0:
            return
        if below and tree.parent is not None and tree.attached and tree.parent != hop:
            self._send(tree.parent, replace(offer, hops=offer.hops - 1), now)
        for child in list(tree.children):
            if child != hop:
                self._forward(tree, child, offer, now, claims=claims, torn=torn)

    def _stands(self, tree: Tree, hop: Identifier, offer: LaneOffer, now: float, *, below: bool) -> bool:
        event = offer.event
        if event is None or event.number != offer.number:
            return False
        if below and not tree.admitted(hop, offer.lane, event.values):
            return False
        return self._door.admits(event.evidence, Action.PUBLISH, offer.lane.key, event.values, at=now)

    def _forward(
        self, tree: Tree, child: Identifier, offer: LaneOffer, now: float, *, claims: bool, torn: bool
    ) -> None:
        before = tree.skipped.pop((child, offer.lane), None)
        after = offer.after
        if claims and before is not None and before[1] >= after:
            after = min(before[0], after)
        if offer.event is not None and tree.wanted(child, offer.event.values):
            self._send(child, replace(offer, after=after, claims=claims, hops=offer.hops - 1), now)
        elif claims and (offer.event is None or torn):
            self._send(child, replace(offer, after=after, event=None, hops=offer.hops - 1), now)
        elif claims:
            tree.skipped[child, offer.lane] = after, offer.number

    def _seek(self, lane: Lane, now: float) -> None:
        """Ask about what is missing of a lane, where somebody can answer."""
        tree = self._forest.find(lane.key)
        if tree is None or lane.origin in self._members.down:
            return
        question = self._edge.question(tree, lane, now)
        if question is None:
            return
        if lane.origin != self.own:
            self._links.send(lane.origin, question, now=now)
            return
        answer = self._lanes.read(question)
        if answer is not None:
            self._edge.answered(tree, answer)
            self._seek(lane, now)

    def _send(self, peer: Identifier, message: Message, now: float) -> None:
        self._members.send(peer, message, now=now)
