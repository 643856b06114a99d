"""Event types as schemas, and batches checked against them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from maia.errors import MalformedError
from maia.events import (
    FIRST,
    AttributeType,
    EventType,
    FoldedUids,
    Translator,
    TypeName,
    arrow_type,
    attribute,
    batch_from_transit,
    batch_to_transit,
    check_batch,
    from_arrow_schema,
    from_spark_json,
    to_arrow_schema,
    to_spark_ddl,
    to_spark_json,
)
from maia.principals import KeySigner

OWNER = KeySigner(bytes([1]) * 32).public_key
NAME = TypeName(OWNER, "x.Every", FIRST)
EVERY = EventType(
    name=NAME, attributes=tuple(attribute(f"a-{k.value}", 10 + n, k) for n, k in enumerate(AttributeType))
)
SECOND = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
ROW = {
    "a-integer": 9007199254740993,
    "a-float": 0.5,
    "a-decimal": Decimal("1.25"),
    "a-string": "Victoria",
    "a-boolean": True,
    "a-date": date(2010, 2, 1),
    "a-timestamp": datetime(2026, 6, 1, 8, tzinfo=UTC),
    "a-binary": b"\x00\xff",
}


def _one(kind: str) -> EventType:
    return EventType(name=NAME, attributes=(attribute("a", 1, kind),))


def _batch(column: pa.Array, name: str = "a") -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([column], names=[name])


def test_schema_gives_the_type_back() -> None:
    """Through Arrow and through Spark's JSON, names, uids and types survive."""
    assert from_arrow_schema(to_arrow_schema(EVERY), NAME) == EVERY
    assert from_spark_json(to_spark_json(EVERY), NAME) == EVERY


def test_spark_text_quotes_names() -> None:
    """A dash or a backtick in a name stays a name."""
    odd = EventType(name=NAME, attributes=(attribute("path-report`text", 1, "binary"), attribute("n", 2, "decimal")))
    assert to_spark_ddl(odd) == "`path-report``text` BINARY, `n` DECIMAL(38,18)"
    kinds = [field["type"] for field in json.loads(to_spark_json(EVERY))["fields"]]
    assert kinds == ["long", "double", "decimal(38,18)", "string", "boolean", "date", "timestamp", "binary"]


SCHEMAS = {
    "small integers": (pa.int8(), "integer"),
    "unsigned integers below 64 bits": (pa.uint32(), "integer"),
    "half floats": (pa.float16(), "float"),
    "large strings": (pa.large_string(), "string"),
    "a dictionary of strings": (pa.dictionary(pa.int32(), pa.string()), "string"),
    "a small decimal": (pa.decimal128(10, 2), "decimal(10,2)"),
    "a decimal with many places": (pa.decimal128(38, 20), "decimal(38,20)"),
    "a list": (pa.list_(pa.int32()), "array<integer>"),
    "a structure": (pa.struct([("x", pa.large_string())]), "struct<x:string>"),
    "days in milliseconds": (pa.date64(), "date"),
    "instants in another zone": (pa.timestamp("ms", tz="Europe/London"), "timestamp"),
    "octets of fixed length": (pa.binary(16), "binary"),
    "large octets": (pa.large_binary(), "binary"),
}


@pytest.mark.parametrize("kind, expected", SCHEMAS.values(), ids=SCHEMAS)
def test_column_of_a_kindred_type_is_defined(kind: pa.DataType, expected: str) -> None:
    """Storage may be narrower than the value type."""
    (found,) = from_arrow_schema(pa.schema([("a", kind)]), NAME).attributes
    assert (found.type.value, found.uid) == (expected, "0")


REFUSED_SCHEMAS = {
    "unsigned 64 bits": pa.uint64(),
    "a list of what is none": pa.list_(pa.uint64()),
    "a structure without fields": pa.struct([]),
    "a map": pa.map_(pa.string(), pa.int64()),
    "a decimal with places before its first digit": pa.decimal128(5, 7),
    "a decimal with too many digits": pa.decimal256(60, 2),
    "a timestamp without a zone": pa.timestamp("us"),
    "a time of day": pa.time64("us"),
    "a duration": pa.duration("s"),
    "nothing at all": pa.null(),
}


@pytest.mark.parametrize("kind", REFUSED_SCHEMAS.values(), ids=REFUSED_SCHEMAS)
def test_column_that_would_lose_something_is_refused(kind: pa.DataType) -> None:
    """A column that no attribute type holds exactly defines nothing."""
    with pytest.raises(MalformedError, match="SCHEMA_TYPE"):
        from_arrow_schema(pa.schema([("a", kind)]), NAME)


