"""Types of attributes: one spelling each, decimals of their own size, arrays and structs."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from maia.errors import MalformedError, UsageError
from maia.events import (
    FIRST,
    ArrayOf,
    AttributeType,
    EventType,
    StructOf,
    TypeName,
    ValueType,
    arrow_type,
    attribute,
    check_batch,
    check_uids,
    check_value,
    decimal_of,
    from_arrow_schema,
    from_spark_json,
    in_zone,
    parse_attribute_type,
    parse_event_type,
    parse_offset,
    sign_event_type,
    to_arrow_schema,
    to_spark_ddl,
    to_spark_json,
    value_from_json,
    value_to_json,
    value_type_of,
)
from maia.principals import KeySigner

OWNER = KeySigner(bytes([1]) * 32)
NAME = TypeName(OWNER.public_key, "x.Nested", FIRST)
PANEL = "array<struct<test:string,mmol:decimal(4,1),at:timestamp,`odd name`:boolean>>"
TEXTS = ["integer", "decimal", "decimal(10,2)", "decimal(38,0)", "array<string>", "struct<a:array<binary>>", PANEL]


def one(kind: str) -> EventType:
    """Define a type with one attribute."""
    return EventType(name=NAME, attributes=(attribute("a", 1, kind),))


def batch(column: pa.Array) -> pa.RecordBatch:
    """Make a batch of one column."""
    return pa.RecordBatch.from_arrays([column], names=["a"])


@pytest.mark.parametrize("text", TEXTS)
def test_a_type_survives_its_text_its_definition_and_its_schemas(text: str) -> None:
    """What is written is read again as it was: in text, in a signed definition, as Arrow and as Spark's JSON."""
    kind = parse_attribute_type(text)
    assert (kind.value, str(kind)) == (text, text)
    assert parse_event_type(sign_event_type(one(text), OWNER).raw).definition == one(text)
    assert from_arrow_schema(to_arrow_schema(one(text)), NAME) == one(text)
    assert from_spark_json(to_spark_json(one(text)), NAME) == one(text)
    assert value_type_of(arrow_type(kind)) == kind


