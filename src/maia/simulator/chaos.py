"""Chaos: random histories of clients, crashes, partitions and bad weather, and an oracle that knows only the laws.

The laws, looked at after every step:

- `duplicate`: no client gets an event twice;
- `unmatched`: a client gets only what it asked for, before it was published, with a filter that matches;
- `bounded`: no broker keeps more than its share, whatever happened;

and whenever the weather is fair and the network has come to rest:

- `loss`: every event whose broker lives is with every client that was promised it;
- `promise`: every subscription is in force;
- `state`: entries are no more than clients and hops explain, and none is left when the last client went.

The oracle compares plain numbers; it shares no code with the filters, tables and accounts that it watches.
"""

from __future__ import annotations

import operator
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from maia.errors import MaiaError
from maia.filters import compile_filter
from maia.routing import Identifier, OverlayDelivery, identifier
from maia.simulator.network import CALM, Network, Weather

TYPES = {"price": "integer"}
STORM = Weather(delay=(0.005, 0.6), loss=0.15, copies=0.1)
MAX_SHARE = 20_000
"""How much one broker may keep beside entries, in things."""
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How large a history is."""

    brokers: int = 6
    steps: int = 40
    types: int = 2
    leaves: int = 4
    line: bool = False


class Violation(Exception):  # noqa: N818 - it is what is looked for
    """A law that was broken, and where."""

    def __init__(self, law: str, seed: int, step: int, detail: str) -> None:
        """Say which law, in which history, after which step."""
        super().__init__(f"{law}: {detail}")
        self.law, self.seed, self.step, self.detail = law, seed, step, detail


@dataclass(frozen=True, slots=True)
class _Wish:
    broker: str
    key: Identifier
    comparison: str
    number: int
    since: float


@dataclass(frozen=True, slots=True)
class _Published:
    broker: str
    life: int
    key: Identifier
    number: int
    price: int
    stamp: float


@dataclass(slots=True)
class History:
    """One random history: its network, and what the oracle knows of it."""

    seed: int
    plan: Plan
    lot: random.Random = field(init=False)
    network: Network = field(init=False)
    keys: list[Identifier] = field(init=False)
    wishes: dict[tuple[str, Identifier], _Wish] = field(default_factory=dict)
    speakers: dict[tuple[str, Identifier], str] = field(default_factory=dict)
    published: list[_Published] = field(default_factory=list)
    seen: Counter[tuple[str, Identifier, int, Identifier, int]] = field(default_factory=Counter)
    looked: int = 0
    step: int = 0
    clients: int = 0
    newcomers: int = 0
    parted: bool = False
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Let brokers be there, at rest or one after the other."""
        self.lot = random.Random(self.seed)  # noqa: S311 - a simulation, repeatable on purpose
        self.network = Network(seed=self.seed, leaves=self.plan.leaves)
        names = [f"b{number}" for number in range(self.plan.brokers)]
        if self.plan.line and len(names) > 1:
            self.network.lay(pairwise(names))
        else:
            self.network.populate(names)
        self.keys = [identifier(f"type {number}".encode()) for number in range(self.plan.types)]

    def run(self) -> None:
        """Play the history.

        Raises:
            Violation: A law was broken.
        """
        while self.step < self.plan.steps:
            self.step += 1
            self._act()
            self._look()
            if self.step % 13 == 0:
                self._rest()
        self._rest()
        self._leave()

    # ------------------------------------------------------------------ what happens

    def _act(self) -> None:
        moves: list[tuple[int, Callable[[], None]]] = [
            (22, self._publish),
            (8, self._subscribe),
            (4, self._unsubscribe),
            (5, self._advertise),
            (2, self._unadvertise),
            (4, self._wait),
            (2, self._storm),
            (2, self._calm),
        ]
        if self.plan.line:
            moves += [(2, self._crash_and_return)]
        else:
            moves += [(3, self._crash), (3, self._join)]
        moves += [(2, self._part), (2, self._heal)]
        move = self.lot.choices([move for _, move in moves], [weight for weight, _ in moves])[0]
        self.done[move.__name__.strip("_")] += 1
        move()
        self.network.run(self.lot.choice((0.001, 0.02, 0.1, 0.5)))  # no two things happen at once

    def _publish(self) -> None:
        if not self.speakers:
            self._advertise()
        (client, key), name = self.lot.choice(sorted(self.speakers.items()))
        price = self.lot.randrange(10)
        broker = self.network.at(name)
        event = broker.publish(client, key, {"price": price}, now=self.network.now)
        self.published.append(_Published(name, broker.life, key, event.number, price, event.stamp))
        self.network.flush(name)

    def _subscribe(self) -> None:
        client, name = self._client()
        key = self.lot.choice(self.keys)
        comparison, number = self.lot.choice(sorted(_COMPARISONS)), self.lot.randrange(10)
        self._want(client, name, key, comparison, number)

    def _want(self, client: str, name: str, key: Identifier, comparison: str, number: int) -> None:
        filter_ = compile_filter(f"price {comparison} {number}", TYPES)
        self.network.at(name).subscribe(client, key, filter_, now=self.network.now)
        self.wishes[client, key] = _Wish(name, key, comparison, number, self.network.now)
        self.network.flush(name)

    def _unsubscribe(self) -> None:
        if self.wishes:
            (client, key), wish = self.lot.choice(sorted(self.wishes.items(), key=lambda item: item[0]))
            if self.lot.random() < 0.3:  # another filter in place of this one
                self._want(client, wish.broker, key, self.lot.choice(sorted(_COMPARISONS)), self.lot.randrange(10))
                return
            self.network.at(wish.broker).unsubscribe(client, key, now=self.network.now)
            del self.wishes[client, key]
            self.network.flush(wish.broker)

    def _advertise(self) -> None:
        client, name = self._client()
        key = self.lot.choice(self.keys)
        self.network.at(name).advertise(client, key, now=self.network.now)
        self.speakers[client, key] = name
        self.network.flush(name)

    def _unadvertise(self) -> None:
        if self.speakers:
            (client, key), name = self.lot.choice(sorted(self.speakers.items()))
            self.network.at(name).unadvertise(client, key, now=self.network.now)
            del self.speakers[client, key]
            self.network.flush(name)

    def _crash(self) -> None:
        if len(self.network.names) > 2:
            self._fell(self.lot.choice(sorted(self.network.names)))

    def _fell(self, name: str) -> None:
        self.network.crash(name)
        self.wishes = {who: wish for who, wish in self.wishes.items() if wish.broker != name}
        self.speakers = {who: broker for who, broker in self.speakers.items() if broker != name}

    def _crash_and_return(self) -> None:
        name = self.lot.choice(sorted(self.network.names))
        self._fell(name)
        self.network.run(self.lot.choice((0.0, 1.0, 6.0)))
        self.network.join(name)

    def _join(self) -> None:
        gone = [name for name in (f"b{n}" for n in range(self.plan.brokers)) if name not in self.network.names]
        if gone and self.lot.random() < 0.5:
            self.network.join(self.lot.choice(gone))
        elif len(self.network.names) < 2 * self.plan.brokers:
            self.newcomers += 1
            self.network.join(f"n{self.newcomers}")

    def _part(self) -> None:
        names = sorted(self.network.names)
        self.lot.shuffle(names)
        cut = self.lot.randrange(1, len(names)) if len(names) > 1 else 0
        self.network.part([names[:cut], names[cut:]] if cut else [])

    def _heal(self) -> None:
        self.network.part([])

    def _storm(self) -> None:
        self.network.weather = STORM

    def _calm(self) -> None:
        self.network.weather = CALM

    def _wait(self) -> None:
        self.network.run(self.lot.choice((1.0, 3.0, 8.0)))

    def _client(self) -> tuple[str, str]:
        self.clients += 1
        return f"c{self.clients}", self.lot.choice(sorted(self.network.names))

    # ------------------------------------------------------------------ what is looked at

    def _rest(self) -> None:
        """Let the weather be fair and the network come to rest, then look at what must be true then."""
        self._heal()
        self._calm()
        try:
            self.network.settle()
        except MaiaError as error:
            raise self._broken("state", error.message) from error
        self._look()
        lives = {name: self.network.at(name).life for name in self.network.names}
        for (client, key), wish in self.wishes.items():
            promised = self.network.at(wish.broker).promised.get((client, key))
            if promised is None:
                raise self._broken("promise", f"`{client}` at `{wish.broker}` has no promise")
            for event in self.published:
                due = event.key == key and event.stamp >= promised and lives.get(event.broker) == event.life
                if due and _wants(wish, event) and not self.seen[self._name(client, event)]:
                    raise self._broken("loss", f"`{client}` misses event {event.number} of `{event.broker}`")
        most = (len(self.wishes) + len(self.speakers)) * len(lives)
        if self.network.entries > most:
            raise self._broken("state", f"{self.network.entries} entries, at most {most} are explained")

    def _leave(self) -> None:
        """Let the last client go; nothing may stay."""
        for (client, key), wish in self.wishes.items():
            self.network.at(wish.broker).unsubscribe(client, key, now=self.network.now)
            self.network.flush(wish.broker)
        for (client, key), name in self.speakers.items():
            self.network.at(name).unadvertise(client, key, now=self.network.now)
            self.network.flush(name)
        self.wishes.clear()
        self.speakers.clear()
        self._rest()

    def _look(self) -> None:
        """Look at what was delivered since the last time, and at what brokers keep."""
        events = {(identifier(e.broker.encode()), e.life, e.key, e.number): e for e in self.published}
        for delivery in self._new():
            lane = delivery.lane
            event = events.get((lane.origin, lane.life, lane.key, delivery.event.number))
            wish = self.wishes.get((delivery.client, lane.key))
            if event is None or wish is None or event.stamp < wish.since or not _wants(wish, event):
                raise self._broken("unmatched", f"`{delivery.client}` got what it did not ask for")
            self.seen[self._name(delivery.client, event)] += 1
            if self.seen[self._name(delivery.client, event)] > 1:
                raise self._broken(
                    "duplicate", f"`{delivery.client}` got event {event.number} of `{event.broker}` twice"
                )
        for broker in self.network.made():
            if broker.size > MAX_SHARE:
                raise self._broken("bounded", f"a broker keeps {broker.size} things")

    def _new(self) -> Iterator[OverlayDelivery]:
        while self.looked < len(self.network.delivered):
            self.looked += 1
            yield self.network.delivered[self.looked - 1]

    @staticmethod
    def _name(client: str, event: _Published) -> tuple[str, Identifier, int, Identifier, int]:
        return client, identifier(event.broker.encode()), event.life, event.key, event.number

    def _broken(self, law: str, detail: str) -> Violation:
        return Violation(law, self.seed, self.step, detail)


def _wants(wish: _Wish, event: _Published) -> bool:
    return _COMPARISONS[wish.comparison](event.price, wish.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosReport:
    """What was tried, and the first law that was broken, if one was."""

    seeds: int
    steps: int
    events: int
    deliveries: int
    moves: dict[str, int]
    violation: Violation | None


def chaos(
    seeds: range,
    plan: Plan,
    *,
    make: Callable[[int, Plan], History] = History,
    say: Callable[[str], None] | None = None,
) -> ChaosReport:
    """Play histories until a law is broken or all are played."""
    steps = events = deliveries = count = 0
    moves: Counter[str] = Counter()
    violation = None
    for seed in seeds:
        history = make(seed, plan)
        count += 1
        if say is not None:
            say(f"history {count:,} of {len(seeds):,}")
        try:
            history.run()
        except Violation as found:
            violation = found
        steps += history.step
        events += len(history.published)
        deliveries += len(history.network.delivered)
        moves += history.done
        if violation is not None:
            break
    return ChaosReport(
        seeds=count, steps=steps, events=events, deliveries=deliveries, moves=dict(sorted(moves.items())),
        violation=violation,
    )  # fmt: skip
