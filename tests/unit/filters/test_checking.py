"""Filters meet attribute types: no casts, no rounding, no surprises."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from maia.errors import FilterTypeError, UncheckedError, UsageError
from maia.filters import (
    AttributeType,
    CoveringSet,
    Operator,
    SubscriptionIndex,
    TypedConstraint,
    TypedFilter,
    WrittenConstraint,
    check_event,
    compile_filter,
    covers,
    format_filter,
    matches,
    satisfiable,
    select,
)

REFUSED = {
    "unknown attribute": ("y = 1", {"x": "integer"}, "FILTER_UNKNOWN_ATTRIBUTE"),
    "names are case-sensitive": ("X = 1", {"x": "integer"}, "FILTER_UNKNOWN_ATTRIBUTE"),
    "unknown type": ("x = 1", {"x": "int"}, "FILTER_UNKNOWN_TYPE"),
    "integer for float": ("x = 1", {"x": "float"}, "FILTER_LITERAL_TYPE"),
    "float for integer": ("x = 1.0", {"x": "integer"}, "FILTER_LITERAL_TYPE"),
    "integer for decimal": ("x = 1", {"x": "decimal"}, "FILTER_LITERAL_TYPE"),
    "text for integer": ("x = '1'", {"x": "integer"}, "FILTER_LITERAL_TYPE"),
    "integer for text": ("x = 1", {"x": "string"}, "FILTER_LITERAL_TYPE"),
    "integer for boolean": ("x = 1", {"x": "boolean"}, "FILTER_LITERAL_TYPE"),
    "boolean for integer": ("x = true", {"x": "integer"}, "FILTER_LITERAL_TYPE"),
    "one wrong member of a set": ("x in (1, 2.0)", {"x": "integer"}, "FILTER_LITERAL_TYPE"),
    "integer beyond 64 bits": ("x < 9223372036854775808", {"x": "integer"}, "FILTER_LITERAL_RANGE"),
    "integer below 64 bits": ("x > -9223372036854775809", {"x": "integer"}, "FILTER_LITERAL_RANGE"),
    "float beyond the doubles": ("x < 1e309", {"x": "float"}, "FILTER_LITERAL_RANGE"),
    "float too small for a double": ("x > 1e-400", {"x": "float"}, "FILTER_LITERAL_RANGE"),
    "decimal of too many digits": (f"x = {'9' * 77}.0", {"x": "decimal"}, "FILTER_LITERAL_RANGE"),
    "day that does not exist": ("d = '2026-02-30'", {"d": "date"}, "FILTER_LITERAL_RANGE"),
    "timestamp for date": ("d = '2026-02-01T00:00:00Z'", {"d": "date"}, "FILTER_LITERAL_RANGE"),
    "date for timestamp": ("t = '2026-02-01'", {"t": "timestamp"}, "FILTER_LITERAL_RANGE"),
    "time without zone": ("t = '2026-02-01T00:00:00'", {"t": "timestamp"}, "FILTER_LITERAL_RANGE"),
    "time finer than a microsecond": ("t = '2026-02-01T00:00:00.0000001Z'", {"t": "timestamp"}, "FILTER_LITERAL_RANGE"),
    "hour 24": ("t = '2026-02-01T24:00:00Z'", {"t": "timestamp"}, "FILTER_LITERAL_RANGE"),
    "offset of 24 hours": ("t = '2026-02-01T00:00:00+24:00'", {"t": "timestamp"}, "FILTER_LITERAL_RANGE"),
    "time before the year 1": ("t = '0001-01-01T00:00:00+01:00'", {"t": "timestamp"}, "FILTER_LITERAL_RANGE"),
    "order of booleans": ("b < true", {"b": "boolean"}, "FILTER_LITERAL_TYPE FILTER_OPERATOR_TYPE"),
    "pattern of integers": ("x contains '1'", {"x": "integer"}, "FILTER_OPERATOR_TYPE"),
    "pattern of dates": ("d prefix '2026'", {"d": "date"}, "FILTER_OPERATOR_TYPE"),
    "binary": ("b = 'x'", {"b": "binary"}, "FILTER_BINARY_ATTRIBUTE"),
    "binary, any": ("b any", {"b": "binary"}, "FILTER_BINARY_ATTRIBUTE"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_ill_typed_filters_are_refused(case):
    """An ill-typed filter never gets a meaning."""
    text, types, codes = case
    with pytest.raises(FilterTypeError) as caught:
        compile_filter(text, types)
    assert caught.value.code in codes.split()


@pytest.mark.parametrize("kind", ["float", "decimal", "decimal(10,2)"])
def test_a_whole_number_for_a_number_with_a_point_is_refused_with_what_to_write(kind):
    """Nothing is cast; the message says how the literal is written, and what it says is taken."""
    with pytest.raises(FilterTypeError, match=r"\[FILTER_LITERAL_TYPE\] .*; write `-100\.0`$"):
        compile_filter("x > -100", {"x": kind})
    assert compile_filter("x > -100.0", {"x": kind}).constraints[0].values == (-100,)
    with pytest.raises(FilterTypeError) as caught:
        compile_filter("x > 'a'", {"x": kind})
    assert "write" not in caught.value.message


TYPES = {
    "price": "integer",
    "real": "float",
    "money": "decimal",
    "name": "string",
    "flag": "boolean",
    "day": "date",
    "moment": "timestamp",
}


def test_a_penny_above_matches_and_exactly_does_not():
    """The quote filter of the thesis: `name = Nokia AND price > 24.00`."""
    quote = compile_filter("name = 'Nokia' AND price > 24.00", {"name": "string", "price": "decimal"})
    assert matches(quote, {"name": "Nokia", "price": Decimal("24.01")})
    assert not matches(quote, {"name": "Nokia", "price": Decimal("24.00")})
    assert not matches(quote, {"name": "Ericsson", "price": Decimal("24.01")})


@pytest.mark.threat("T65")
def test_names_that_differ_in_case_are_different_attributes():
    """`Price` and `price` are kept apart, in events and in batches."""
    types = {"Price": "integer", "price": "integer"}
    filter_ = compile_filter("Price = 1 and price = 2", types)
    assert matches(filter_, {"Price": 1, "price": 2})
    assert not matches(filter_, {"Price": 2, "price": 1})
    batch = pa.RecordBatch.from_pydict({"Price": [1, 2], "price": [2, 1]})
    assert select(filter_, batch).to_pylist() == [True, False]
    assert select(compile_filter("PRICE any", {"PRICE": "integer"}), batch).to_pylist() == [False, False]


@pytest.mark.parametrize(
    "name, column",
    [
        ("price", pa.array([1.0])),
        ("price", pa.array([1], type=pa.uint64())),
        ("price", pa.array(["1"])),
        ("real", pa.array([1])),
        ("money", pa.array([1.0])),
        ("name", pa.array([b"x"])),
        ("flag", pa.array([1])),
        ("day", pa.array([datetime(2026, 6, 1, tzinfo=UTC)])),
        ("moment", pa.array([datetime(2026, 6, 1)], type=pa.timestamp("us"))),  # noqa: DTZ001
        ("moment", pa.array([date(2026, 6, 1)])),
    ],
    ids=str,
)
def test_columns_of_another_type_are_refused(name, column):
    """A batch whose column cannot hold the attribute's values exactly is refused, not cast."""
    batch = pa.RecordBatch.from_arrays([column], names=[name])
    with pytest.raises(FilterTypeError) as caught:
        select(compile_filter(f"{name} any", TYPES), batch)
    assert caught.value.code == "BATCH_COLUMN_TYPE"


