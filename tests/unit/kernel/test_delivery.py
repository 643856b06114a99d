"""What a subscriber gets: rows, cells, versions, and nothing under the nulls."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from kernel_world import EVERY_KIND, NUMBERPLATE, OWNER, clause, events

import maia.kernel.delivery as delivery_module
from maia.authority import parse_tag
from maia.errors import DeniedError, FilterTypeError, UsageError
from maia.events import AttributeType, EventType, TypeName, Version, attribute, batch_to_transit, check_batch
from maia.filters import compile_filter
from maia.kernel import DeliveryPlan, Subscription, check_readable, omit_closed, uid_filter
from maia.kernel.rows import kind_of, mask_of

KINDS = {item.uid: item.type for item in NUMBERPLATE.attributes}
TYPES = {item.name: item.type.value for item in NUMBERPLATE.attributes}


def wish(text, event_type=NUMBERPLATE):
    """A client's filter over uids."""
    types = {item.name: item.type.value for item in event_type.attributes}
    return uid_filter(event_type, compile_filter(text, types))


def sightings(**columns):
    """Opened events."""
    return batch_to_transit(NUMBERPLATE, check_batch(NUMBERPLATE, events(**columns)))


def deliver(batch, *subscriptions, kinds=None):
    """Deliveries by subscription, as rows."""
    plan = DeliveryPlan(kinds or KINDS)
    for item in subscriptions:
        plan.add(item)
    return {
        d.subscription: (d.rows.tolist(), [tuple(r.values()) for r in d.batch.to_pylist()]) for d in plan.deliver(batch)
    }


TWO = {"numberplate": ["AE05 XYZ", "BX51 ABC"], "timestamp": [1, 2], "location": ["Victoria", "Kent"]}


def test_the_constraint_joins_the_filter():
    """Without a filter the detective gets his one plate; asking for another gives nothing."""
    right = clause(where=[("3265", "=", "AE05 XYZ")])
    everything = Subscription("all", NUMBERPLATE, wish(""), (right,))
    other = Subscription("other", NUMBERPLATE, wish("numberplate = 'BX51 ABC'"), (right,))
    found = deliver(sightings(**TWO), everything, other)
    assert found == {"all": ([0], [("AE05 XYZ", 1, "Victoria")])}


def test_the_constraint_is_tested_before_nulling():
    """A constraint on an attribute that stays closed still chooses by the true value."""
    right = clause("3467", where=[("3265", "=", "AE05 XYZ")])
    assert deliver(sightings(**TWO), Subscription("s", NUMBERPLATE, wish(""), (right,))) == {
        "s": ([0], [(None, None, "Victoria")])
    }


@pytest.mark.parametrize("text", ["location = 'Victoria'", "location != 'Kent'", "location any"])
def test_a_filter_over_a_closed_attribute_is_refused(text):
    """The billing office may not read places, so it may not filter by them; `any` is a filter too (choice C34)."""
    with pytest.raises(DeniedError) as caught:
        check_readable(wish(text), [clause("3265", "9058")])
    assert caught.value.code == "FILTER_NOT_AUTHORISED"
    assert "location" not in str(caught.value)
    check_readable(wish(text), [clause("3265"), clause("3467")])


def test_a_filter_sees_the_cells_of_its_row_only():
    """An attribute open in some rows only matches in those; elsewhere the filter does not match (choice C35)."""
    clauses = (clause("9058"), clause("3467", where=[("3265", "=", "AE05 XYZ")]))
    found = deliver(sightings(**TWO), Subscription("s", NUMBERPLATE, wish("location any"), clauses))
    assert found == {"s": ([0], [(None, 1, "Victoria")])}