def test_schema_options() -> None:
    """Zoneless times may be declared UTC; uids follow the policy and never meet those that are given."""
    zoneless = pa.schema([("a", pa.timestamp("us"))])
    assert from_arrow_schema(zoneless, NAME, assume_utc=True).attributes[0].type is AttributeType.TIMESTAMP
    mixed = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.int64(), metadata={"maia.uid": "4"})])
    assert [item.uid for item in from_arrow_schema(mixed, NAME).attributes] == ["5", "4"]
    assert from_arrow_schema(mixed, NAME, uids=FoldedUids(octets=4)).attributes[0].uid.startswith("x")
    with pytest.raises(MalformedError, match="ATTRIBUTE_NAME_TWICE"):
        from_arrow_schema(pa.schema([("a", pa.int64()), ("a", pa.int64())]), NAME)


BAD_SPARK = {
    "no JSON": ("{", "SCHEMA_FORM"),
    "no fields": ("{}", "SCHEMA_FORM"),
    "a list": ("[]", "SCHEMA_FORM"),
    "a field without a type": ('{"fields": [{"name": "a"}]}', "SCHEMA_FORM"),
    "a decimal of words": ('{"fields": [{"name": "a", "type": "decimal(x,y)"}]}', "SCHEMA_FORM"),
    "a nested field": ('{"fields": [{"name": "a", "type": {"type": "array"}}]}', "SCHEMA_TYPE"),
    "an interval": ('{"fields": [{"name": "a", "type": "interval"}]}', "SCHEMA_TYPE"),
    "a zoneless time": ('{"fields": [{"name": "a", "type": "timestamp_ntz"}]}', "SCHEMA_TYPE"),
    "a bad uid": ('{"fields": [{"name": "a", "type": "long", "metadata": {"maia.uid": "01"}}]}', "UID_FORM"),
}


@pytest.mark.parametrize("text, code", BAD_SPARK.values(), ids=BAD_SPARK)
def test_spark_schema_that_does_not_fit_is_refused(text: str, code: str) -> None:
    """Only schemas of Maia's types are definitions."""
    with pytest.raises(MalformedError, match=code):
        from_spark_json(text, NAME)


def test_batch_gets_the_schema_of_its_version() -> None:
    """Columns are found by name, missing ones are null, narrower storage is widened."""
    given = pa.RecordBatch.from_pylist(
        [ROW, {}], schema=pa.schema([(n, arrow_type(AttributeType(n[2:]))) for n in ROW])
    )
    checked = check_batch(EVERY, given.select(list(reversed(given.schema.names))))
    assert checked.schema.equals(to_arrow_schema(EVERY), check_metadata=True)
    assert checked.to_pylist() == [ROW, dict.fromkeys(ROW)]
    assert check_batch(EVERY, given.select(["a-string"])).to_pylist()[0] == {
        **dict.fromkeys(ROW),
        "a-string": "Victoria",
    }


WIDENED = {
    "32-bit integers": ("integer", pa.array([1], pa.int32()), 1),
    "unsigned integers that fit": ("integer", pa.array([1], pa.uint64()), 1),
    "single floats": ("float", pa.array([0.5], pa.float32()), 0.5),
    "small decimals": ("decimal", pa.array([Decimal("1.5")], pa.decimal128(5, 1)), Decimal("1.5")),
    "dictionaries": ("string", pa.array(["x"]).dictionary_encode(), "x"),
    "large strings": ("string", pa.array(["x"], pa.large_string()), "x"),
    "milliseconds": ("timestamp", pa.array([1000], pa.timestamp("ms", tz="UTC")), SECOND),
    "whole days": ("date", pa.array([86_400_000], pa.date64()), date(1970, 1, 2)),
    "large octets": ("binary", pa.array([b"x"], pa.large_binary()), b"x"),
    "nothing but nulls": ("string", pa.nulls(1), None),
}  # fmt: skip


@pytest.mark.parametrize("kind, column, value", WIDENED.values(), ids=WIDENED)
def test_narrower_storage_is_widened_exactly(kind: str, column: pa.Array, value: object) -> None:
    """Another way of storing the same kind of value is no other value."""
    assert check_batch(_one(kind), _batch(column)).to_pylist() == [{"a": value}]


def _broken_string(kind: str) -> pa.Array:
    width = 8 if kind == "large" else 4
    offsets = (0).to_bytes(width, "little") + (1).to_bytes(width, "little")
    array = pa.LargeStringArray if kind == "large" else pa.StringArray
    return array.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(b"\xff"))