def test_two_columns_of_one_name_are_refused():
    """Where a name could mean two columns, neither is read."""
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["price", "price"])
    with pytest.raises(FilterTypeError) as caught:
        select(compile_filter("price = 1", TYPES), batch)
    assert caught.value.code == "BATCH_TWO_COLUMNS"


def test_decimals_of_negative_scale_are_refused():
    """Arrow cannot compare them; guessing would round."""
    batch = pa.RecordBatch.from_arrays([pa.array([Decimal(100)], type=pa.decimal128(5, -2))], names=["money"])
    with pytest.raises(FilterTypeError):
        select(compile_filter("money any", TYPES), batch)


def test_events_are_checked_attribute_by_attribute():
    """Unknown attributes and values of another type are refused; null is always fine."""
    check_event({"price": 1, "name": None, "moment": datetime(2026, 6, 1, tzinfo=UTC)}, TYPES)
    for event in ({"other": 1}, {"price": 1.0}, {"name": 1}, {"real": float("inf")}, {"name": "\udfff"}):
        with pytest.raises(FilterTypeError):
            check_event(event, TYPES)


def test_trees_cannot_be_made_wrong():
    """Constraints check themselves, however they are made, and keep their values in one form."""
    with pytest.raises(FilterTypeError):
        TypedConstraint(attribute="x", type=AttributeType.INTEGER, operator=Operator.EQUAL, values=(1.0,))
    with pytest.raises(FilterTypeError):
        TypedConstraint(attribute="x", type=AttributeType.BOOLEAN, operator=Operator.LESS, values=(True,))
    for values in ((), (1, 2)):
        with pytest.raises(UsageError):
            TypedConstraint(attribute="x", type=AttributeType.INTEGER, operator=Operator.EQUAL, values=values)
    with pytest.raises(UsageError):
        WrittenConstraint(attribute="x", operator=Operator.IN, literals=())
    several = TypedConstraint(attribute="x", type=AttributeType.INTEGER, operator=Operator.IN, values=(3, 1, 3))
    assert several.values == (1, 3)
    with pytest.raises(UsageError):
        assert several.value
    money = TypedConstraint(
        attribute="m", type=AttributeType.DECIMAL, operator=Operator.EQUAL, values=(Decimal("1E+2"),)
    )
    assert format_filter(TypedFilter(constraints=(money,))) == "m = 100.0"
    with pytest.raises(FilterTypeError):
        TypedFilter(
            constraints=(
                several,
                TypedConstraint(attribute="x", type=AttributeType.FLOAT, operator=Operator.ANY, values=()),
            )
        )