def test_a_hidden_cell_leaves_no_octets():
    """What is null for a subscriber is not in the memory that is handed over, whatever its type."""
    numbers = [0x5A5A5A5A5A5A5A5A, 1]
    batch = batch_to_transit(
        EVERY_KIND,
        check_batch(EVERY_KIND, events(EVERY_KIND, integer=numbers, string=["canary", "x"], boolean=[True, False])),
    )
    uids = {item.name: item.uid for item in EVERY_KIND.attributes}
    right = (clause(uids["boolean"]), clause(where=[(uids["integer"], "=", 1)]))
    plan = DeliveryPlan({item.uid: item.type for item in EVERY_KIND.attributes})
    plan.add(Subscription("s", EVERY_KIND, wish("", EVERY_KIND), right))
    [delivery] = plan.deliver(batch)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, delivery.batch.schema) as writer:
        writer.write_batch(delivery.batch)
    octets = sink.getvalue().to_pybytes()
    assert delivery.rows.tolist() == [0, 1]
    assert delivery.batch.column("integer").to_pylist() == [None, 1]
    assert b"canary" not in octets
    assert b"ZZZZZZZZ" not in octets


def test_each_subscriber_sees_its_own_version(monkeypatch):
    """Fifty subscribers on two versions: two type checks of the events, no version of the publisher's needed."""
    checks = []
    real = delivery_module.typed_columns
    monkeypatch.setattr(
        delivery_module,
        "typed_columns",
        lambda batch, items, schema: checks.append(items[0].name) or real(batch, items, schema),
    )
    renamed = EventType(
        name=TypeName(OWNER.public_key, "uk.gov.pito.Numberplate", Version("9000")),
        attributes=(attribute("plate", 3265, "string"), attribute("colour", 777, "string")),
    )
    plan = DeliveryPlan(KINDS | {"777": AttributeType.STRING})
    for n in range(50):
        event_type = renamed if n % 2 else NUMBERPLATE
        plan.add(Subscription(f"{n:02d}", event_type, wish("", event_type), (clause(),)))
    found = plan.deliver(sightings(**TWO))
    assert [d.subscription for d in found] == [f"{n:02d}" for n in range(50)]
    assert {tuple(d.batch.schema.names) for d in found} == {
        ("plate", "colour"),
        ("numberplate", "timestamp", "location"),
    }
    assert found[1].batch.to_pylist() == [{"plate": "AE05 XYZ", "colour": None}, {"plate": "BX51 ABC", "colour": None}]
    assert sorted(checks) == ["numberplate", "plate"]


def test_a_uid_has_one_type():
    """A batch that gives a known uid another type is refused; a version that does so sees nothing of it."""
    batch = pa.RecordBatch.from_pydict({"3265": ["A"], "9058": [1.5]})
    with pytest.raises(FilterTypeError):
        deliver(batch, Subscription("s", NUMBERPLATE, wish(""), (clause(),)))
    confused = EventType(name=NUMBERPLATE.name, attributes=(attribute("plate", 3265, "integer"),))
    assert deliver(sightings(**TWO), Subscription("s", confused, wish("", confused), (clause(),))) == {
        "s": ([0, 1], [(None,), (None,)])
    }


def test_constraints_that_are_no_filter_are_put_to_the_tag_itself():
    """Patterns of several pieces and sets with gaps, over texts, numbers and truth values."""
    plates, numbers, truths = ["AE05 XYZ", "AE51 ABC", None, "XE05 XYZ"], [1, 5, 9, None], [True, False, None, True]
    given = events(EVERY_KIND, string=plates, integer=numbers, boolean=truths)
    batch = batch_to_transit(EVERY_KIND, check_batch(EVERY_KIND, given))
    uids = {item.name: item.uid for item in EVERY_KIND.attributes}

    def mask(name, expression):
        return mask_of(batch, ((uids[name], parse_tag(expression)),)).tolist()

    assert mask("string", (b"*", b"glob", b"AE*XYZ")) == [True, False, False, False]
    ends = (b"*", b"set", (b"*", b"range", b"numeric", b"le", b"1"), (b"*", b"range", b"numeric", b"ge", b"9"))
    assert mask("integer", ends) == [True, False, True, False]
    assert mask("integer", b"5") == [False, True, False, False]
    assert mask("boolean", (b"*", b"set", b"true", b"false")) == [True, True, False, True]
    assert mask_of(batch, (("4711", parse_tag((b"*",))),)).tolist() == [False] * 4


