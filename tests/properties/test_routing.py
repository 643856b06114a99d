"""Laws of the overlay, against oracles that share nothing with it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from maia.filters import compile_filter
from maia.routing import Account, Identifier, NeighbourTable, closest, distance, identifier
from maia.simulator import Network, Weather, walk

TYPES = {"price": "integer"}
KEY = identifier(b"one type")
places = st.sets(st.integers(0, (1 << 160) - 1).map(Identifier), min_size=1, max_size=60)
numbers = st.integers(0, 9)
wishes = st.tuples(st.sampled_from(["<", ">", "=", "!=", ">=", "<="]), numbers)
JUDGE = {
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "=": lambda a, b: a == b, "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b,
}  # fmt: skip


@given(places, st.integers(0, (1 << 160) - 1), st.randoms(use_true_random=False), st.sampled_from([2, 4, 16]))
def test_every_way_ends_at_the_closest(ring, key, lot, leaves):
    """From anywhere, hop by hop, whatever the tables hold; and the last hop knows that it is the last."""
    ordered = sorted(ring)
    nodes = {place: NeighbourTable.settled(place, ordered, lot.randrange, leaves=leaves) for place in ordered}
    for start in ordered[:10]:
        place, hops = start, 0
        while (onward := nodes[place].next_hop(key)) is not None:
            place, hops = onward, hops + 1
            assert hops <= len(ordered)
        assert distance(place, key) == min(distance(other, key) for other in ordered)
        assert place == closest(key, ordered)


@given(places, st.data())
def test_adding_and_losing_neighbours_keeps_the_nearest(ring, data):
    """Leaves are the nearest of those that are there, on either side, in whatever order they came and went."""
    own, *others = sorted(ring, key=lambda place: identifier(str(place).encode()))
    node = NeighbourTable(own, leaves=4)
    there = set()
    for other in others:
        node.add(other)
        there.add(other)
    gone = data.draw(st.lists(st.sampled_from(others), unique=True, max_size=3)) if others else []
    for other in gone:
        node.remove(other)
    left = there - set(gone)
    assert node.known() <= left
    if not gone:
        ahead = sorted(left, key=lambda place: (place - own) % (1 << 160))[:2]
        behind = sorted(left, key=lambda place: (own - place) % (1 << 160))[:2]
        assert node.watched() == set(ahead) | set(behind)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=30))
def test_an_account_is_a_set_of_numbers(stretches):
    """It holds exactly the numbers of the stretches it took, and its hole is the first that is missing before some."""
    account, held, furthest = Account(), set(), 0
    for after, length in stretches:
        assert account.take(after, after + length)
        held |= set(range(after + 1, after + length + 1))
        furthest = max(furthest, after + length)
    for number in range(1, 40):
        assert (number in account) is (number in held)
    missing = next((number for number in range(1, furthest + 1) if number not in held), None)
    hole = account.hole
    if missing is None:
        assert hole is None
    else:
        assert hole is not None
        assert hole[0] == missing - 1
        assert set(range(hole[0] + 1, hole[1] + 1)).isdisjoint(held)


@settings(max_examples=40)
@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 11), wishes), max_size=6),
    st.lists(st.tuples(st.integers(0, 11), numbers), max_size=8),
    st.booleans(),
    st.integers(0, 99),
)
def test_deliveries_are_those_of_brute_force(count, subscriptions, events, stormy, seed):
    """Whatever is covered, merged and skipped on the way, each client gets exactly what its own filter matches."""
    network = Network(seed=seed, leaves=4)
    network.populate(f"b{number}" for number in range(count))
    names = [f"b{number}" for number in range(count)]
    wanted = {}
    for number, (at, (comparison, value)) in enumerate(subscriptions):
        name = names[at % count]
        network.at(name).subscribe(f"c{number}", KEY, compile_filter(f"price {comparison} {value}", TYPES), now=0.0)
        network.flush(name)
        wanted[f"c{number}"] = (comparison, value)
    network.settle()
    if stormy:
        network.weather = Weather(delay=(0.0, 0.4), loss=0.1, copies=0.2)
    for at, _ in events:
        network.at(names[at % count]).advertise("p", KEY, now=network.now)
        network.flush(names[at % count])
    for at, price in events:
        network.at(names[at % count]).publish("p", KEY, {"price": price}, now=network.now)
        network.flush(names[at % count])
    network.settle()
    got = sorted((item.client, item.event.values["price"]) for item in network.delivered)
    expected = sorted(
        (client, price)
        for client, (comparison, value) in wanted.items()
        for _, price in events
        if JUDGE[comparison](price, value)
    )
    assert got == expected


@settings(max_examples=20)
@given(st.integers(2, 8), st.integers(0, 99))
def test_who_joins_one_by_one_agrees_on_every_root(count, seed):
    """A network that grew by joins routes to the closest broker from everywhere."""
    network = Network(seed=seed, leaves=4)
    for number in range(count):
        network.join(f"b{number}")
        network.run(1.0)
    network.settle()
    for number in range(5):
        key = identifier(f"{seed} {number}".encode())
        assert {walk(network, place, key)[0] for place in network.places} == {closest(key, network.places)}
