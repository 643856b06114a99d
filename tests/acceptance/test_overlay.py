"""The overlay: places, trees, covering, keys, repair, roles, and bounds of publishers (7.10, 8.01 to 8.09, 23.12)."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maia.authority import Action, Verifier
from maia.errors import DeniedError, NotFoundError, VerificationError
from maia.events import TypeName, Version, type_id
from maia.filters import TypedFilter, compile_filter, format_filter, matches
from maia.principals import KeySigner
from maia.routing import (
    Broker,
    Event,
    Gate,
    Identifier,
    LaneOffer,
    NeighbourTable,
    Packet,
    Routes,
    Strategy,
    closest,
    distance,
    identifier,
    merge_bounds,
    rendezvous,
    sign_request,
    subject_of,
)
from maia.simulator import Network, walk
from maia.testing import Command

TYPES = {"price": "integer", "plate": "string"}
KEY = identifier(b"a type")
PATH = tuple(sorted("abc", key=lambda name: -distance(identifier(name.encode()), KEY)))
PITO, EVIL = (KeySigner(bytes([n]) * 32).public_key for n in (1, 2))


def wish(text: str) -> TypedFilter:
    """A filter over the attributes of these tests."""
    return compile_filter(text, TYPES)


def network(count: int, seed: int = 1) -> Network:
    """A network at rest."""
    made = Network(seed=seed)
    made.populate(f"b{number}" for number in range(count))
    return made


def do(net: Network, name: str, verb: str, *asked: Any) -> None:
    """Let a client of a broker ask for something, and the network come to rest."""
    getattr(net.at(name), verb)(*asked, now=net.now)
    net.flush(name)
    net.settle()
    net.run(0.001)


def way(net: Network, name: str, key: Identifier = KEY) -> list[Identifier]:
    """The brokers from one to the root of a type."""
    places = [net.place(name)]
    while (onward := net.broker(places[-1]).routes.next_hop(key)) is not None:
        places.append(onward)
    return places


def line(*names: str, **options: Any) -> Network:
    """Brokers in a row with fixed links."""
    made = Network(**options)
    made.lay(pairwise(names))
    return made


def run(home: Command, brokers: list[str], steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Play steps through the conformance door."""
    request = {
        "id": 1, "verb": "overlay.run", "brokers": [{"name": name, "domain": "d"} for name in brokers],
        "types": {"T": {"price": "integer"}}, "steps": steps,
    }  # fmt: skip
    ran = home("conformance", stdin=json.dumps(request) + "\n")
    answer = json.loads(io.StringIO(ran.out).readline())
    assert "error" not in answer, answer
    result: list[dict[str, Any]] = answer["result"]
    return result


@pytest.fixture
def home(tmp_path: Any) -> Command:
    """The command line."""
    return Command(tmp_path)


# ---------------------------------------------------------------------- places and the root


@pytest.mark.requirement("8.01")
@pytest.mark.requirement("8.06")
def test_a_message_ends_at_the_numerically_closest_broker(home: Command) -> None:
    """2,000 brokers, 1,000 keys: none goes astray, after at most log16(2000) + 1 hops on average."""
    (found,) = home.do("simulate", "scale", "--brokers", "2000", "--routes", "1000")["sizes"]
    assert found["brokers"] == 2000
    assert found["astray"] == 0
    assert 2.0 < found["mean"] <= 3.74
    net = network(300)
    for number in range(50):
        key = identifier(f"key {number}".encode())
        assert key < 1 << 160
        reached, _ = walk(net, net.places[number], key)
        assert reached == min(net.places, key=lambda place: (distance(place, key), place)) == closest(key, net.places)


@pytest.mark.requirement("8.02")
def test_versions_share_one_root_and_owners_do_not() -> None:
    """The version takes no part in the rendezvous; another owner's type of the same name is elsewhere."""
    old, new = (TypeName(PITO, "uk.gov.pito.Numberplate", Version(text)) for text in ("4799", "8516"))
    other = TypeName(EVIL, "uk.gov.pito.Numberplate", Version("8516"))
    assert rendezvous(old.type_id) == rendezvous(new.type_id)
    assert rendezvous(other.type_id) != rendezvous(new.type_id)


# ---------------------------------------------------------------------- the tree


@pytest.mark.requirement("8.03")
def test_advertisements_leave_an_entry_at_every_hop() -> None:
    """Every broker on the way knows the lane and the hop it came from; nobody else knows anything."""
    net = network(1500)
    name = next(name for name in net.names if len(way(net, name)) > 3)
    do(net, name, "advertise", "camera", KEY)
    places = way(net, name)
    for before, place in pairwise(places):
        tree = net.broker(place).entries_of(KEY)
        assert tree is not None
        assert [lane.origin for lane in tree.lanes[before]] == [places[0]]
    assert net.entries == len(places)


