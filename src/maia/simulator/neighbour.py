"""Two neighbours that show each other what they may do, one of which gains a right later (6.08, 6.14).

A broker that proved a right to subscribe to one type stands between a client and the root. What it showed is in the
root's routing entry; an advertisement through it is refused. It gains a right on another type, shows that one
certificate, and events of that type pass.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from maia.authority import Action, Verifier, type_right
from maia.events import type_id
from maia.filters import TypedFilter
from maia.principals import Authorisation, KeySigner, issue
from maia.routing import Broker, Identifier, LinkHandshake, NeighbourRights, Routes, closest, identifier, rendezvous
from maia.simulator.network import Network

T1, T2 = "T1", "T2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """What a broker keeps of a neighbour, before and after it gained a right.

    Attributes:
        rights: The attributes it may see or set, by action, by type, as in its routing entry after the handshake.
        refused: How many advertisements through it were refused then.
        gained: The same entry after the neighbour showed what it gained.
        shown: How many messages of the handshake there were at first, and how many more for what was gained.
        passed: How many of one event of the second type passed through it before, and of another one after.
    """

    rights: dict[str, dict[str, list[str]]]
    refused: int
    gained: dict[str, dict[str, list[str]]]
    shown: tuple[int, int]
    passed: tuple[int, int]


class _Pair:
    def __init__(self, seed: int) -> None:
        lot = random.Random(seed)  # noqa: S311 - a simulation, repeatable on purpose
        self.owner = KeySigner(lot.randbytes(32))
        self.keys = {name: rendezvous(type_id(self.owner.public_key, name)) for name in (T1, T2)}
        names = ["a broker", "another broker"]
        # The root of the second type is the one that looks; the other stands before it.
        self.root = closest(self.keys[T2], [identifier(name.encode()) for name in names])
        (self.near,) = (name for name in names if identifier(name.encode()) != self.root)
        (self.far,) = (name for name in names if name != self.near)
        self.signers = {identifier(name.encode()): KeySigner(lot.randbytes(32)) for name in names}
        self.network = Network(seed=seed, make=self._broker)
        self.network.lay([(names[0], names[1])])

    def certificate(self, place: Identifier, name: str, *actions: Action) -> bytes:
        right = type_right(self.owner.public_key, name, actions=list(actions))
        subject = self.signers[place].public_key
        body = Authorisation(issuer=self.owner.public_key, subject=subject, delegate=False, tag=right.to_sexp())
        return issue(body, self.owner).raw

    def _broker(self, routes: Routes, life: int) -> Broker:
        actions = (Action.PUBLISH, Action.SUBSCRIBE)
        if routes.own == self.root:
            held = [self.certificate(routes.own, name, *actions) for name in (T1, T2)]
        else:
            held = [self.certificate(routes.own, T1, Action.SUBSCRIBE)]
        types = [(self.owner.public_key, name) for name in (T1, T2)]
        signer = self.signers[routes.own]
        return Broker(
            routes, life=life, handshake=LinkHandshake(routes.own, signer, held, verifier=Verifier(), types=types)
        )

    def entry(self) -> dict[str, dict[str, list[str]]]:
        kept = self.network.at(self.far).rights_of(self.network.place(self.near))
        return {} if kept is None else self._written(kept)

    def _written(self, rights: NeighbourRights) -> dict[str, dict[str, list[str]]]:
        return {
            name: {action.value: list(cells) for action, cells in rights.types[key].actions.items()}
            for name, key in self.keys.items()
            if key in rights.types
        }

    def rest(self, name: str) -> None:
        self.network.flush(name)
        self.network.settle()
        self.network.run(0.001)

    def publish(self, price: int) -> int:
        """Let a client of the near broker publish to the second type, and count how often its reader gets it."""
        network, key = self.network, self.keys[T2]
        network.at(self.near).advertise("camera", key, now=network.now)
        self.rest(self.near)
        network.at(self.near).publish("camera", key, {"price": price}, now=network.now)
        self.rest(self.near)
        network.at(self.near).unadvertise("camera", key, now=network.now)
        self.rest(self.near)
        return sum(item.client == "reader" and item.event.values["price"] == price for item in network.delivered)


def meet_neighbour(*, seed: int) -> Neighbour:
    """Let two brokers meet, and one of them gain a right."""
    pair = _Pair(seed)
    network = pair.network
    network.at(pair.far).subscribe("reader", pair.keys[T2], TypedFilter(), now=network.now)
    for name in (T1, T2):
        network.at(pair.near).subscribe("passer-by", pair.keys[name], TypedFilter(), now=network.now)
    pair.rest(pair.far)
    pair.rest(pair.near)
    rights, shown = pair.entry(), network.messages["ShownCredentials"]
    before = pair.publish(1)
    refused = network.at(pair.far).refused
    place = network.place(pair.near)
    network.at(pair.near).gain([pair.certificate(place, T2, Action.PUBLISH, Action.SUBSCRIBE)], now=network.now)
    pair.rest(pair.near)
    more = network.messages["ShownCredentials"] - shown
    return Neighbour(
        rights=rights, refused=refused, gained=pair.entry(), shown=(shown, more), passed=(before, pair.publish(2))
    )