REFUSED_BATCHES = {
    "integers beyond 64 bits": ("integer", pa.array([2**63], pa.uint64())),
    "floats as integers": ("integer", pa.array([1.0])),
    "booleans as integers": ("integer", pa.array([True])),
    "integers as floats": ("float", pa.array([1])),
    "not a number": ("float", pa.array([1.0, float("nan")])),
    "infinity": ("float", pa.array([float("-inf")])),
    "a decimal with a place too many": ("decimal", pa.array([Decimal("1e-19")], pa.decimal128(38, 19))),
    "floats as decimals": ("decimal", pa.array([1.5])),
    "octets as strings": ("string", pa.array([b"x"])),
    "strings that are no UTF-8": ("string", _broken_string("small")),
    "large strings that are no UTF-8": ("string", _broken_string("large")),
    "integers as booleans": ("boolean", pa.array([1])),
    "strings as dates": ("date", pa.array(["2010-02-01"])),
    "half days": ("date", pa.array([1], pa.date64())),
    "zoneless times": ("timestamp", pa.array([1], pa.timestamp("us"))),
    "nanoseconds that would be cut": ("timestamp", pa.array([1], pa.timestamp("ns", tz="UTC"))),
    "strings as octets": ("binary", pa.array(["x"])),
}


@pytest.mark.parametrize("kind, column", REFUSED_BATCHES.values(), ids=REFUSED_BATCHES)
def test_column_of_another_kind_is_refused(kind: str, column: pa.Array) -> None:
    """Nothing is rounded, wrapped or cast to fit."""
    with pytest.raises(MalformedError, match="VALUE_TYPE"):
        check_batch(_one(kind), _batch(column))


def test_unknown_and_doubled_columns_are_refused() -> None:
    """A column that the version does not know has no uid to travel under."""
    with pytest.raises(MalformedError, match="NO_ATTRIBUTE"):
        check_batch(_one("string"), _batch(pa.array(["x"]), "b"))
    twice = pa.RecordBatch.from_arrays([pa.array(["x"])] * 2, names=["a", "a"])
    with pytest.raises(MalformedError, match="ATTRIBUTE_NAME_TWICE"):
        check_batch(_one("string"), twice)


def test_unchecked_batch_does_not_travel() -> None:
    """Transit starts from the schema of the version, and ends only at its own type."""
    with pytest.raises(MalformedError, match="BATCH_SCHEMA"):
        batch_to_transit(EVERY, _batch(pa.array(["x"])))
    transit = batch_to_transit(_one("string"), check_batch(_one("string"), _batch(pa.array(["x"]))))
    other = EventType(name=TypeName(OWNER, "x.Other", FIRST), attributes=())
    with pytest.raises(MalformedError, match="OTHER_TYPE"):
        batch_from_transit(other, transit)
    with pytest.raises(MalformedError, match="OTHER_TYPE"):
        batch_from_transit(_one("string"), transit.replace_schema_metadata(None))
    with pytest.raises(MalformedError, match="UID_REUSED"):
        batch_from_transit(_one("integer"), transit)
    nothing = pa.RecordBatch.from_arrays([pa.nulls(1)], names=["1"], metadata=transit.schema.metadata)
    assert batch_from_transit(_one("integer"), nothing).to_pylist() == [{"a": None}]
    doubled = pa.RecordBatch.from_arrays([transit.column(0)] * 2, names=["1", "1"], metadata=transit.schema.metadata)
    with pytest.raises(MalformedError, match="ATTRIBUTE_UID_TWICE"):
        batch_from_transit(_one("string"), doubled)


def test_rows_survive_a_version_without_attributes() -> None:
    """An event that says nothing is still an event."""
    empty = EventType(name=NAME, attributes=())
    transit = batch_to_transit(_one("string"), check_batch(_one("string"), _batch(pa.array(["x", "y"]))))
    assert batch_from_transit(empty, transit).num_rows == 2


def test_translation_shares_buffers() -> None:
    """Picking columns by uid copies nothing."""
    source = check_batch(_one("string"), _batch(pa.array(["x"] * 1000)))
    seen = batch_from_transit(_one("string"), batch_to_transit(_one("string"), source))
    assert [b.address for b in seen.column(0).buffers() if b] == [b.address for b in source.column(0).buffers() if b]


def test_translator_refuses_pairs_that_do_not_fit() -> None:
    """A translator copies between attributes of one type, one value each."""
    source, target = EVERY, EventType(name=TypeName(OWNER, "x.New", FIRST), attributes=EVERY.attributes)
    with pytest.raises(MalformedError, match="TRANSLATOR_PAIRS"):
        Translator(source=source, target=target, pairs=(("a-integer", "a-float"),))
    with pytest.raises(MalformedError, match="TRANSLATOR_PAIRS"):
        Translator(source=source, target=target, pairs=(("a-integer", "a-integer"), ("a-integer", "a-integer")))
    with pytest.raises(MalformedError, match="NO_ATTRIBUTE"):
        Translator.by_name(source, target, names=["nothing"])


def test_schemas_are_remembered_by_object_and_not_without_end() -> None:
    """Many versions in turn each get their own schema, also when the memory of schemas is full."""
    for number in range(300):
        version = EventType(name=NAME, attributes=(attribute(f"a{number}", number, "string"),))
        assert to_arrow_schema(version).names == [f"a{number}"]
        assert to_arrow_schema(version) is to_arrow_schema(version)
    assert to_arrow_schema(EVERY).names == [item.name for item in EVERY.attributes]
