"""The conformance verb of the network: brokers, clients, kills and joins, played on the brokers of `maia.routing`.

A step that nobody could carry out (a broker that is not there, a type that is not, an ill-typed filter or event, an
event that was not advertised) is refused and changes nothing; one after which the network does not come to rest is
refused as well. Taking back what is not there changes nothing either and is no fault. A second subscription of a client
to a type takes the place of the first. Messages, deliveries and looks at brokers are bounded, so that no request takes
minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from maia.conformance.fields import Json, field, objects, wrong
from maia.conformance.filters import read_types
from maia.errors import DeniedError, MalformedError, NotFoundError, UnavailableError, UncheckedError, UsageError
from maia.events import type_id
from maia.filters import check_event, compile_filter, read_event
from maia.principals import KeySigner
from maia.routing import Broker, Identifier, Lane, rendezvous
from maia.simulator import Network

_MAX_BROKERS = 2_000
_MAX_STEPS = 10_000
_MAX_WORK = 1_000_000
_MAX_STEP_WORK = 500_000
_MOMENT = 0.001
_CLIENT_STEPS = {"advertise": 3, "unadvertise": 3, "subscribe": 4, "unsubscribe": 3, "publish": 4}
_OWNER = KeySigner(b"overlay.run's owner of all types").public_key
_REFUSALS = (DeniedError, MalformedError, NotFoundError, UncheckedError, UsageError)


def overlay_run(request: Json) -> list[dict[str, object]]:
    """Play steps and give what was delivered and how many entries there are after each, at rest."""
    play = _Play(request)
    return [play.take(verb, asked) for verb, asked in play.steps]


class _Play:
    def __init__(self, request: Json) -> None:
        names = [_text(field(broker, "name", str), "brokers") for broker in objects(request, "brokers")]
        for broker in objects(request, "brokers"):
            _text(field(broker, "domain", str, ""), "brokers")
        if len(set(names)) != len(names) or len(names) > _MAX_BROKERS:
            raise wrong("brokers", f"a list of at most {_MAX_BROKERS} brokers with names of their own")
        types = field(request, "types", dict)
        self._types = {_text(name, "types"): read_types({"types": kinds}) for name, kinds in types.items()}
        self.steps = [_step(step) for step in objects(request, "steps")]
        if len(self.steps) > _MAX_STEPS:
            raise wrong("steps", f"a list of at most {_MAX_STEPS} steps")
        self._network = Network()
        self._network.populate(names)
        self._looks = 0
        self._written: dict[tuple[Lane, int], object] = {}

    def take(self, verb: str, asked: list[object]) -> dict[str, object]:
        network = self._network
        before, refused = len(network.delivered), False
        self._looks += sum(1 for _ in network.made())
        if self._looks + before + network.messages.total() > _MAX_WORK:
            message = "the play takes too long; play fewer steps, or on fewer brokers"
            raise UsageError(message, code="OVERLAY_WORK")
        try:
            if verb == "kill":
                network.crash(str(asked[0]))
            elif verb == "join":
                network.join(str(asked[0]))
            else:
                self._client(verb, *asked)
        except _REFUSALS:
            refused = True
        try:
            network.settle(messages=_MAX_STEP_WORK)
        except UnavailableError:
            refused = True
        network.run(_MOMENT)  # the next step happens later
        got = [[item.client, self._written[item.lane, item.event.number]] for item in network.delivered[before:]]
        answer: dict[str, object] = {"deliveries": sorted(got, key=_order), "entries": network.entries}
        return answer | ({"refused": True} if refused else {})

    def _client(self, verb: str, name: object, client: object, kind: object, what: object = None) -> None:
        network, broker = self._network, self._network.at(str(name))
        who, now = str(client), network.now
        types = self._types.get(str(kind))
        if types is None:
            raise NotFoundError(f"there is no type `{kind}`", code="UNKNOWN_TYPE")
        key = rendezvous(type_id(_OWNER, str(kind)))
        match verb:
            case "advertise":
                broker.advertise(who, key, now=now)
            case "subscribe":
                broker.subscribe(who, key, compile_filter(str(what), types), now=now)
            case "publish":
                values = read_event(what, types)
                check_event(values, types)
                event = broker.publish(who, key, values, now=now)
                self._written[broker.lane(key), event.number] = what
            case _:
                _take_back(broker, verb, who, key, now)
        network.flush(str(name))


def _take_back(broker: Broker, verb: str, client: str, key: Identifier, now: float) -> None:
    tree = broker.entries_of(key)
    if verb == "unsubscribe" and tree is not None and client in tree.clients:
        broker.unsubscribe(client, key, now=now)
    elif verb == "unadvertise" and tree is not None and client in tree.publishers:
        broker.unadvertise(client, key, now=now)


def _order(delivery: list[object]) -> tuple[str, str]:
    return str(delivery[0]), json.dumps(delivery[1], sort_keys=True)


def _text(name: str, what: str) -> str:
    """Refuse a name that no broker could send to another."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise wrong(what, "made of names that are Unicode") from error
    return name


def _step(step: Json) -> tuple[str, list[object]]:
    """Read one step: its verb, and what it is about."""
    if len(step) != 1:
        raise wrong("steps", "a list of objects with one field each")
    ((verb, asked),) = step.items()
    if verb in {"kill", "join"}:
        if not isinstance(asked, str):
            raise wrong(verb, "the name of a broker")
        return verb, [_text(asked, verb)]
    if not isinstance(asked, list) or len(asked) != _CLIENT_STEPS.get(verb):
        raise wrong(verb, "a broker, a client and a type, and where it belongs a filter or values")
    if not all(isinstance(item, str) for item in asked[:3]):
        raise wrong(verb, "a list that begins with three names")
    for name in asked[:3]:
        _text(name, verb)
    if verb == "subscribe" and not isinstance(asked[3], str):
        raise wrong(verb, "a list that ends with a filter")
    if verb == "publish" and not isinstance(asked[3], dict):
        raise wrong(verb, "a list that ends with values")
    return verb, asked


VERBS: dict[str, Callable[[Json], object]] = {"overlay.run": overlay_run}