@pytest.mark.requirement("8.04")
def test_who_comes_first_makes_no_difference() -> None:
    """Subscriber before publisher and publisher before subscriber: the same deliveries."""
    seen = []
    for order in ((0, 1), (1, 0)):
        net = network(60)
        moves = [("b1", "subscribe", "reader", KEY, wish("price > 1")), ("b2", "advertise", "camera", KEY)]
        for number in order:
            do(net, *moves[number])
        for price in (1, 2, 3):
            do(net, "b2", "publish", "camera", KEY, {"price": price})
        seen.append([item.event.values for item in net.delivered])
    assert seen[0] == seen[1] == [{"price": 2}, {"price": 3}]


@pytest.mark.requirement("8.05")
def test_one_copy_for_each_branch_and_one_event_for_each_subscriber() -> None:
    """Ten subscribing brokers get the event once; each broker hands on one copy a child, and one towards the root."""
    net = network(300)
    do(net, "b0", "advertise", "camera", KEY)
    for number in range(1, 11):
        do(net, f"b{number}", "subscribe", "reader", KEY, wish("price any"))
    do(net, "b0", "publish", "camera", KEY, {"price": 1})
    assert len(net.delivered) == 10
    up = way(net, "b0")
    for broker in net.made():
        tree = broker.entries_of(KEY)
        children = 0 if tree is None else len(tree.children)
        at = up.index(broker.own) if broker.own in up else -1
        came_from = up[at - 1] if at > 0 else None
        back = tree is not None and came_from in tree.children
        on_the_way = at >= 0 and at < len(up) - 1
        assert net.copies[broker.own] == children - back + on_the_way


@pytest.mark.requirement("8.07")
def test_what_is_covered_is_not_forwarded_until_its_cover_goes() -> None:
    """`price > 10` is told and hides `price > 20`; when it goes, the other is told."""
    net = line("a", "b")
    root = closest(KEY, net.places)
    name = next(name for name in net.names if net.place(name) != root)

    def told() -> list[str]:
        tree = net.broker(root).entries_of(KEY)
        return [] if tree is None else [format_filter(item) for item, _ in tree.children[net.place(name)].values()]

    do(net, name, "subscribe", "wide", KEY, wish("price > 10"))
    do(net, name, "subscribe", "narrow", KEY, wish("price > 20"))
    assert told() == ["price > 10"]
    do(net, name, "unsubscribe", "wide", KEY)
    assert told() == ["price > 20"]


@pytest.mark.parametrize(("keys", "forwarded"), [(frozenset(), 100), (frozenset({"plate"}), 7)])
def test_a_broker_filters_by_what_it_can_read(keys: frozenset[str], forwarded: int) -> None:
    """A relay without keys forwards all 100 events, one with the numberplate's key the 7 that match."""
    names = ("a", "b", "c")
    roots = {name: name for name in names}
    root = closest(KEY, [identifier(name.encode()) for name in names])
    ends = [name for name in roots if identifier(name.encode()) != root]
    relay = next(name for name in names if name not in ends)
    publisher, reader = ends
    able = {identifier(relay.encode()): keys, identifier(publisher.encode()): frozenset()}

    def make(routes: Routes, life: int) -> Broker:
        return Broker(routes, life=life, readable=able.get(routes.own))

    net = line(publisher, relay, reader, make=make)
    do(net, publisher, "advertise", "camera", KEY)
    do(net, reader, "subscribe", "detective", KEY, wish("plate = 'AE05 XYZ'"))
    for number in range(100):
        do(net, publisher, "publish", "camera", KEY, {"plate": "AE05 XYZ" if number < 7 else f"P{number}"})
    assert net.copies[identifier(relay.encode())] == forwarded
    assert len(net.delivered) == 7


# ---------------------------------------------------------------------- clients come and go


@pytest.mark.requirement("7.10")
def test_a_broker_is_what_its_clients_make_it() -> None:
    """Hosting publishers, subscribers, both or nobody; it changes as they come and go."""
    net = line("a", "b")
    roles = []
    for verb, *asked in (("advertise",), ("subscribe", wish("price any")), ("unadvertise",), ("unsubscribe",)):
        roles.append(net.at("a").role.value)
        do(net, "a", verb, "client", KEY, *asked)
    assert [*roles, net.at("a").role.value] == ["IB", "PHB", "CHB", "SHB", "IB"]
    assert net.at("b").role.value == "IB"


