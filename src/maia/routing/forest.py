"""All trees of one broker, and their upkeep: who is told what, when it is in force, and what is told anew after a loss.

Whenever somebody is found or lost, each tree asks anew who is next towards the root. Who has another next broker now
tells it everything and takes everything back from the one before, so a tree repairs itself hop by hop.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from maia.errors import VerificationError
from maia.filters import TypedFilter, intersect
from maia.routing.handshake import LinkHandshake
from maia.routing.identifiers import Identifier
from maia.routing.lanes import NumberedLanes
from maia.routing.membership import KnownBrokers
from maia.routing.messages import (
    Advertise,
    AdvertisedLane,
    Confirm,
    LaneOffer,
    ShownCredentials,
    Subscribe,
    WantedFilter,
)
from maia.routing.rights import NeighbourRights
from maia.routing.roles import BrokerRole, role_of
from maia.routing.tree import MAX_FILTERS, MAX_LANES, ToldChange, Tree, same_bounds

RETAINED = 600.0
"""How long a lane that nobody publishes to any more is told, in seconds, for those who were away."""


class Forest:
    """The trees of a broker, by the rendezvous of their types."""

    def __init__(
        self,
        members: KnownBrokers,
        lanes: NumberedLanes,
        *,
        readable: frozenset[str] | None,
        handshake: LinkHandshake | None,
    ) -> None:
        """Keep no tree."""
        self._members = members
        self._own = members.routes.own
        self._lanes = lanes
        self._readable = readable
        self._trees: dict[Identifier, Tree] = {}
        self._counter = 0
        self.rights: dict[Identifier, NeighbourRights] = {}
        self._handshake = handshake
        self.promised: dict[tuple[str, Identifier], float] = {}
        self.refused = 0

    def __iter__(self) -> Iterator[Tree]:
        return iter(self._trees.values())

    @property
    def role(self) -> BrokerRole:
        """What the broker is by the clients that are connected to it."""
        return role_of(publishers=any(tree.publishers for tree in self), subscribers=any(tree.clients for tree in self))

    def find(self, key: Identifier) -> Tree | None:
        """The tree of a type, if there is one."""
        return self._trees.get(key)

    def number(self) -> int:
        """A number that was not used before."""
        self._counter += 1
        return self._counter

    def near(self) -> set[Identifier]:
        """Everybody next to this broker in some tree."""
        found: set[Identifier] = set()
        for tree in self:
            found |= tree.children.keys() | tree.lanes.keys()
            if tree.parent is not None:
                found.add(tree.parent)
        return found

    def met(self, hop: Identifier, shown: ShownCredentials, now: float) -> None:
        """Keep what a neighbour proved that it may do in its routing entry, for as long as it is a neighbour."""
        if self._handshake is None:
            return
        try:
            self.rights[hop] = self._handshake.take(hop, shown, now=now)
        except VerificationError:
            self.refused += 1
        self._members.greet(hop, now=now)

    def gain(self, certificates: Sequence[bytes], now: float) -> None:
        """Show new certificates to all neighbours that saw the others."""
        shown = () if self._handshake is None else self._handshake.gain(certificates, now=now)
        for peer, message in shown:
            self._members.send(peer, message, now=now)

    def subscribed(self, hop: Identifier, message: Subscribe, good: Sequence[WantedFilter], now: float) -> None:
        """Take in what a neighbour wants and wants no longer; ``good`` are those of its wishes that may be had."""
        self.refused += len(message.added) - len(good)
        if not good and message.key not in self._trees:
            return
        tree = self.at(message.key, now)
        mine = tree.children.setdefault(hop, {})
        leaving = list(mine) if message.whole else [number for number in message.dropped if number in mine]
        dropped = [mine.pop(number)[1] for number in leaving]
        added: dict[Hashable, WantedFilter] = {}
        for wanted in good[: MAX_FILTERS - len(mine)]:
            if wanted.number not in mine:
                name = (hop, wanted.number, self.number())
                mine[wanted.number] = wanted.filter_, name
                added[name] = wanted
        if not mine:
            del tree.children[hop]
        if message.whole or len(added) == len(mine):
            tree.newly[hop] = message.version
        self.tell(
            tree,
            tree.change(added, dropped, number=self.number),
            now,
            asker=(hop, message.version) if message.version else None,
        )
        self.tidy(tree)

    def advertised(
        self, hop: Identifier, message: Advertise, good: Sequence[AdvertisedLane], now: float
    ) -> list[AdvertisedLane]:
        """Take in which lanes come from a neighbour; give those that are further than was known here."""
        self.refused += len(message.lanes) - len(good)
        if not good and message.key not in self._trees:
            return []
        tree = self.at(message.key, now)
        mine = tree.lanes.setdefault(hop, {})
        if message.whole:
            mine.clear()
        for lane in message.ended:
            mine.pop(lane, None)
        told = []
        for item in good:
            bounds = self._bounds(hop, message.key, item)
            if item.lane.origin == self._own or item.lane.key != message.key or len(mine) >= MAX_LANES:
                continue
            # SECURITY: a lane that ended has no bounds, and its events are asked for all the same.
            if not bounds and not (item.closed and self._may_publish(hop, message.key)):
                self.refused += 1
                continue
            mine[item.lane] = replace(item, bounds=bounds)
            told.append(item)
        if not mine:
            del tree.lanes[hop]
        self.readvertise(tree, now)
        self.tidy(tree)
        return [item for item in told if item.head > tree.heads.get(item.lane, 0)]

    def _may_publish(self, hop: Identifier, key: Identifier) -> bool:
        rights = self.rights.get(hop)
        return self._handshake is None if rights is None else rights.publish(key) is not None

    def _bounds(self, hop: Identifier, key: Identifier, item: AdvertisedLane) -> tuple[TypedFilter, ...]:
        """What a neighbour may bring of a lane: what was advertised, within what the neighbour itself may publish."""
        rights = self.rights.get(hop)
        if rights is None:
            # SECURITY: where credentials are asked for, nothing shown is nothing allowed.
            return item.bounds if self._handshake is None else ()
        right = rights.publish(key)
        return () if right is None else tuple(intersect(bound, right) for bound in item.bounds)

    def confirmed(self, hop: Identifier, message: Confirm, now: float) -> None:
        """Hear from the next broker that what it was told is in force."""
        tree = self._trees.get(message.key)
        if tree is not None and hop == tree.parent and message.version <= tree.version:
            tree.confirmed = max(tree.confirmed, message.version)
            self._release(tree, now)

    def at(self, key: Identifier, now: float) -> Tree:
        """The tree of a type; a new one is attached to the next broker."""
        tree = self._trees.get(key)
        if tree is None:
            tree = self._trees[key] = Tree(key, self._readable)
            self._attach(tree, now)
        return tree

    def tidy(self, tree: Tree) -> None:
        """Drop a tree that nothing needs."""
        if tree.empty:
            del self._trees[tree.key]

    def tell(self, tree: Tree, change: ToldChange, now: float, *, asker: tuple[Identifier, int] | None = None) -> None:
        """Tell the next broker what changed, and the one who asked when it is in force."""
        if change:
            tree.version = self.number()
            if tree.parent is not None and tree.attached:
                self._send(tree.parent, Subscribe(tree.key, tree.version, change.added, change.dropped), now)
        if asker is not None:
            tree.asking.append((*asker, tree.version))
        self._release(tree, now)

    def _release(self, tree: Tree, now: float) -> None:
        """Confirm what is in force by now."""
        if tree.parent is None:
            tree.confirmed = tree.version
        if not tree.attached:
            return
        waiting = []
        for hop, version, needs in tree.asking:
            if needs > tree.confirmed:
                waiting.append((hop, version, needs))
            elif hop == self._own:
                self._promise(tree, now)
            else:
                self._confirm(tree, hop, version, now)
        tree.asking = waiting

    def _promise(self, tree: Tree, now: float) -> None:
        # Confirmations come in order: whoever waits behind this one has a later version.
        later = {name for name, _, needs in tree.asking if name == self._own and needs > tree.confirmed}
        if not later:
            for client in tree.clients:
                self.promised.setdefault((client, tree.key), now)

    def _confirm(self, tree: Tree, hop: Identifier, version: int, now: float) -> None:
        self._send(hop, Confirm(tree.key, version), now)
        # What was skipped was skipped under other filters. The neighbour learns how far its lanes are, and whoever is
        # below it and wants more than before asks for the rest.
        behind = [slot for slot in tree.skipped if slot[0] == hop]
        heads = {lane: tree.skipped.pop((hop, lane))[1] for _, lane in behind}
        if version >= tree.newly.get(hop, version + 1):
            del tree.newly[hop]
            heads = {lane: head for lane, head in tree.heads.items() if lane not in tree.lanes.get(hop, {})}
        for lane, head in heads.items():
            self._send(hop, LaneOffer(lane, head, head), now)

    def readvertise(self, tree: Tree, now: float) -> None:
        """Tell the next broker which lanes come from here now, where that is news."""
        lanes = tree.advertised(self._lanes.lane(tree.key), self._lanes.head(tree.key))
        news = tuple(
            item
            for lane, item in lanes.items()
            if lane not in tree.said
            or not same_bounds(item.bounds, tree.said[lane].bounds)
            or (item.evidence, item.closed) != (tree.said[lane].evidence, tree.said[lane].closed)
        )
        ended = tuple(lane for lane in tree.said if lane not in lanes)
        tree.said = lanes
        if (news or ended) and tree.parent is not None and tree.attached:
            self._send(tree.parent, Advertise(tree.key, news, ended), now)

    def _attach(self, tree: Tree, now: float) -> None:
        """Make sure that the next broker towards the root is the right one and knows everything."""
        hop = self._members.routes.next_hop(tree.key)
        if hop == tree.parent and tree.attached:
            return
        old, tree.parent = tree.parent, hop
        tree.states.clear()  # what passed meanwhile did not pass here
        if old is not None and old != hop and tree.attached and old not in self._members.down:
            self._send(old, Subscribe(tree.key, 0, whole=True), now)
            self._send(old, Advertise(tree.key, whole=True), now)
        tree.version = tree.whole_version = self.number()
        tree.asking = [(asker, version, tree.version) for asker, version, _ in tree.asking]
        tree.attached = hop is None or hop not in self._members.down
        tree.said = tree.advertised(self._lanes.lane(tree.key), self._lanes.head(tree.key))
        if hop is not None and tree.attached:
            told = tree.told()
            if told:
                self._send(hop, Subscribe(tree.key, tree.version, told, whole=True), now)
            else:
                tree.confirmed = tree.version
            if tree.said:
                self._send(hop, Advertise(tree.key, tuple(tree.said.values()), whole=True), now)
        self._release(tree, now)

    def reattach(self, now: float) -> None:
        """Look anew who is next towards each root."""
        for tree in list(self._trees.values()):
            self._attach(tree, now)

    def detach(self, peer: Identifier, now: float) -> None:
        """Forget what came from a neighbour, what it proved and what it was told."""
        self.rights.pop(peer, None)
        if self._handshake is not None:
            self._handshake.forget(peer)
        for tree in list(self._trees.values()):
            if tree.parent == peer:
                tree.attached = False
                tree.states.clear()
            tree.asking = [item for item in tree.asking if item[0] != peer]
            tree.newly.pop(peer, None)
            for slot in [slot for slot in tree.skipped if slot[0] == peer]:
                del tree.skipped[slot]
            gone = tree.children.pop(peer, {})
            if gone:
                self.tell(tree, tree.change({}, [name for _, name in gone.values()], number=self.number), now)
            if tree.lanes.pop(peer, None):
                self.readvertise(tree, now)
            self.tidy(tree)

    def close_old(self, now: float) -> None:
        """Stop telling lanes that ended long ago."""
        for tree in list(self):
            if tree.closed_at is not None and now - tree.closed_at > RETAINED:
                tree.closed_at = None
                self.readvertise(tree, now)
                self.tidy(tree)

    def _send(self, peer: Identifier, message: Advertise | Confirm | LaneOffer | Subscribe, now: float) -> None:
        self._members.send(peer, message, now=now)