WRONG = {
    "a decimal without digits": "decimal(0,0)",
    "a decimal with more digits than there are": "decimal(39,2)",
    "more places than digits": "decimal(2,9)",
    "the size that has a name": "decimal(38,18)",
    "a leading zero": "decimal(010,2)",
    "a space": "decimal(10, 2)",
    "nothing in it": "array<>",
    "no end": "array<string",
    "more than an end": "array<string>>",
    "no fields": "struct<>",
    "a field twice": "struct<a:string,a:string>",
    "a quoted word": "struct<`a`:string>",
    "a field without a type": "struct<a>",
    "a comma at the end": "struct<a:string,>",
    "deeper than anybody reads": "array<" * 9 + "string" + ">" * 9,
    "more fields than anybody reads": f"struct<{','.join(f'a{n}:string' for n in range(257))}>",
    "longer than anybody reads": f"struct<`{'x' * 9000}`:string>",
    "a control character": "struct<`a\n`:string>",
    "a map": "map<string,string>",
    "a word": "text",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_what_has_another_spelling_or_none_is_no_type(text: str) -> None:
    """A definition has one form."""
    with pytest.raises(MalformedError, match="ATTRIBUTE_TYPE"):
        parse_attribute_type(text)


def test_a_type_is_bounded_however_it_is_made() -> None:
    """The limits hold for values as for texts."""
    deep: ValueType = AttributeType.STRING
    for _ in range(7):
        deep = ArrayOf(deep)
    with pytest.raises(MalformedError, match="8 deep"):
        ArrayOf(deep)
    with pytest.raises(MalformedError, match="256 fields"):
        StructOf(tuple((f"a{n}", AttributeType.STRING) for n in range(300)))
    assert decimal_of(38, 18) is AttributeType.DECIMAL


def test_only_decimals_are_compared() -> None:
    """Arrays and structs follow the rules of binary, decimals of any size those of decimals."""
    assert [parse_attribute_type(text).filterable for text in TEXTS] == [True] * 4 + [False] * 3
    assert {parse_attribute_type(text).base for text in TEXTS[1:4]} == {AttributeType.DECIMAL}
    assert {parse_attribute_type(text).base for text in TEXTS[4:]} == {AttributeType.BINARY}


def test_another_size_is_another_type() -> None:
    """A uid keeps its meaning: not even the scale of its decimals changes."""
    with pytest.raises(MalformedError, match="UID_REUSED"):
        check_uids([one("decimal(10,2)").attributes, one("decimal(10,3)").attributes])


def test_spark_reads_the_parts() -> None:
    """The DDL has sizes, elements and quoted fields."""
    assert (
        to_spark_ddl(one("struct<a:decimal(5,1),b:array<date>>")) == "`a` STRUCT<`a`: DECIMAL(5,1), `b`: ARRAY<DATE>>"
    )


CONFORMED = {
    "a smaller decimal": ("decimal(10,2)", pa.array([Decimal("1.5")], pa.decimal128(5, 1)), Decimal("1.50")),
    "a finer one without more digits": (
        "decimal(10,2)", pa.array([Decimal("1.500")], pa.decimal128(10, 3)), Decimal("1.50"),
    ),
    "narrow elements": ("array<integer>", pa.array([[1, None]], pa.list_(pa.int8())), [1, None]),
    "large lists": ("array<string>", pa.array([["x"]], pa.large_list(pa.large_string())), ["x"]),
    "lists of one length": ("array<float>", pa.array([[1.5, 2.5]], pa.list_(pa.float32(), 2)), [1.5, 2.5]),
    "another order of fields": ("struct<a:string,b:integer>", pa.array([{"b": 1, "a": "x"}]), {"a": "x", "b": 1}),
    "a missing field": ("struct<a:string,b:integer>", pa.array([{"a": "x"}]), {"a": "x", "b": None}),
    "no value": (PANEL, pa.nulls(1), None),
}  # fmt: skip


@pytest.mark.parametrize("kind, column, value", CONFORMED.values(), ids=CONFORMED)
def test_narrower_parts_are_widened_exactly(kind: str, column: pa.Array, value: object) -> None:
    """Another way of storing the same values is no other value."""
    assert check_batch(one(kind), batch(column)).to_pylist() == [{"a": value}]


REFUSED = {
    "a digit too many after the point": ("decimal(10,2)", pa.array([Decimal("1.255")], pa.decimal128(10, 3))),
    "a digit too many before it": ("decimal(3,1)", pa.array([Decimal("123.4")], pa.decimal128(10, 1))),
    "a text for an array": ("array<string>", pa.array(["x"])),
    "elements of another kind": ("array<string>", pa.array([[1]])),
    "a field that is unknown": ("struct<a:string>", pa.array([{"a": "x", "b": 1}])),
    "a field of another kind": ("struct<a:string>", pa.array([{"a": 1}])),
    "not a number inside": ("array<float>", pa.array([[float("nan")]])),
    "a time without a zone inside": ("array<timestamp>", pa.array([[0]], pa.list_(pa.timestamp("us")))),
}


@pytest.mark.parametrize("kind, column", REFUSED.values(), ids=REFUSED)
def test_parts_that_do_not_fit_refuse_the_value(kind: str, column: pa.Array) -> None:
    """Nothing is rounded, dropped or cast to fit, however deep it lies."""
    with pytest.raises(MalformedError, match="VALUE_TYPE"):
        check_batch(one(kind), batch(column))


def test_nulls_inside_and_around_keep_their_places() -> None:
    """A null array is no empty array, and what lies under a null is gone."""
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 2]), pa.array(["secret", "x"]), mask=pa.array([True, False, False])
    )
    found = check_batch(one("array<string>"), batch(hidden)).column(0)
    assert found.to_pylist() == [None, ["x"], []]
    assert found.values.to_pylist() == ["x"]
    sliced = batch(pa.array([["a"], None, ["b", "c"]])).slice(1)
    assert check_batch(one("array<string>"), sliced).to_pylist() == [{"a": None}, {"a": ["b", "c"]}]


def test_single_values_and_json_follow_the_parts() -> None:
    """A value that was checked is written as JSON and read from it as it was."""
    panel = attribute("panel", 1, PANEL)
    at = datetime(2026, 6, 1, 9, tzinfo=UTC)
    value = [{"test": "glucose", "mmol": Decimal("5.4"), "at": at, "odd name": None}, None]
    assert check_value(panel, value) == value
    written = value_to_json(check_value(panel, value))
    assert written == [{"test": "glucose", "mmol": "5.4", "at": "2026-06-01T09:00:00Z", "odd name": None}, None]
    assert value_from_json(panel, written) == value
    for wrong in (
        "text",
        [{"unit": "mmol"}],
        [{"mmol": Decimal("5.44")}],
        [{"mmol": Decimal("5000.4")}],
        {"test": "x"},
    ):
        with pytest.raises(MalformedError, match="VALUE_TYPE"):
            check_value(panel, wrong)


def test_a_zone_is_said_once_for_all_times() -> None:
    """Times inside arrays and structs too; what has a zone keeps it, and what has no time is not touched."""
    kind = pa.struct([("at", pa.list_(pa.timestamp("ms")))])
    zoned = pa.array([0, 0], pa.timestamp("us", "Europe/London"))
    given = pa.RecordBatch.from_arrays(
        [pa.array([{"at": [0, None]}, None], kind), zoned, pa.array([1, 2])], names=["deep", "zoned", "count"]
    )
    placed = in_zone(given, parse_offset("-00:30"))
    assert placed.column("deep").to_pylist() == [{"at": [datetime(1970, 1, 1, 0, 30, tzinfo=UTC), None]}, None]
    assert placed.column("zoned").equals(given.column("zoned"))
    assert in_zone(given.select(["count"]), parse_offset("UTC")).equals(given.select(["count"]))
    for text in ("Mars", "Europe/London", "+1", "+15:00", ""):
        with pytest.raises(UsageError, match="TIME_ZONE"):
            parse_offset(text)
