"""Access-control filters against an oracle that tries every notification of a small world, by the paper's formulas.

Constraints compare integers with 0, 1 and 2, so five values stand for all of them: one below, the three, one above. An
attribute may be absent. The oracle uses nothing of Maia; Maia's side goes from rights through certificates' tags, and
two links of a chain, to the kernel.
"""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from maia.authority import (
    Action,
    Constraint,
    ask_type,
    cell_rights,
    intersect,
    is_nothing,
    parse_tag,
    permits,
    type_right,
)
from maia.errors import DeniedError
from maia.events import AttributeType, EventType, TypeName, attribute, batch_to_transit, parse_version, to_arrow_schema
from maia.filters import Bound, BoundKind, Operator, Side, TypedConstraint, TypedFilter
from maia.kernel import (
    Clause,
    DeliveryPlan,
    Subscription,
    check_readable,
    enforce_publication,
    omit_closed,
    require_bounds,
)
from maia.principals import KeySigner

OWNER = KeySigner(bytes(32)).public_key
NAMES = {"1": "a", "2": "b", "3": "c"}
TYPE = EventType(
    name=TypeName(OWNER, "t.T", parse_version("1")),
    attributes=tuple(attribute(name, uid, "integer") for uid, name in NAMES.items()),
)
VALUES = (None, -1, 0, 1, 2, 3)
WORLD = [{k: v for k, v in zip("abc", values, strict=True) if v is not None}
         for values in itertools.product(VALUES, repeat=3)]  # fmt: skip
MEANING = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class Demand:
    """One constraint, for the oracle and for Maia."""

    name: str
    word: str
    values: tuple[int, ...] = ()

    def covers(self, value: int | None) -> bool:
        """Tell whether it covers a value."""
        if value is None:
            return False
        if self.word in {"any", "in"}:
            return self.word == "any" or value in self.values
        return bool(MEANING[self.word](value, self.values[0]))

    @property
    def uid(self) -> str:
        """What the attribute is called in rights."""
        return next(uid for uid, name in NAMES.items() if name == self.name)

    def maia(self) -> TypedConstraint:
        """Write it over uids."""
        kind = AttributeType.INTEGER
        return TypedConstraint(attribute=self.uid, type=kind, operator=Operator(self.word), values=self.values)


Filter = tuple[Demand, ...]
Event = dict[str, int]


def subscribes(f: Filter, n: Event) -> bool:
    """Formula (1)."""
    return all(any(d.name == name and d.covers(value) for name, value in n.items()) for d in f)


def advertises(f: Filter, n: Event) -> bool:
    """Formula (5)."""
    return all(any(d.name == name and d.covers(value) for d in f) for name, value in n.items())


def strictly(f: Filter, n: Event) -> bool:
    """Formula (2)."""
    return subscribes(f, n) and advertises(f, n)


def lower(f: Filter, n: Event) -> bool:
    """The reading C3, with alternatives on one attribute (C32)."""
    named = {name: value for name, value in n.items() if any(d.name == name for d in f)}
    return bool(named) and advertises(f, named)


PUBLISHED = {"upper": subscribes, "strict-upper": strictly, "lower": lower, "strict-lower": advertises}
COMPARED = {"upper": subscribes, "strict-upper": strictly, "lower": advertises, "strict-lower": advertises}


def allows_event(kind: str, f: Filter, n: Event) -> bool:
    """What a bound says of a publication."""
    return PUBLISHED[kind](f, n)


def allows_filter(kind: str, f: Filter, s: Filter) -> bool:
    """Formulas (3), (4), (6), (7): for all notifications, what the filter covers the bound covers."""
    covers = COMPARED[kind]
    return all(covers(f, n) for n in WORLD if covers(s, n))


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    """One constraint."""
    word = draw(st.sampled_from(["any", "in", *MEANING]))
    values = draw(st.lists(st.sampled_from((0, 1, 2)), min_size=1, max_size=2, unique=True))
    kept = () if word == "any" else tuple(values) if word == "in" else tuple(values[:1])
    return Demand(draw(st.sampled_from("abc")), word, kept)


filters = st.lists(demands(), max_size=3).map(tuple)
bounds = st.tuples(
    st.sampled_from([kind.value for kind in BoundKind]), st.lists(demands(), min_size=1, max_size=3).map(tuple)
)
events = st.sampled_from(WORLD)


@dataclass(frozen=True)
class Held:
    """One right of a principal: what its two links open and which bounds each of them sets."""

    opened: frozenset[str] | None
    first: tuple[tuple[str, Filter], ...]
    second: tuple[tuple[str, Filter], ...]

    @property
    def bounds(self) -> tuple[tuple[str, Filter], ...]:
        """All bounds of the chain."""
        return self.first + self.second

    def maia(self, action: Action) -> tuple[Clause, ...]:
        """The clauses that the chain gives, by way of the octets of its tags."""
        uids = None if self.opened is None else [uid for uid, name in NAMES.items() if name in self.opened]
        links = [
            type_right(OWNER, "t.T", actions=[action], attributes=uids, bounds=[written(one) for one in held])
            for held in (self.first, self.second)
        ]
        tag = intersect(*(parse_tag(link.to_sexp()) for link in links))
        tag = intersect(tag, ask_type(action, OWNER, "t.T", "1").wanted)
        return () if is_nothing(tag) else tuple(Clause(cells, (), ()) for cells in cell_rights(tag))


rights = st.builds(
    Held,
    opened=st.none() | st.frozensets(st.sampled_from("abc"), min_size=1),
    first=st.lists(bounds, max_size=2).map(tuple),
    second=st.lists(bounds, max_size=2).map(tuple),
)