SATISFIABLE = {
    "between neighbours": ("x > 3 and x < 4", "integer", False),
    "one left": ("x > 3 and x < 5", "integer", True),
    "that one excluded": ("x > 3 and x < 5 and x != 4", "integer", False),
    "above the largest": ("x > 9223372036854775807", "integer", False),
    "below the smallest": ("x < -9223372036854775808", "integer", False),
    "between neighbouring doubles": ("x > 5.0 and x < 5.000000000000001", "float", False),
    "above the largest double": ("x > 1.7976931348623157e308", "float", False),
    "between two decimals": ("x > 1.0 and x < 1.00000000000000000001", "decimal", True),
    "between 'a' and 'aa'": ("x > 'a' and x < 'aa'", "string", True),
    "between 'a' and its successor": ("x > 'a' and x < 'a\0'", "string", False),
    "below the empty text": ("x < ''", "string", False),
    "two endings": ("x suffix 'ab' and x suffix 'b'", "string", True),
    "two other endings": ("x suffix 'ab' and x suffix 'c'", "string", False),
    "one text that lacks a part": ("x = 'abc' and x contains 'd'", "string", False),
    "a prefix above its range": ("x prefix 'b' and x < 'b'", "string", False),
    "a prefix of the last characters": ("x prefix '\U0010ffff' and x suffix 'a'", "string", True),
    "neither true nor false": ("x != true and x != false", "boolean", False),
    "between days": ("x > '2026-01-31' and x < '2026-02-01'", "date", False),
    "between microseconds": (
        "x > '2026-01-01T00:00:00Z' and x < '2026-01-01T00:00:00.000001Z'",
        "timestamp",
        False,
    ),
    "after the last instant": ("x > '9999-12-31T23:59:59.999999Z'", "timestamp", False),
}


