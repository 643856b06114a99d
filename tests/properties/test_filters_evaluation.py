"""One meaning: events one by one, events in batches, text and tree, constraints and tags."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from maia.encoding import encode, parse_canonical
from maia.errors import MaiaError
from maia.filters import (
    AttributeType,
    Operator,
    TypedConstraint,
    TypedFilter,
    check,
    covers,
    equivalent,
    format_filter,
    from_tag,
    intersect,
    matches,
    parse_filter,
    satisfiable,
    select,
    to_tag,
)

TYPES = {
    "whole": AttributeType.INTEGER,
    "real": AttributeType.FLOAT,
    "money": AttributeType.DECIMAL,
    "text": AttributeType.STRING,
    "flag": AttributeType.BOOLEAN,
    "day": AttributeType.DATE,
    "moment": AttributeType.TIMESTAMP,
}
ARROW = {
    "whole": pa.int64(),
    "real": pa.float64(),
    "money": pa.decimal128(20, 2),
    "text": pa.string(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "moment": pa.timestamp("us", tz="UTC"),
}
START = datetime(2026, 6, 1, tzinfo=UTC)
VALUES = {
    "whole": [-(2**63), -1, 0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1],
    "real": [-1.5, -0.0, 0.0, 5e-324, 0.1, 1.0, 1.0000000000000002, 1.7976931348623157e308],
    "money": [Decimal("-0.01"), Decimal(0), Decimal("24.00"), Decimal("24.01"), Decimal(10) ** 17],
    "text": ["", "a", "ab", "b", "Z", "z", "ä", "\uffff", "\U00010000", "it's", "*", "a*b", "\0", "𝄞x"],
    "flag": [False, True],
    "day": [date(1, 1, 1), date(1969, 12, 31), date(2026, 6, 1), date(9999, 12, 31)],
    "moment": [START, START + timedelta(microseconds=1), START - timedelta(days=1), datetime(1, 1, 1, tzinfo=UTC)],
}
# Operands that no column holds exactly: between two cents, beyond the precision, and the last instant.
OPERANDS = {
    **VALUES,
    "money": [*VALUES["money"], Decimal("24.005"), Decimal(10) ** 30, Decimal(10) ** -30, -(Decimal(10) ** 40)],
    "moment": [*VALUES["moment"], datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)],
}
COMPARISONS = [Operator.EQUAL, Operator.NOT_EQUAL]
ORDER = [Operator.LESS, Operator.GREATER, Operator.AT_MOST, Operator.AT_LEAST]
PATTERNS = [Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS]


def operators(kind):
    """The operators a type has."""
    order = [] if kind is AttributeType.BOOLEAN else ORDER
    return [*COMPARISONS, *order, *(PATTERNS if kind is AttributeType.STRING else []), Operator.ANY, Operator.IN]


def random_filter(rng):
    """A filter of up to three constraints."""
    constraints = []
    for name in rng.sample(sorted(TYPES), rng.randint(0, 3)):
        operator = rng.choice(operators(TYPES[name]))
        count = {Operator.ANY: 0, Operator.IN: rng.randint(1, 4)}.get(operator, 1)
        values = tuple(rng.choice(OPERANDS[name]) for _ in range(count))
        constraints.append(TypedConstraint(attribute=name, type=TYPES[name], operator=operator, values=values))
    return TypedFilter(constraints=tuple(constraints))


def random_events(rng, count):
    """Events in which every attribute is sometimes null."""
    return [
        {name: None if rng.random() < 0.15 else rng.choice(pool) for name, pool in VALUES.items()} for _ in range(count)
    ]


def as_batch(events):
    """The events as an Arrow batch."""
    return pa.RecordBatch.from_arrays(
        [pa.array([event[name] for event in events], type=kind) for name, kind in ARROW.items()], names=list(ARROW)
    )


@pytest.mark.threat("T20")
def test_batches_and_single_events_agree_on_a_million_pairs():
    """`select` on a batch equals `matches` on each of its events, for every filter."""
    rng = random.Random("evaluators")
    events = random_events(rng, 1000)
    batch = as_batch(events)
    pairs = matched = 0
    for _ in range(1000):
        filter_ = random_filter(rng)
        mask = select(filter_, batch)
        assert mask.null_count == 0
        expected = [matches(filter_, event) for event in events]
        assert mask.to_pylist() == expected, format_filter(filter_)
        pairs += len(events)
        matched += sum(expected)
    assert pairs == 1_000_000
    assert 0.05 < matched / pairs < 0.95


COLUMNS = {
    "small integers": ("whole", pa.int8(), [None, -1, 0, 2]),
    "unsigned integers": ("whole", pa.uint32(), [None, 0, 1, 2]),
    "single precision": ("real", pa.float32(), [None, 1.0, 0.5, -1.5]),
    "wide decimals": ("money", pa.decimal256(60, 30), [None, Decimal("24.005"), Decimal(10) ** -30]),
    "narrow decimals": ("money", pa.decimal32(6, 2), [None, Decimal(24), Decimal("24.01"), Decimal("-0.01")]),
    "whole decimals": ("money", pa.decimal128(38, 0), [None, Decimal(24), Decimal(10) ** 30]),
    "large strings": ("text", pa.large_string(), [None, "a", "ä", "*"]),
    "string views": ("text", pa.string_view(), [None, "a", "it's"]),
    "dictionaries": ("text", pa.dictionary(pa.int32(), pa.string()), [None, "a", "b", "a"]),
    "seconds": ("moment", pa.timestamp("s", tz="UTC"), [None, START]),
    "milliseconds": ("moment", pa.timestamp("ms", tz="Europe/London"), [None, START]),
    "nanoseconds": ("moment", pa.timestamp("ns", tz="UTC"), [None, START]),
    "nothing": ("whole", pa.null(), [None, None]),
}


@pytest.mark.parametrize("case", COLUMNS.values(), ids=COLUMNS.keys())
def test_every_arrow_form_of_a_type_means_the_same(case):
    """Narrow, wide, encoded and foreign-zone columns give the answers their values give."""
    name, kind, values = case
    batch = pa.RecordBatch.from_arrays([pa.array(values, type=kind)], names=[name])
    rng = random.Random(str(case))
    for _ in range(200):
        operator = rng.choice(operators(TYPES[name]))
        count = {Operator.ANY: 0, Operator.IN: 2}.get(operator, 1)
        operands = tuple(rng.choice(OPERANDS[name]) for _ in range(count))
        constraint = TypedConstraint(attribute=name, type=TYPES[name], operator=operator, values=operands)
        filter_ = TypedFilter(constraints=(constraint,))
        expected = [matches(filter_, {name: value}) for value in values]
        assert select(filter_, batch).to_pylist() == expected, format_filter(filter_)


OUTSIDE = {
    "not a number": ("real", pa.array([float("nan"), float("inf"), -float("inf")])),
    "instants finer than a microsecond": ("moment", pa.array([1, 999], type=pa.timestamp("ns", tz="UTC"))),
    "instants after the year 9999": ("moment", pa.array([2**62, -(2**62)], type=pa.timestamp("s", tz="UTC"))),
    "days after the year 9999": ("day", pa.array(np.array([2**30, -(2**30)], dtype=np.int32)).cast(pa.date32())),
}


@pytest.mark.parametrize("case", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_values_outside_the_domain_match_nothing(case):
    """What is no value of the type is treated like null: not even `any` or `!=` covers it."""
    name, column = case
    batch = pa.RecordBatch.from_arrays([column], names=[name])
    for operator in (Operator.ANY, Operator.NOT_EQUAL, Operator.AT_LEAST, Operator.AT_MOST):
        values = () if operator is Operator.ANY else (VALUES[name][0],)
        constraint = TypedConstraint(attribute=name, type=TYPES[name], operator=operator, values=values)
        assert not any(select(TypedFilter(constraints=(constraint,)), batch).to_pylist())


# ---------------------------------------------------------------- text, tree and tags, by hypothesis

SCALARS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ANY_VALUE = {
    "whole": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(allow_nan=False, allow_infinity=False),
    "money": st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=12),
    "text": SCALARS,
    "flag": st.booleans(),
    "day": st.dates(),
    "moment": st.datetimes(timezones=st.just(UTC)),
}


@st.composite
def constraints(draw, names=tuple(TYPES)):
    """Any typed constraint."""
    name = draw(st.sampled_from(names))
    operator = draw(st.sampled_from(operators(TYPES[name])))
    sizes = {Operator.ANY: (0, 0), Operator.IN: (1, 4)}.get(operator, (1, 1))
    values = draw(st.lists(ANY_VALUE[name], min_size=sizes[0], max_size=sizes[1]))
    return TypedConstraint(attribute=name, type=TYPES[name], operator=operator, values=tuple(values))


FILTERS = st.lists(constraints(), max_size=4).map(lambda found: TypedFilter(constraints=tuple(found)))
SAME_NAME = st.sampled_from(sorted(TYPES)).flatmap(lambda n: st.lists(constraints((n,)), min_size=1, max_size=3))


@given(FILTERS)
def test_text_and_tree_round_trip(filter_):
    """Formatting, parsing and checking gives the same typed filter back."""
    text = format_filter(filter_)
    written = parse_filter(text)
    assert check(written, TYPES) == filter_
    assert parse_filter(format_filter(written)) == written


@given(SAME_NAME)
def test_constraints_and_tags_round_trip(found):
    """Constraints survive the way into a tag, through its canonical bytes, and back."""
    tag = parse_canonical(encode(to_tag(found)))
    back = from_tag(tag, found[0].attribute, found[0].type)
    rewritten = found[0].type is AttributeType.BOOLEAN or any(item.values == ("",) for item in found)
    assert rewritten or back == tuple(found)
    assert equivalent(TypedFilter(constraints=back), TypedFilter(constraints=tuple(found)))


@given(FILTERS, FILTERS)
def test_intersection_narrows(first, second):
    """Each filter covers the intersection; it is contradictory when the constraints are."""
    both = intersect(first, second)
    assert covers(first, both)
    assert covers(second, both)
    assert equivalent(both, intersect(second, first))
    assert not satisfiable(both) or (satisfiable(first) and satisfiable(second))


@given(FILTERS, FILTERS, st.fixed_dictionaries({name: st.none() | values for name, values in ANY_VALUE.items()}))
def test_covering_is_sound_against_matching(first, second, event):
    """What a covered filter matches, the covering one matches; what matches proves satisfiability."""
    if matches(second, event):
        assert satisfiable(second)
        assert matches(first, event) or not covers(first, second)


@given(st.text() | st.text("x= <>!any'()\",.0159-+eEintruefalsAND \n"))
def test_parser_refuses_with_maia_errors_only(text):
    """Whatever the text, it is a filter or a `MaiaError`, and a filter formats to one that parses to itself."""
    try:
        filter_ = parse_filter(text)
    except MaiaError:
        return
    assert parse_filter(format_filter(filter_)) == filter_


SEXPS = st.recursive(
    st.sampled_from([b"*", b"set", b"range", b"numeric", b"alpha", b"date", b"ge", b"l", b"5", b"1.5", b"and", b"glob"])
    | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=6).map(tuple),
    max_leaves=12,
)


@given(SEXPS, st.sampled_from(list(AttributeType)))
def test_tag_reader_refuses_with_maia_errors_only(tag, kind):
    """Whatever the expression, it reads as constraints that write and read back, or raises a `MaiaError`."""
    try:
        found = from_tag(tag, "x", kind)
    except MaiaError:
        return
    again = from_tag(to_tag(found), "x", kind)
    assert equivalent(TypedFilter(constraints=again), TypedFilter(constraints=found))