def written(bound: tuple[str, Filter]) -> Bound:
    """Write a bound for Maia."""
    kind, f = bound
    return Bound(filter=over_uids(f), kind=BoundKind(kind))


def over_uids(f: Filter) -> TypedFilter:
    """Write a filter for Maia."""
    return TypedFilter(constraints=tuple(d.maia() for d in f))


def batch(rows: list[Event]) -> pa.RecordBatch:
    """The events as a publisher hands them in."""
    return pa.RecordBatch.from_pylist(
        [{name: row.get(name) for name in "abc"} for row in rows], schema=to_arrow_schema(TYPE)
    )


def present(row: dict[str, Any]) -> Event:
    """Take nulls as absence."""
    return {name: value for name, value in row.items() if value is not None}


@given(st.lists(rights, max_size=3), st.lists(events, min_size=1, max_size=6))
def test_a_publisher_gets_through_exactly_what_its_bounds_allow(held: list[Held], rows: list[Event]) -> None:
    """A row goes out under one right whose bounds all allow what is left of it, and that changes the least."""
    done = enforce_publication(TYPE, batch(rows), [clause for right in held for clause in right.maia(Action.PUBLISH)])
    found: dict[int, Event] = {}
    for at, row in zip(done.rows.tolist(), done.batch.to_pylist(), strict=True):
        found[at] = present({NAMES[uid]: value for uid, value in row.items()})
    for at, row in enumerate(rows):
        left = [{name: v for name, v in row.items() if right.opened is None or name in right.opened} for right in held]
        fitting = [n for n, right in zip(left, held, strict=True)
                   if all(allows_event(kind, f, n) for kind, f in right.bounds)]  # fmt: skip
        assert (at in found) == bool(fitting)
        if fitting:
            assert found[at] in fitting
            assert len(found[at]) == max(map(len, fitting))
    assert {item.row for item in done.refusals} == set(range(len(rows))) - set(found)


@given(st.lists(rights, min_size=1, max_size=3), filters, st.sampled_from([Side.ADVERTISE, Side.SUBSCRIBE]))
def test_a_filter_counts_under_exactly_the_rights_whose_bounds_allow_it(
    held: list[Held], f: Filter, side: Side
) -> None:
    """Each right is judged by itself; when none is left the filter is refused."""
    expected = [all(allows_filter(kind, bound, f) for kind, bound in right.bounds) for right in held]
    for right, allowed in zip(held, expected, strict=True):
        clauses = right.maia(Action.SUBSCRIBE)
        if allowed:
            assert require_bounds(clauses, over_uids(f), side) == clauses
            continue
        with pytest.raises(DeniedError, match="FILTER_OUT_OF_BOUNDS"):
            require_bounds(clauses, over_uids(f), side)


@given(bounds, events)
def test_a_ground_request_is_decided_as_the_batch_is(bound: tuple[str, Filter], row: Event) -> None:
    """The tag says of one row in a request what the kernel says of a batch."""
    (clause,) = Held(None, (bound,), ()).maia(Action.PUBLISH)
    uids = {name: uid for uid, name in NAMES.items()}
    use = (b"row", *((uids[name].encode(), b"%d" % value) for name, value in sorted(row.items())))
    tag = type_right(OWNER, "t.T", actions=[Action.PUBLISH], bounds=[written(bound)])
    request = (*tag.to_sexp()[:4], b"publish", b"1", (b"row",), b"reject", use)
    assert permits(tag, request) is allows_event(*bound, row)
    assert bool(enforce_publication(TYPE, batch([row]), [clause]).refusals) is not allows_event(*bound, row)


@given(st.lists(demands(), min_size=1, max_size=3).map(tuple), filters, st.lists(events, min_size=1, max_size=6))
def test_what_is_delivered_is_the_largest_screening_of_formula_eight(f: Filter, s: Filter, rows: list[Event]) -> None:
    """Rights that are a filter show the largest part of an event that they strictly cover, where both match it."""
    named = {d.name for d in f}
    right = type_right(
        OWNER, "t.T", actions=[Action.SUBSCRIBE], attributes=sorted({d.uid for d in f}),
        constraints=[Constraint(d.uid, d.word, d.values if d.word in {"in", "any"} else d.values[0]) for d in f],
    )  # fmt: skip
    clauses = () if is_nothing(right) else tuple(Clause(cells, (), ()) for cells in cell_rights(right))
    if clauses and not {d.name for d in s} <= named:
        with pytest.raises(DeniedError, match="FILTER_NOT_AUTHORISED"):
            check_readable(over_uids(s), clauses)
        return
    plan = DeliveryPlan(dict.fromkeys(NAMES, AttributeType.INTEGER))
    plan.add(Subscription("s", TYPE, over_uids(s), clauses))
    shown: dict[int, Event] = {}
    for delivery in plan.deliver(batch_to_transit(TYPE, batch(rows))):
        assert set(omit_closed(delivery).schema.names) == named
        shown |= {
            at: present(row) for at, row in zip(delivery.rows.tolist(), omit_closed(delivery).to_pylist(), strict=True)
        }
    for at, n in enumerate(rows):
        parts = [dict(part) for size in range(len(n) + 1) for part in itertools.combinations(n.items(), size)]
        covered = [m for m in parts if strictly(f, m)]
        seen = subscribes(f, n) and subscribes(s, n)
        assert shown.get(at) == (max(covered, key=len) if seen else None)