@pytest.mark.requirement("7.10")
def test_when_the_last_client_went_nobody_knows_the_type(home: Command) -> None:
    """Among 1,000 brokers each has its role; when all clients of a type went, no broker holds anything of it."""
    (found,) = home.do("simulate", "scale", "--brokers", "1000", "--routes", "10", "--subscribers", "20")["sizes"]
    assert (found["roles"]["PHB"], found["roles"]["SHB"]) == (1, 20)
    assert found["roles"]["IB"] > 0
    assert found["left"] == [0, 0]
    net = network(200)
    for name in ("b1", "b2"):
        do(net, name, "subscribe", "reader", KEY, wish("price > 1"))
    do(net, "b1", "unsubscribe", "reader", KEY)
    assert any(broker.entries_of(KEY) for broker in net.made())  # somebody wants it yet
    do(net, "b2", "unsubscribe", "reader", KEY)
    assert not any(broker.entries_of(KEY) for broker in net.made())
    with pytest.raises(NotFoundError, match="NOT_SUBSCRIBED"):
        do(net, "b2", "unsubscribe", "reader", KEY)


# ---------------------------------------------------------------------- losses


@pytest.mark.requirement("8.09")
def test_killing_the_root_loses_nothing_later(home: Command) -> None:
    """Whichever broker is killed in the middle of a run, clients of the others go on; so do the latest entries."""
    names = [f"b{number}" for number in range(1, 7)]
    for killed in names:  # one of them is the root
        near, far = [name for name in names if name != killed][:2]
        steps: list[dict[str, Any]] = [
            {"advertise": [near, "pub", "T"]},
            {"subscribe": [far, "sub", "T", "price < 5"]},
            {"publish": [near, "pub", "T", {"price": 4}]},
            {"kill": killed},
            {"publish": [near, "pub", "T", {"price": 3}]},
            {"publish": [near, "pub", "T", {"price": 9}]},
            {"join": killed},
            {"publish": [near, "pub", "T", {"price": 2}]},
            {"unsubscribe": [far, "sub", "T"]},
            {"unadvertise": [near, "pub", "T"]},
        ]
        result = run(home, names, steps)
        assert [step["deliveries"] for step in result] == [
            [], [], [["sub", {"price": 4}]], [], [["sub", {"price": 3}]], [], [], [["sub", {"price": 2}]], [], [],
        ]  # fmt: skip
        assert result[-1]["entries"] == 0


@pytest.mark.requirement("8.09")
def test_one_broker_and_a_line_of_five_are_ordinary(home: Command) -> None:
    """The same histories with one broker alone, and with fixed links that break and come back."""
    for options in (("--brokers", "1"), ("--brokers", "5", "--line")):
        found = home.do("simulate", "chaos", "--seeds", "8", *options)
        assert found["violation"] is None
        assert found["histories"] == 8
        assert found["deliveries"] > 0


# ---------------------------------------------------------------------- bounds of publishers


@pytest.mark.requirement("23.12")
def test_merged_bounds_refuse_what_was_injected_between_brokers() -> None:
    """Two publishers behind one hop: what either may publish passes, what neither may is refused by the next broker."""
    net = line("a", "b")
    root = closest(KEY, net.places)
    name = next(name for name in net.names if net.place(name) != root)
    for client, text in (("low", "price > 0 and price < 5"), ("high", "price >= 5 and price < 9")):
        net.at(name).advertise(client, KEY, now=net.now, bound=wish(text))
    net.flush(name)
    net.settle()
    tree = net.broker(root).entries_of(KEY)
    assert tree is not None
    (item,) = tree.lanes[net.place(name)].values()
    assert [format_filter(bound) for bound in item.bounds] == ["price > 0 and price < 9"]
    do(net, name, "publish", "low", KEY, {"price": 4})
    do(net, name, "publish", "high", KEY, {"price": 8})
    do(net, net.names[[net.place(n) for n in net.names].index(root)], "subscribe", "reader", KEY, wish("price any"))
    forged = LaneOffer(item.lane, 2, 3, Event(3, net.now + 1, {"price": 50}))
    target = net.broker(root)
    # The next packet of the conversation, as somebody on the wire would write it.
    for number in range(1, 12):
        target.receive(Packet(net.place(name), root, 1, 0, number, 0, forged), now=net.now)
    assert target.refused >= 1
    assert not target.take_deliveries()


