"""The subscription index against naive evaluation, through any history of additions and removals."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

from maia.errors import FilterTypeError, NotFoundError, UsageError
from maia.filters import (
    AttributeType,
    CoveringSet,
    SubscriptionIndex,
    compile_filter,
    covers,
    format_filter,
    satisfiable,
    select,
)

TYPES = {
    "whole": "integer",
    "real": "float",
    "money": "decimal",
    "text": "string",
    "other": "string",
    "flag": "boolean",
    "day": "date",
    "moment": "timestamp",
    "blob": "binary",
}
START = datetime(2026, 6, 1, tzinfo=UTC)


def constraint_text(rng, width):
    """One constraint over values that often meet those of the batch."""
    number = rng.randint(0, width)
    word = rng.choice("abc") * rng.randint(0, 2) + rng.choice(["", "x", "ä"])
    order = rng.choice(["<", ">", "<=", ">=", "=", "!="])
    day = date(2026, 6, 1) + timedelta(days=number % 40)
    moment = (START + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return rng.choice(
        [
            f"whole {order} {number}",
            f"whole = {number}",
            f"whole in ({number}, {number + 1}, {number + 5})",
            f"whole > {number} and whole <= {number + rng.randint(0, 9)}",
            f"real {order} {number / 4}",
            f"money {order} {number / 4:.2f}",
            f"money > {number}.001 and money < {number}.251",
            f"text {order} '{word}'",
            f"text {rng.choice(['prefix', 'suffix', 'contains'])} '{word}'",
            f"text in ('{word}', 'b')",
            f"other = '{word}'",
            f"flag {rng.choice(['=', '!='])} {rng.choice(['true', 'false'])}",
            f"day {order} '{day}'",
            f"moment {order} '{moment}'",
            f"{rng.choice(['whole', 'text', 'money', 'flag'])} any",
        ]
    )


def random_text(rng, width):
    """A filter text of up to three constraints; some contradict themselves."""
    return " and ".join(constraint_text(rng, width) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3])))


def random_batch(rng, rows, width):
    """Events in which every attribute is sometimes null."""

    def column(make, kind):
        return pa.array([None if rng.random() < 0.1 else make() for _ in range(rows)], type=kind)

    number = lambda: rng.randint(0, width)  # noqa: E731 - drawn anew for every cell
    word = lambda: rng.choice("abc") * rng.randint(0, 2) + rng.choice(["", "x", "ä"])  # noqa: E731
    return pa.RecordBatch.from_pydict(
        {
            "whole": column(number, pa.int64()),
            "real": column(lambda: number() / 4, pa.float64()),
            "money": column(lambda: Decimal(number()) / 4, pa.decimal128(12, 2)),
            "text": column(word, pa.string()),
            "other": column(word, pa.large_string()),
            "flag": column(lambda: rng.random() < 0.5, pa.bool_()),
            "day": column(lambda: date(2026, 6, 1) + timedelta(days=number() % 40), pa.date32()),
            "moment": column(lambda: START + timedelta(seconds=number()), pa.timestamp("us", tz="UTC")),
            "blob": column(lambda: b"x", pa.binary()),
        }
    )


def naive(filters, batch):
    """All pairs, by evaluating every filter."""
    return sorted(
        (row, name)
        for name, filter_ in filters.items()
        for row, held in enumerate(select(filter_, batch).to_pylist())
        if held
    )


def found(index, batch):
    """All pairs, from the index."""
    rows, subscriptions = index.match(batch)
    assert rows.tolist() == sorted(rows.tolist())
    return sorted(zip(rows.tolist(), subscriptions.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_index_equals_naive_evaluation_through_additions_and_removals(seed):
    """After any history, the pairs are those of evaluating every remaining filter on every row."""
    rng = random.Random(seed)
    width = rng.choice([8, 60, 2000])
    index, filters = SubscriptionIndex(TYPES), {}
    for step in range(8):
        for number in range(rng.choice([3, 150, 400])):
            name = f"{step}-{number}"
            filters[name] = compile_filter(random_text(rng, width), TYPES)
            index.add(name, filters[name])
        for name in rng.sample(sorted(filters), rng.randint(0, len(filters))):
            index.remove(name)
            del filters[name]
        batch = random_batch(rng, rng.choice([0, 1, 64]), width)
        assert len(index) == len(filters)
        assert found(index, batch) == naive(filters, batch), [format_filter(f) for f in filters.values()][:5]


@pytest.mark.parametrize("kind", ["equality", "range", "text range", "decimal range"])
def test_index_stays_exact_when_its_sorted_parts_merge(kind):
    """Thousands of filters of one sort, removed in part, still give the naive pairs."""
    rng = random.Random(kind)
    index, filters = SubscriptionIndex(TYPES), {}
    for name in range(5000):
        low = rng.randint(0, 5000)
        text = {
            "equality": f"whole = {low}",
            "range": f"whole >= {low} and whole < {low + rng.randint(1, 40)}",
            "text range": f"text > '{low}' and text <= '{low + 7}'",
            "decimal range": f"money > {low}.5 and money <= {low + 3}.25",
        }[kind]
        filters[name] = compile_filter(text, TYPES)
        index.add(name, filters[name])
    for name in rng.sample(range(5000), 2300):
        index.remove(name)
        del filters[name]
    values = [rng.randint(0, 5100) for _ in range(40)]
    batch = pa.RecordBatch.from_pydict(
        {
            "whole": values,
            "text": [str(value) for value in values],
            "money": pa.array([Decimal(value) / 2 for value in values], type=pa.decimal128(12, 2)),
        }
    )
    pairs = found(index, batch)
    assert pairs == naive(filters, batch)
    assert pairs


def test_index_renumbers_itself_and_forgets_nothing():
    """Far more additions than live subscriptions leave an index that answers as if freshly built."""
    index = SubscriptionIndex(TYPES)
    for number in range(12_000):
        index.add(number, compile_filter(f"whole = {number % 50}", TYPES))
        if number >= 20:
            index.remove(number - 20)
    batch = pa.RecordBatch.from_pydict({"whole": list(range(50))})
    expected = sorted((number % 50, number) for number in range(11_980, 12_000))
    assert found(index, batch) == expected
    assert len(index) == 20
    assert 11_999 in index
    assert 5 not in index


def test_index_answers_when_columns_are_missing():
    """A filter over a column the batch lacks matches no row of it."""
    index = SubscriptionIndex(TYPES)
    for number, text in enumerate(["whole = 1", "whole > 0 and real > 0.0", "text suffix 'a'", "real any", ""]):
        index.add(number, compile_filter(text, TYPES))
    assert found(index, pa.RecordBatch.from_pydict({"whole": [1]})) == [(0, 0), (0, 4)]


def test_index_refuses_what_it_cannot_hold():
    """A name in use, an unknown name, another type, and more pairs than the caller wants are refused."""
    index = SubscriptionIndex({"x": "integer"})
    index.add("a", compile_filter("x any", {"x": "integer"}))
    with pytest.raises(UsageError):
        index.add("a", compile_filter("", {}))
    with pytest.raises(NotFoundError):
        index.remove("b")
    with pytest.raises(FilterTypeError):
        index.add("c", compile_filter("x = 1.0", {"x": "float"}))
    with pytest.raises(FilterTypeError):
        SubscriptionIndex({"x": "number"})
    with pytest.raises(UsageError):
        index.match(pa.RecordBatch.from_pydict({"x": [1, 2, 3]}), max_pairs=2)
    assert TYPES["blob"] == AttributeType.BINARY


@pytest.mark.parametrize("seed", range(4))
def test_what_a_link_announces_covers_everything_and_nothing_else(seed):
    """Through any history each filter is announced or covered by an announced one, and no announced one is superfluous.

    A neighbour that applies the changes it is told knows exactly the announced filters.
    """
    rng = random.Random(f"link-{seed}")
    link, filters, told = CoveringSet(), {}, set()
    for step in range(400):
        if filters and rng.random() < 0.4:
            name = rng.choice(sorted(filters))
            del filters[name]
            change = link.remove(name)
        else:
            filters[step] = compile_filter(random_text(rng, 6), TYPES)
            change = link.add(step, filters[step])
        assert told >= set(change.withdraw)
        assert not told & set(change.announce)
        told = (told - set(change.withdraw)) | set(change.announce)
        assert told == set(link.announced) <= filters.keys()
        if step % 20 == 0:
            wanted = [filter_ for filter_ in filters.values() if satisfiable(filter_)]
            assert all(any(covers(filters[name], filter_) for name in told) for filter_ in wanted)
            assert not any(covers(filters[a], filters[b]) for a in told for b in told if a != b)
    assert len(link) == len(filters)


def test_covering_set_refuses_names_in_use_and_unknown_ones():
    """A second filter under one name, and the removal of none, are errors."""
    link = CoveringSet()
    link.add("a", compile_filter("", {}))
    with pytest.raises(UsageError):
        link.add("a", compile_filter("", {}))
    with pytest.raises(NotFoundError):
        link.remove("b")
