"""A network in one process: brokers of `maia.routing`, a virtual clock, and weather that a seed decides.

Everything that happens follows from the seed and from what is asked, in this order: same seed, same history. Brokers
of a network at rest are made when the first packet reaches them, so that a hundred thousand cost only their names.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from maia.errors import NotFoundError, UnavailableError, UsageError
from maia.routing import (
    DEFAULT_LEAVES,
    Broker,
    FixedRoutes,
    Identifier,
    LaneOffer,
    NeighbourTable,
    OverlayDelivery,
    Packet,
    Patience,
    Routes,
    ToldState,
    identifier,
)

MAX_WINDOWS = 400
"""How many windows a network gets to come to rest."""
CONTACTS = 16
"""How many brokers a newcomer has heard of."""
TICK = 0.25
"""How often a broker looks at its clock, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What the network does to packets.

    Attributes:
        delay: The shortest and the longest way, in seconds; packets overtake each other.
        loss: The share of packets that vanish.
        copies: The share of packets that arrive twice.
    """

    delay: tuple[float, float] = (0.01, 0.05)
    loss: float = 0.0
    copies: float = 0.0


CALM = Weather()


class Network:
    """Brokers, the packets between them, and a clock; what those in ``slow`` tell of a type's state takes longer."""

    def __init__(
        self,
        *,
        seed: int = 0,
        leaves: int = DEFAULT_LEAVES,
        patience: Patience | None = None,
        make: Callable[[Routes, int], Broker] | None = None,
    ) -> None:
        """Begin with nobody.

        Args:
            seed: Decides everything that is drawn.
            leaves: How many leaves a broker keeps.
            patience: How long brokers wait.
            make: Makes a broker from its routes and its life; the plain one otherwise.
        """
        self._random = random.Random(seed)  # noqa: S311 - a simulation, repeatable on purpose
        self._seed = seed
        self._leaves = leaves
        self._patience = patience or Patience()
        self._make = make
        self._ordered: list[Identifier] = []
        self._names: dict[Identifier, str] = {}
        self._lives: dict[Identifier, int] = {}
        self._brokers: dict[Identifier, Broker] = {}
        self._links: tuple[tuple[Identifier, Identifier], ...] | None = None
        self._islands: dict[Identifier, int] = {}
        self._queue: list[tuple[float, int, Packet]] = []
        self._sent = 0
        self._next_tick = 0.0
        self._restless = False
        self.weather = CALM
        self.slow: dict[Identifier, float] = {}
        self.now = 0.0
        self.delivered: list[OverlayDelivery] = []
        self.messages: Counter[str] = Counter()
        self.copies: Counter[Identifier] = Counter()

    # ------------------------------------------------------------------ who is there

    def populate(self, names: Iterable[str]) -> None:
        """Let these brokers be there, at rest: each knows what it would know long after it joined."""
        for name in names:
            place = identifier(name.encode())
            if place in self._names:
                raise UsageError(f"there are two brokers `{name}`", code="TWO_BROKERS")
            self._names[place] = name
        self._ordered = sorted(self._names)

    def lay(self, links: Iterable[tuple[str, str]]) -> None:
        """Let brokers be there with fixed links between them, which form a tree."""
        pairs = list(links)
        self.populate(dict.fromkeys(name for pair in pairs for name in pair))
        self._links = tuple((identifier(a.encode()), identifier(b.encode())) for a, b in pairs)

    def join(self, name: str) -> None:
        """Let a broker enter through some that are there, drawn by lot; the first one is alone."""
        place = identifier(name.encode())
        if place in self._names:
            raise UsageError(f"broker `{name}` is there already", code="TWO_BROKERS")
        if self._links is None:
            for other in self._ordered:
                self.broker(other)  # from here on the brokers find each other
            routes: Routes = NeighbourTable(place, leaves=self._leaves)
        else:
            routes = FixedRoutes(place, self._links)
        contacts = self._random.sample(self._ordered, min(len(self._ordered), CONTACTS))
        self._lives[place] = self._lives.get(place, 0) + 1
        self._names[place] = name
        insort(self._ordered, place)
        self._brokers[place] = broker = self._made(routes, self._lives[place])
        broker.join(contacts, now=self.now)
        self._collect(broker)
        self._restless = True

    def crash(self, name: str) -> None:
        """Let a broker vanish with all it knew; the others must notice by themselves."""
        place = self.place(name)
        for other in self._ordered:
            self.broker(other)
        del self._names[place], self._brokers[place], self._ordered[bisect_left(self._ordered, place)]
        self._lives.setdefault(place, 1)
        self._restless = True

    def part(self, islands: Sequence[Iterable[str]]) -> None:
        """Let packets pass only inside each of the islands; without any, everywhere."""
        self._islands = {self.place(name): number for number, names in enumerate(islands) for name in names}
        self._restless = True

    @property
    def names(self) -> tuple[str, ...]:
        """Who is there, in the order of their places."""
        return tuple(self._names[place] for place in self._ordered)

    @property
    def places(self) -> Sequence[Identifier]:
        """The places of all brokers, in order."""
        return self._ordered

    def place(self, name: str) -> Identifier:
        """Where a broker stands.

        Raises:
            NotFoundError: It is not there.
        """
        place = identifier(name.encode())
        if place not in self._names:
            raise NotFoundError(f"there is no broker `{name}`", code="UNKNOWN_BROKER")
        return place

    def at(self, name: str) -> Broker:
        """Find a broker by name."""
        return self.broker(self.place(name))

    def broker(self, place: Identifier) -> Broker:
        """Find a broker by its place; one that nobody met yet is made."""
        found = self._brokers.get(place)
        if found is None:
            if place not in self._names:
                raise NotFoundError("there is no such broker", code="UNKNOWN_BROKER")
            self._lives.setdefault(place, 1)
            found = self._brokers[place] = self._made(self._settled(place), 1)
        return found

    def made(self) -> Iterable[Broker]:
        """All brokers that somebody met, in the order of their places."""
        return [self._brokers[place] for place in self._ordered if place in self._brokers]

    @property
    def entries(self) -> int:
        """How many advertisements and subscriptions all brokers keep."""
        return sum(broker.entries for broker in self._brokers.values())

    def _settled(self, place: Identifier) -> Routes:
        if self._links is not None:
            return FixedRoutes(place, self._links)
        lot = random.Random(f"{self._seed}:{place}")  # noqa: S311 - as above
        return NeighbourTable.settled(place, self._ordered, lot.randrange, leaves=self._leaves)

    def _made(self, routes: Routes, life: int) -> Broker:
        if self._make is not None:
            return self._make(routes, life)
        return Broker(routes, life=life, patience=self._patience)

    # ------------------------------------------------------------------ time

    def flush(self, name: str) -> None:
        """Put on its way what a broker has to say after a client talked to it."""
        self._collect(self.at(name))

    def drain(self) -> None:
        """Let every packet that is under way arrive; nobody looks at the clock meanwhile."""
        while self._queue:
            self._arrive()

    def run(self, seconds: float) -> None:
        """Let time pass, with brokers looking at their clocks."""
        end = self.now + seconds
        self._next_tick = max(self._next_tick, self.now)
        while self._next_tick <= end:
            self._until(self._next_tick)
            for broker in self.made():
                broker.tick(now=self.now)
                self._collect(broker)
            self._next_tick += TICK
        self._until(end)

    def settle(self, *, messages: int | None = None) -> None:
        """Let time pass until nothing is under way and nobody is about to notice anything.

        Args:
            messages: After how many of them it is given up; otherwise only after `MAX_WINDOWS` windows.

        Raises:
            UnavailableError: The network does not come to rest.
        """
        most = None if messages is None else self.messages.total() + messages
        self.drain()
        window = self._patience.lost + 2 * self._patience.beat
        for _ in range(MAX_WINDOWS):
            if not self._restless and not any(broker.busy for broker in self._brokers.values()):
                return
            if most is not None and self.messages.total() > most:
                break
            before = self._news()
            self.run(window)
            self.drain()
            self._restless = self._news() != before
        raise UnavailableError("the network does not come to rest", code="NO_REST")

    def _news(self) -> int:
        """How much was said that is not small talk."""
        return sum(count for kind, count in self.messages.items() if kind not in {"Ask", "Join", "Peers", ""})

    def _until(self, moment: float) -> None:
        while self._queue and self._queue[0][0] <= moment:
            self._arrive()
        self.now = max(self.now, moment)

    def _arrive(self) -> None:
        moment, _, packet = heapq.heappop(self._queue)
        self.now = max(self.now, moment)
        if packet.target not in self._names or not self._open(packet):
            return
        broker = self.broker(packet.target)
        broker.receive(packet, now=self.now)
        self._collect(broker)

    def _open(self, packet: Packet) -> bool:
        return self._islands.get(packet.source) == self._islands.get(packet.target)

    def _collect(self, broker: Broker) -> None:
        self.delivered += broker.take_deliveries()
        for packet in broker.take_packets():
            message = packet.message
            self.messages[type(message).__name__ if message is not None else ""] += 1
            if isinstance(message, LaneOffer) and message.event is not None:
                self.copies[packet.source] += 1
            self._post(packet)

    def _post(self, packet: Packet) -> None:
        weather = self.weather
        times = 1 + (weather.copies > 0 and self._random.random() < weather.copies)
        for _ in range(times):
            if weather.loss and self._random.random() < weather.loss:
                continue
            self._sent += 1
            arrival = self.now + self._random.uniform(*weather.delay)
            if isinstance(packet.message, ToldState):
                arrival += self.slow.get(packet.source, 0.0)
            heapq.heappush(self._queue, (arrival, self._sent, packet))