CELLS = st.tuples(st.sampled_from(["<", "<=", "=", "!=", ">=", ">"]), st.integers(0, 9))
BOUNDS = st.lists(
    st.tuples(CELLS, CELLS | st.none()).map(
        lambda pair: " and ".join(f"price {item[0]} {item[1]}" for item in pair if item is not None)
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.requirement("23.12")
@settings(max_examples=25, deadline=None)
@given(BOUNDS, BOUNDS)
def test_what_merged_bounds_admit_on_the_way_is_what_some_publisher_may_publish(one: list[str], two: list[str]) -> None:
    """Publishers behind two brokers; at the third each event passes exactly when a bound behind its hop admits it."""
    net = line(*PATH)
    near, middle, root = (net.at(name) for name in PATH)
    for broker, bounds in ((near, one), (middle, two)):
        for number, text in enumerate(bounds):
            broker.advertise(f"p{number}", KEY, now=net.now, bound=wish(text))
    for name in PATH:
        net.flush(name)
    net.settle()
    root.subscribe("reader", KEY, TypedFilter(), now=net.now)
    for lane, bounds in ((near.lane(KEY), one), (middle.lane(KEY), two)):
        for number, price in enumerate(range(-1, 11), 1):
            refused = root.refused
            offer = LaneOffer(lane, number - 1, number, Event(number, net.now + 1, {"price": price}))
            inject(root, middle.own, offer, now=net.now)
            valid = any(matches(wish(text), {"price": price}) for text in bounds)
            assert root.refused - refused == (not valid)
            assert [item.event.values for item in root.take_deliveries()] == [{"price": price}] * valid


def inject(target: Broker, source: Identifier, offer: LaneOffer, *, now: float) -> None:
    """Say something to a broker as if its neighbour did: the next packet of their conversation."""
    acknowledged = [packet for packet in target.take_packets() if packet.target == source]
    target.receive(Packet(source, target.own, 1, 0, 0, 0, None, asks=True), now=now)
    (*_, last) = [*acknowledged, *(packet for packet in target.take_packets() if packet.target == source)]
    target.receive(Packet(source, target.own, 1, last.epoch, last.received + 1, 0, offer), now=now)


def test_a_merge_never_refuses_what_a_part_admits() -> None:
    """Whatever bounds meet, exactly what one of them admits is admitted by the merged ones."""
    texts = [
        "price > 3",
        "price < 2",
        "price = 2",
        "plate = 'x' and price > 8",
        "price >= 2 and price < 4",
        "plate = 'y'",
    ]
    for count in range(1, len(texts) + 1):
        parts = [wish(text) for text in texts[:count]]
        merged = merge_bounds(parts)
        for price in range(12):
            for plate in ("x", "y", None):
                event = {"price": price, "plate": plate}
                assert any(matches(item, event) for item in merged) is any(matches(item, event) for item in parts)


@pytest.mark.requirement("23.12")
def test_a_client_signs_what_it_may_publish_at_most() -> None:
    """A broker that verifies takes an advertisement within the bound that was signed, and no wider one."""
    name = "uk.gov.pito.Numberplate"
    owner = KeySigner(bytes([1]) * 32)
    key = rendezvous(type_id(owner.public_key, name))
    gate = Gate(Strategy.parse("edge"), Verifier(), lambda: 1.0)
    here = Broker(NeighbourTable(identifier(b"b")), gate=gate)
    at = datetime(2026, 6, 1, 12, tzinfo=UTC)
    narrow = wish("price < 5")
    signed = sign_request(owner, Action.PUBLISH, owner.public_key, name, subject=subject_of(narrow), at=at)
    for wider in (wish("price < 50"), None):
        with pytest.raises(VerificationError, match="OTHER_REQUEST"):
            here.advertise("camera", key, now=at.timestamp(), bound=wider, evidence=signed)
    assert here.entries == 0
    here.advertise("camera", key, now=at.timestamp(), bound=narrow, evidence=signed)
    assert here.entries == 1


def test_a_broker_takes_from_its_clients_only_what_they_advertised() -> None:
    """Nothing without an advertisement, and nothing outside of it; the codes say which."""
    net = line("a", "b")
    with pytest.raises(DeniedError, match="NOT_ADVERTISED"):
        do(net, "a", "publish", "camera", KEY, {"price": 1})
    net.at("a").advertise("camera", KEY, now=net.now, bound=wish("price < 5"))
    with pytest.raises(DeniedError, match="OUTSIDE_ADVERTISEMENT"):
        do(net, "a", "publish", "camera", KEY, {"price": 7})
    do(net, "a", "publish", "camera", KEY, {"price": 4})
    do(net, "a", "unadvertise", "camera", KEY)
    with pytest.raises(DeniedError, match="NOT_ADVERTISED"):
        do(net, "a", "publish", "camera", KEY, {"price": 4})