def test_attributes_closed_to_the_subscriber_can_be_left_out():
    """For a type that leaves no trace, only the attributes that some clause opens remain (choice C2)."""
    plan = DeliveryPlan(KINDS)
    plan.add(Subscription("s", NUMBERPLATE, wish(""), (clause("3265", "9058"),)))
    plan.add(Subscription("t", NUMBERPLATE, wish(""), (clause(),)))
    some, every = plan.deliver(sightings(**TWO))
    assert some.closed == ("location",)
    assert omit_closed(some).schema.names == ["numberplate", "timestamp"]
    assert some.batch.schema.names == ["numberplate", "timestamp", "location"]
    assert omit_closed(every).equals(every.batch)


def test_the_clauses_of_a_delivery_are_those_that_admitted_a_row():
    """The audit can name the certificates behind each delivery."""
    used, idle = clause("3265"), clause("3467", where=[("9058", ">", 100)])
    plan = DeliveryPlan(KINDS)
    plan.add(Subscription("s", NUMBERPLATE, wish(""), (used, idle)))
    [delivery] = plan.deliver(sightings(**TWO))
    assert delivery.clauses == (used,)


def test_names_of_subscriptions_are_compared_to_the_last_character():
    """Two subscriptions whose names differ in a trailing null character get what is theirs."""
    found = deliver(
        sightings(**TWO),
        Subscription("s", NUMBERPLATE, wish("numberplate = 'AE05 XYZ'"), (clause(),)),
        Subscription("s\0", NUMBERPLATE, wish("numberplate = 'BX51 ABC'"), (clause("9058", "3265"),)),
    )
    assert {name: rows for name, (rows, _) in found.items()} == {"s": [0], "s\0": [1]}


def test_no_subscription_means_no_delivery():
    """Publishing to nobody is fine; removing the last subscriber is too."""
    plan = DeliveryPlan(KINDS)
    assert plan.deliver(sightings(**TWO)) == []
    plan.add(Subscription("s", NUMBERPLATE, wish(""), (clause(),)))
    plan.add(Subscription("s", NUMBERPLATE, wish(""), (clause("3265"),)))
    assert len(plan) == 1
    assert plan.deliver(sightings(numberplate=[])) == []
    [delivery] = plan.deliver(sightings(**TWO))
    assert delivery.batch.column("location").null_count == 2
    plan.remove("s")
    plan.remove("s")
    assert (len(plan), plan.deliver(sightings(**TWO))) == (0, [])


def test_a_filter_of_another_type_does_not_enter_the_plan():
    """A plan knows its attributes; a subscription that does not fit leaves no trace."""
    other = wish("integer = 1", EVERY_KIND)
    plan = DeliveryPlan(KINDS)
    with pytest.raises(FilterTypeError):
        plan.add(Subscription("s", EVERY_KIND, other, (clause(),)))
    assert len(plan) == 0
    assert plan.deliver(sightings(**TWO)) == []


def test_columns_that_are_none_of_a_transit_batch_are_told():
    """Only the eight Arrow types travel."""
    with pytest.raises(UsageError):
        kind_of(pa.array([1], pa.int8()))
    assert kind_of(pa.array([1])) is AttributeType.INTEGER


def test_rows_come_in_the_order_of_the_batch():
    """A delivery keeps the order of events, whatever the index does."""
    size = 5_000
    batch = sightings(numberplate=[f"P{n % 7}" for n in range(size)], timestamp=list(range(size)))
    found = deliver(
        batch,
        Subscription("some", NUMBERPLATE, wish("numberplate = 'P3'"), (clause(),)),
        Subscription("all", NUMBERPLATE, wish("timestamp >= 0"), (clause(),)),
    )
    assert found["some"][0] == list(range(3, size, 7))
    assert [row[1] for row in found["all"][1]] == list(range(size))
    assert np.all(np.diff(found["all"][0]) == 1)
