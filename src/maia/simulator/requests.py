"""What verification costs in the network: signed requests on real brokers, counted, against the model of SAINT.

The model (paper 001, section 3.3) bounds the signature checks of one request by the length c of its chain, the way of
log n hops, and for subscriptions and publications the number of those at the other end: ``(c+1)(p+1) log n``,
``(c+1) log n`` and ``(c+1)(s+1) log n``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from maia.authority import Action, Verifier, type_right
from maia.events import type_id
from maia.filters import TypedFilter
from maia.principals import Authorisation, KeySigner, issue
from maia.routing import (
    Broker,
    Gate,
    Identifier,
    NetworkRequest,
    Routes,
    Strategy,
    rendezvous,
    sign_request,
    subject_of,
)
from maia.simulator.neighbour import Neighbour, meet_neighbour
from maia.simulator.network import Network
from maia.simulator.scale import walk

_TEN_MINUTES = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCount:
    """Signature checks of one kind of request: how many there were, and how many the model allows.

    Attributes:
        kind: Advertise, subscribe or publish. A rogue broker brings the others: `forged` is an advertisement without a
            right, `replayed` a client's subscription, ten minutes after it was signed.
        requests: How many requests were verified, by all brokers.
        signatures: How many signatures that took.
        bound: The model's bound.
        refused: How many requests or events were refused.
    """

    kind: str
    requests: int
    signatures: int
    bound: int
    refused: int = 0


def model(*, chain: int, publishers: int, subscribers: int, way: int) -> dict[str, int]:
    """At most so many signature checks take requests of each kind, if every broker on a way verifies.

    >>> model(chain=2, publishers=3, subscribers=5, way=10)
    {'advertise': 30, 'subscribe': 120, 'publish': 180}
    """
    each = (chain + 1) * way
    return {"advertise": each, "subscribe": each * (publishers + 1), "publish": each * (subscribers + 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlan:
    """How large a measurement is."""

    brokers: int = 1000
    chain: int = 2
    publishers: int = 3
    subscribers: int = 5
    strategy: Strategy = field(default_factory=lambda: Strategy(1.0))
    seed: int = 1


def count_checks(plan: RequestPlan) -> tuple[tuple[CheckCount, ...], Neighbour]:
    """Send requests of each kind through a network and count; then let a neighbour exceed its rights."""
    return _Measurement(plan).run(), meet_neighbour(seed=plan.seed)


class _Measurement:
    def __init__(self, plan: RequestPlan) -> None:
        self._plan = plan
        self._lot = random.Random(plan.seed)  # noqa: S311 - a simulation, repeatable on purpose
        self._gates: list[Gate] = []
        self._network = Network(seed=plan.seed, make=self._broker)
        self._network.populate(f"broker {plan.seed}.{number}" for number in range(plan.brokers))
        self._rogue: Identifier | None = None
        self._owner = KeySigner(self._lot.randbytes(32))
        self._name = "measured"
        self._key = rendezvous(type_id(self._owner.public_key, self._name))
        self._client = KeySigner(self._lot.randbytes(32))
        self._before = (0, 0, 0)
        self._chain = self._issue()

    def _broker(self, routes: Routes, life: int) -> Broker:
        if routes.own == self._rogue:
            return Broker(routes, life=life)
        gate = Gate(self._plan.strategy, Verifier(), self._lot.random)
        self._gates.append(gate)
        return Broker(routes, life=life, gate=gate)

    def _issue(self) -> tuple[bytes, ...]:
        """Make a chain of certificates from the owner to the client."""
        holders = [
            self._owner,
            *(KeySigner(self._lot.randbytes(32)) for _ in range(self._plan.chain - 1)),
            self._client,
        ]
        right = type_right(self._owner.public_key, self._name)
        bodies = [
            Authorisation(issuer=giver.public_key, subject=taker.public_key, delegate=True, tag=right.to_sexp())
            for giver, taker in pairwise(holders)
        ]
        return tuple(issue(body, giver).raw for body, giver in zip(bodies, holders, strict=False))

    def _signed(self, action: Action, subject: bytes, *, forged: bool = False) -> NetworkRequest:
        at = datetime.fromtimestamp(self._network.now, UTC)
        signer = KeySigner(self._lot.randbytes(32)) if forged else self._client
        return sign_request(
            signer, action, self._owner.public_key, self._name, subject=subject, at=at, credentials=self._chain
        )

    def run(self) -> tuple[CheckCount, ...]:
        plan, network = self._plan, self._network
        rogue, *names = self._lot.sample(network.names, plan.publishers + plan.subscribers + 1)
        self._rogue = network.place(rogue)
        publishers, subscribers = names[: plan.publishers], names[plan.publishers :]
        way = max(walk(network, network.place(name), self._key)[1] for name in names) + 1
        bounds = model(chain=plan.chain, publishers=plan.publishers, subscribers=plan.subscribers, way=way)
        everything = TypedFilter()
        found = []
        for name in publishers:
            self._mark()
            network.at(name).advertise(
                "p", self._key, now=network.now, evidence=self._signed(Action.PUBLISH, subject_of(everything))
            )
            found.append(self._rest(name, "advertise", bounds["advertise"]))
        for name in subscribers:
            self._mark()
            network.at(name).subscribe(
                "s", self._key, everything, now=network.now,
                evidence=self._signed(Action.SUBSCRIBE, subject_of(everything)),
            )  # fmt: skip
            found.append(self._rest(name, "subscribe", bounds["subscribe"]))
        self._mark()
        values = {"price": 1}
        network.at(publishers[0]).publish(
            "p", self._key, values, now=network.now, evidence=self._signed(Action.PUBLISH, subject_of(values))
        )
        found.append(self._rest(publishers[0], "publish", bounds["publish"]))
        self._mark()
        # A broker that verifies nothing lets somebody in who holds no right.
        forged = self._signed(Action.PUBLISH, subject_of(everything), forged=True)
        network.at(rogue).advertise("thief", self._key, now=network.now, evidence=forged)
        found.append(self._rest(rogue, "forged", bounds["advertise"]))
        self._mark()
        # It also keeps what a client signed, and brings the same octets ten minutes later.
        signed = self._signed(Action.SUBSCRIBE, subject_of(everything))
        network.now += _TEN_MINUTES
        network.at(rogue).subscribe("echo", self._key, everything, now=network.now, evidence=signed)
        found.append(self._rest(rogue, "replayed", bounds["subscribe"]))
        return tuple(found)

    def _mark(self) -> None:
        self._before = self._sums()

    def _rest(self, name: str, kind: str, bound: int) -> CheckCount:
        self._network.flush(name)
        self._network.settle()
        requests, signatures, refused = (now - then for now, then in zip(self._sums(), self._before, strict=True))
        return CheckCount(kind=kind, requests=requests, signatures=signatures, bound=bound, refused=refused)

    def _sums(self) -> tuple[int, int, int]:
        return (
            sum(gate.requests for gate in self._gates),
            sum(gate.signatures for gate in self._gates),
            sum(broker.refused for broker in self._network.made()),
        )
