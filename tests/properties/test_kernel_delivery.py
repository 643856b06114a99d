"""Delivery against an oracle that looks at one row and one subscription at a time, in plain Python."""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given
from strategies_events import filters, kinds, rows, rules, transit, typed_filter, versions

from maia.errors import DeniedError
from maia.events import AttributeType
from maia.kernel import DeliveryPlan, Subscription, check_readable, omit_closed

ALL = {"999": AttributeType.STRING}


def visible(row, held, uid):
    """A cell is visible when some clause opens it and that clause's constraint holds for the row."""
    return any(rule.opens(uid) and rule.admits(row) for rule in held)


def view(event_type, wish, held, row):
    """What one subscriber gets of one row, or nothing."""
    if not any(rule.admits(row) for rule in held):
        return None
    if not all(visible(row, held, demand.uid) and demand.holds(row[demand.uid]) for demand in wish):
        return None
    return {item.name: row.get(item.uid) if visible(row, held, item.uid) else None for item in event_type.attributes}


@st.composite
def worlds(draw):
    """Events, and subscribers with filters, clauses and versions of their own."""
    shape = draw(kinds())
    events = draw(rows(shape))
    people = []
    for number in range(draw(st.integers(1, 4))):
        event_type = draw(versions(shape, version=str(number + 2)))
        held = draw(st.lists(rules(shape), max_size=3))
        wish = draw(filters({item.uid: item.type for item in event_type.attributes if item.uid != "999"}))
        people.append((f"s{number}", event_type, wish, held))
    return shape, events, people


def subscription(name, event_type, wish, held):
    """The same subscriber for the kernel."""
    return Subscription(name, event_type, typed_filter(wish), tuple(c for rule in held for c in rule.maia()))


def delivered(plan, batch):
    """Deliveries as plain values: by subscription, the rows by position."""
    return {d.subscription: dict(zip(d.rows.tolist(), d.batch.to_pylist(), strict=True)) for d in plan.deliver(batch)}


def expected(people, events):
    """The oracle's deliveries."""
    found = {}
    for name, event_type, wish, held in people:
        seen = {at: view(event_type, wish, held, row) for at, row in enumerate(events)}
        seen = {at: row for at, row in seen.items() if row is not None}
        if seen:
            found[name] = seen
    return found


@given(worlds())
def test_delivery_equals_the_oracle(world):
    """Every subscriber gets exactly the rows and cells that the rules give."""
    shape, events, people = world
    plan = DeliveryPlan(shape | ALL)
    for person in people:
        plan.add(subscription(*person))
    assert delivered(plan, transit(events, shape)) == expected(people, events)


@given(worlds(), st.randoms(use_true_random=False))
def test_order_of_subscriptions_and_clauses_is_irrelevant(world, random):
    """Shuffling who subscribed first and whose certificate came first changes nothing; nor do removals and returns."""
    shape, events, people = world
    plan = DeliveryPlan(shape | ALL)
    shuffled = random.sample(people, len(people))
    for name, event_type, wish, held in shuffled:
        plan.add(subscription(name, event_type, wish, random.sample(held, len(held))))
    again = shuffled[0]
    plan.remove(again[0])
    plan.add(subscription(*again))
    plan.add(subscription(*again))
    assert len(plan) == len(people)
    assert delivered(plan, transit(events, shape)) == expected(people, events)


@given(worlds(), st.data())
def test_hidden_cells_have_no_influence(world, data):
    """Changing a value that a subscriber sees in neither world, and no clause asks about, changes nothing it gets."""
    shape, events, people = world
    uid = data.draw(st.sampled_from(sorted(shape)))
    other = data.draw(rows(shape, max_size=1))[0][uid]
    at = data.draw(st.integers(0, len(events) - 1))
    changed = [dict(row) for row in events]
    changed[at][uid] = other
    for name, event_type, wish, held in people:
        if any(demand.uid == uid for rule in held for demand in rule.demands) or visible(events[at], held, uid):
            continue
        results = []
        for batch in (events, changed):
            plan = DeliveryPlan(shape | ALL)
            plan.add(subscription(name, event_type, wish, held))
            results.append(delivered(plan, transit(batch, shape)))
        assert results[0] == results[1]


@given(worlds())
def test_nothing_hidden_lies_under_the_nulls(world):
    """No octet of a hidden text is in the buffers of a delivery."""
    shape, events, people = world
    texts = {uid for uid, kind in shape.items() if kind is AttributeType.STRING}
    marked = [
        {uid: f"<{at}:{uid}>{value}" if uid in texts and value is not None else value for uid, value in row.items()}
        for at, row in enumerate(events)
    ]
    plan = DeliveryPlan(shape | ALL)
    for name, event_type, _, held in people:
        plan.add(subscription(name, event_type, (), held))
    for delivery in plan.deliver(transit(marked, shape)):
        _, event_type, _, held = next(person for person in people if person[0] == delivery.subscription)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, delivery.batch.schema) as writer:
            writer.write_batch(delivery.batch)
        octets = sink.getvalue().to_pybytes()
        for at, row in enumerate(marked):
            for uid in texts:
                seen = (
                    at in delivery.rows and uid in event_type.uids and row[uid] is not None and visible(row, held, uid)
                )
                assert (f"<{at}:{uid}>".encode() in octets) == seen


@given(worlds())
def test_a_filter_is_readable_exactly_when_some_clause_opens_each_attribute(world):
    """A filter over an attribute that no clause opens is refused, and no other."""
    _, _, people = world
    for name, event_type, wish, held in people:
        made = subscription(name, event_type, wish, held)
        # A rule whose constraint admits nothing at all gives no clause.
        alive = [rule for rule in held if rule.maia()]
        if all(any(rule.opens(demand.uid) for rule in alive) for demand in wish):
            check_readable(made.filter, made.clauses)
        else:
            with pytest.raises(DeniedError) as caught:
                check_readable(made.filter, made.clauses)
            assert caught.value.code == "FILTER_NOT_AUTHORISED"


@given(worlds())
def test_omitted_attributes_are_those_that_no_clause_opens(world):
    """For types that leave no trace of closed attributes, the rest stays as it was."""
    shape, events, people = world
    plan = DeliveryPlan(shape | ALL)
    for person in people:
        plan.add(subscription(*person))
    for delivery in plan.deliver(transit(events, shape)):
        _, event_type, _, held = next(person for person in people if person[0] == delivery.subscription)
        alive = [rule for rule in held if rule.maia()]
        open_names = [item.name for item in event_type.attributes if any(rule.opens(item.uid) for rule in alive)]
        slim = omit_closed(delivery)
        assert slim.schema.names == open_names
        assert slim.num_rows == len(delivery.rows) or not open_names
