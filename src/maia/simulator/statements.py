"""The state of a topic along the tree: the first broker that holds the latest statement answers (13.12 to 13.15).

Questions and answers are messages of the brokers of `maia.routing`, over the network that events take. Lists are real,
signed, and checked by whoever decides by them (`maia.kernel`), wherever they were held.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from maia.authority import ListStatement, Statement, StatementBook, issue_statement
from maia.errors import VerificationError
from maia.events import type_id
from maia.filters import TypedFilter, compile_filter
from maia.kernel import StateCache, StateChoice, StateReply, learn_state
from maia.principals import Authorisation, KeySigner, OnlineTest, TestKind, issue
from maia.routing import Broker, Identifier, OverlayState, Routes, rendezvous
from maia.simulator.network import Network
from maia.simulator.scale import walk

TOPIC = "validity"
SOONER = 0.5
"""How long the publisher of the older list takes to answer, in seconds."""
_START = datetime(2026, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)
_EVICTED = 0.7
_STAMPS = (5, 9)
_PRICE = {"price": "integer"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedStatement:
    """One subscription's question: how far away the answer was, how many publishers were asked, what it decides."""

    moment: str
    hops: int | None
    publishers_asked: int
    decision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementReport:
    """What happened on one way: each question in order, and how many brokers stand on it."""

    brokers: int
    way: int
    choice: str
    chosen: int | None
    asked: tuple[AskedStatement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastMatch:
    """What a subscription with a filter hears: the last price that matches, then those that come, then the last again.

    Attributes:
        filter: The filter.
        price: The last price that matches; ``None`` is unknown.
        hops: How many hops away it was held.
        updates: What was delivered afterwards.
        again: What the same client hears when it asks again.
    """

    filter: str
    price: int | None
    hops: int | None
    updates: tuple[int, ...]
    again: int | None


class _Way:
    """A network, and two brokers on one branch of the tree of a type, away from those who publish."""

    def __init__(self, key: Identifier, *, brokers: int, seed: int, choice: StateChoice) -> None:
        def make(routes: Routes, life: int) -> Broker:
            return Broker(routes, life=life, first_state=choice is StateChoice.FIRST)

        self.key = key
        self.network = network = Network(seed=seed, make=make)
        network.populate(f"broker {seed}.{number}" for number in range(brokers))
        self.ends = _branch(network, key)
        ways = {place for end in self.ends for place in self.up(end)}
        away = [name for name in network.names if network.place(name) not in ways]
        # Where nobody stands apart, publishers are where they can be.
        self.publishers = tuple((away + list(network.names))[:2])

    def up(self, place: Identifier) -> Iterator[Identifier]:
        """Every broker from a place to the root."""
        onward: Identifier | None = place
        while onward is not None:
            yield onward
            onward = self.network.broker(onward).routes.next_hop(self.key)

    def rest(self, place: Identifier) -> None:
        """Let what a broker has to say be said, and the network come to rest."""
        self.network.flush(self.name(place))
        self.network.settle()
        self.network.run(0.001)

    def name(self, place: Identifier) -> str:
        return self.network.names[self.network.places.index(place)]

    def publish(self, publisher: str, values: dict[str, object]) -> None:
        broker = self.network.at(publisher)
        broker.advertise("publisher", self.key, now=self.network.now)
        self.rest(broker.own)
        broker.publish("publisher", self.key, values, now=self.network.now)
        self.rest(broker.own)

    def ask(self, place: Identifier, client: str, wish: TypedFilter) -> OverlayState:
        """Subscribe, unless the client did, and hear the state."""
        broker = self.network.broker(place)
        tree = broker.entries_of(self.key)
        if tree is None or client not in tree.clients:
            broker.subscribe(client, self.key, wish, now=self.network.now)
        broker.states.ask(client, self.key, now=self.network.now)
        self.rest(place)
        (answer,) = broker.states.take_answers()
        return answer


class _Topic:
    """One issuer's validity topic, with two who publish its lists."""

    def __init__(self, *, brokers: int, seed: int, choice: StateChoice, late: float) -> None:
        lot = random.Random(seed)  # noqa: S311 - a simulation, repeatable on purpose
        self.issuer = KeySigner(lot.randbytes(32))
        self.way = _Way(rendezvous(type_id(self.issuer.public_key, TOPIC)), brokers=brokers, seed=seed, choice=choice)
        body = Authorisation(
            issuer=self.issuer.public_key,
            subject=KeySigner(lot.randbytes(32)).public_key,
            delegate=False,
            tag=(b"read",),
            tests=(OnlineTest(kind=TestKind.CRL, signer=self.issuer.public_key),),
        )
        self.certificate = issue(body, self.issuer)
        network = self.way.network
        self.lists = [self._list(number) for number in _STAMPS]
        for name, stamp, made in zip(self.way.publishers, _STAMPS, self.lists, strict=True):
            network.run(stamp - network.now)
            self.way.publish(name, {"list": made.raw})
        for name, seconds in zip(self.way.publishers, (SOONER, late), strict=True):
            network.slow[network.place(name)] = seconds

    def _list(self, sequence: int) -> Statement:
        body = ListStatement(
            kind=TestKind.CRL, signer=self.issuer.public_key, sequence=sequence,
            starts=_START, ends=_START + _HOUR, certificates=frozenset(),
        )  # fmt: skip
        return issue_statement(body, self.issuer)

    def heard(self, place: Identifier) -> OverlayState:
        """Let a broker's client subscribe to the topic, which asks for its state."""
        return self.way.ask(place, "verifier", TypedFilter())

    def asked_publishers(self) -> int:
        network = self.way.network
        return sum(network.at(name).states.asked for name in self.way.publishers)

    def ask(
        self, moment: str, place: Identifier, *, at: datetime, presented: tuple[Statement, ...] = ()
    ) -> AskedStatement:
        """Decide by what is heard of the topic, or by what the principal brought."""
        before, book = self.asked_publishers(), StatementBook()
        state = None if presented else self.heard(place)
        tests = [(test, self.certificate.certificate_id) for test in self.certificate.body.tests]
        asked = self.asked_publishers() - before
        learn_state(book, tests, presented=presented, cache=_known(state), at=at)
        try:
            for test, identity in tests:
                book.check(test, identity, at=at)
        except VerificationError:
            decision = "deny"
        else:
            decision = "grant"
        return AskedStatement(
            moment=moment, hops=None if state is None else state.hops, publishers_asked=asked, decision=decision
        )


def _known(state: OverlayState | None) -> StateCache:
    """What the network told, for the kernel to check; nothing where the state is unknown."""
    raw = None if state is None or state.held is None else state.held.event.values["list"]
    reply = StateReply(statements=(raw,), stamp=_START) if isinstance(raw, bytes) else None
    return StateCache(publishers=[lambda _: reply])


def state_along_tree(*, brokers: int, seed: int, choice: StateChoice, late: float = 1.0) -> StatementReport:
    """Ask for the state of a validity topic again and again, while caches forget and publishers go.

    Args:
        brokers: How many there are.
        seed: Decides everything that is drawn.
        choice: Which of the two publishers' answers counts.
        late: How long the publisher of the newer list takes to answer, in seconds.
    """
    topic = _Topic(brokers=brokers, seed=seed, choice=choice, late=late)
    network, (first, second) = topic.way.network, topic.way.ends
    at = _START + timedelta(minutes=1)
    asked = [topic.ask("first", first, at=at), topic.ask("second, same branch", second, at=at)]
    held = topic.heard(first).held
    chosen = None if held is None else round(held.event.stamp)
    way = walk(network, first, topic.way.key)[1]
    lot = random.Random(seed)  # noqa: S311 - as above
    for broker in network.made():
        if lot.random() < _EVICTED and broker.routes.next_hop(topic.way.key) is not None:
            broker.states.forget()
    asked.append(topic.ask("some forgot", second, at=at))
    asked.append(topic.ask("the list is over", second, at=_START + 2 * _HOUR))
    for name in topic.way.publishers:
        network.at(name).unadvertise("publisher", topic.way.key, now=network.now)
        topic.way.rest(network.place(name))
    asked.append(topic.ask("publishers gone", first, at=at))
    for broker in network.made():
        broker.states.forget()
    asked.append(topic.ask("all forgot, publishers gone", first, at=at))
    asked.append(topic.ask("brought along", first, at=at, presented=(topic.lists[0],)))
    return StatementReport(brokers=brokers, way=way, choice=choice.value, chosen=chosen, asked=tuple(asked))


def last_matching(
    filters: Sequence[str], prices: Sequence[int], then: Sequence[int], *, brokers: int, seed: int
) -> tuple[LastMatch, ...]:
    """Publish prices, let clients subscribe with filters and hear the last that matches, and publish others.

    Raises:
        FilterSyntaxError: A filter cannot be read.
        FilterTypeError: A filter is about something else than a price.
    """
    wishes = [compile_filter(text, _PRICE) for text in filters]
    owner = KeySigner(random.Random(seed).randbytes(32))  # noqa: S311 - as above
    way = _Way(rendezvous(type_id(owner.public_key, "prices")), brokers=brokers, seed=seed, choice=StateChoice.NEWEST)
    for number, price in enumerate(prices):
        way.publish(way.publishers[number % 2], {"price": price})
    ends = [(way.ends[number % 2], f"client {number}") for number in range(len(wishes))]
    heard = [way.ask(place, client, wish) for (place, client), wish in zip(ends, wishes, strict=True)]
    way.network.delivered.clear()
    for number, price in enumerate(then):
        way.publish(way.publishers[number % 2], {"price": price})
    again = [way.ask(place, client, wish) for (place, client), wish in zip(ends, wishes, strict=True)]
    return tuple(
        LastMatch(
            filter=text, price=_price(before), hops=before.hops, again=_price(after),
            updates=tuple(_int(item.event.values) for item in way.network.delivered if item.client == before.client),
        )
        for text, before, after in zip(filters, heard, again, strict=True)
    )  # fmt: skip


def _price(state: OverlayState) -> int | None:
    return None if state.held is None else _int(state.held.event.values)


def _int(values: object) -> int:
    return int(values["price"])  # type: ignore[index]


def _branch(network: Network, key: Identifier) -> tuple[Identifier, Identifier]:
    """Find two brokers that have the same next broker on the way, which is not the root; or any two."""
    seen: dict[Identifier, Identifier] = {}
    for place in network.places:
        onward = network.broker(place).routes.next_hop(key)
        if onward is not None and network.broker(onward).routes.next_hop(key) is not None:
            if onward in seen:
                return seen[onward], place
            seen[onward] = place
    return network.places[0], network.places[-1]