@pytest.mark.parametrize("case", SATISFIABLE.values(), ids=SATISFIABLE.keys())
def test_satisfiability_knows_the_domains(case):
    """Integers, days and microseconds are discrete, doubles have neighbours, decimals are dense."""
    text, kind, expected = case
    assert satisfiable(compile_filter(text, {"x": kind})) is expected


LARGE = f"x > '{'a' * 20_000}' and x contains '{'b' * 20_000}'"


def test_filters_too_large_to_compare_are_not_proven_and_harm_nobody():
    """Beyond the stated work there is no answer, and nothing half done stays behind."""
    types = {"x": "string", "y": "integer"}
    large = compile_filter(LARGE, types)
    with pytest.raises(UncheckedError):
        satisfiable(large)
    with pytest.raises(UncheckedError):
        covers(compile_filter("x contains 'c'", types), large)
    index = SubscriptionIndex(types)
    with pytest.raises(UncheckedError):
        index.add("large", large)
    index.add("large", compile_filter("y = 1", types))
    rows, found = index.match(pa.RecordBatch.from_pydict({"y": [1, 2]}))
    assert (rows.tolist(), found.tolist()) == ([0], ["large"])
    link = CoveringSet()
    with pytest.raises(UncheckedError):
        link.add("large", large)
    assert len(link) == 0


def test_thousands_of_constraints_are_compared_in_one_go():
    """Holes, members and alternatives by the thousand are sorted, not multiplied."""
    types = {"x": "integer", "s": "string"}
    holes = compile_filter(" and ".join(f"x != {number}" for number in range(4000)), types)
    members = compile_filter(f"x in ({', '.join(map(str, range(10_000)))})", types)
    assert satisfiable(holes)
    assert not covers(holes, members)
    assert covers(holes, compile_filter("x > 3999", types))
    assert covers(members, compile_filter("x > 5 and x < 10000", types))
    assert not covers(holes, compile_filter("x = 3999", types))
    parts = compile_filter(" and ".join(f"s contains '{number}'" for number in range(1000)), types)
    assert satisfiable(parts)
    assert covers(compile_filter("s contains '99'", types), parts)
    assert not covers(compile_filter("s contains 'x'", types), parts)


EDGES = {
    "whatever is at least the last character holds it": ("x contains '\U0010ffff'", "x >= '\U0010ffff'", True),
    "the last but one can be followed by anything": ("x contains '\U0010ffff'", "x > '\U0010fffe'", False),
    "no other character is left": ("x contains '\U0010ffff'", "x >= '\U0010fffe\U0010ffff'", True),
    "a prefix steps over the surrogates": ("x prefix '\ud7ff'", "x >= '\ud7ff' and x < '\ue000'", True),
    "and back": ("x >= '\ud7ff' and x < '\ue000'", "x prefix '\ud7ff'", True),
    "one character wide, and it is unwanted": ("x contains 'b'", "x >= 'ab' and x < 'ac'", True),
    "one character wide, and it is another": ("x contains 'c'", "x >= 'ab' and x < 'ac'", False),
    "only zeros between": ("x in ('a', 'a\0', 'a\0\0')", "x >= 'a' and x < 'a\0\0\0'", True),
    "more than zeros between": ("x in ('a', 'a\0', 'a\0\0')", "x >= 'a' and x < 'a\0\1'", False),
    "the empty text has every ending": ("x suffix ''", "x any", True),
    "an ending inside a longer one": ("x suffix 'b'", "x suffix 'ab'", True),
    "a part inside an ending": ("x contains 'a'", "x suffix 'ab'", True),
    "a part across a prefix and an ending": ("x contains 'ba'", "x prefix 'ab' and x suffix 'ab'", False),
    "a finite range and its endings": ("x suffix '\0'", "x > 'a' and x <= 'a\0\0'", True),
}


@pytest.mark.parametrize("case", EDGES.values(), ids=EDGES.keys())
def test_strings_are_compared_exactly_at_the_edges_of_their_alphabet(case):
    """Where no fresh character is left, or only single strings, the answer is still the one of the definition."""
    wide, narrow, expected = case
    types = {"x": "string"}
    assert covers(compile_filter(wide, types), compile_filter(narrow, types)) is expected
