"""Names, uids and types of attributes; those with parts, and decimals of their own size."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import maia
from maia.encryption import decode_column, encode_column
from maia.errors import FilterTypeError, MalformedError, SealError, UsageError
from maia.events import (
    FIRST,
    AttributeType,
    EventType,
    TypeName,
    attribute,
    check_attributes,
    check_batch,
    check_uids,
    parse_attribute_type,
)
from maia.filters import compile_filter, select
from maia.principals import KeySigner
from maia.testing import Command, publish_here, read_here


def test_two_attributes_of_one_name_are_refused() -> None:
    """`numberplate` twice in one version is no version."""
    pair = (attribute("numberplate", 3265, "string"), attribute("numberplate", 7, "string"))
    with pytest.raises(MalformedError, match="ATTRIBUTE_NAME_TWICE"):
        check_attributes(pair)


@pytest.mark.requirement("2.06")
def test_binary_is_a_type_that_no_filter_compares() -> None:
    """`path-report-text` may be binary, `sample-receipt-date` a date; only the latter can be filtered."""
    report, received = attribute("path-report-text", 1, "binary"), attribute("sample-receipt-date", 2, "date")
    types = {item.name: item.type.value for item in (report, received)}
    assert compile_filter("sample-receipt-date >= '2010-02-01'", types)
    with pytest.raises(FilterTypeError):
        compile_filter("path-report-text < 'x'", types)
    assert not report.type.filterable
    assert received.type.filterable
    assert {kind.value for kind in AttributeType if kind.filterable} == {
        *("integer", "float", "decimal", "string", "boolean", "date", "timestamp"),
    }


REPORT = "addenbrookes/uk.nhs.path_report"
TYPES_OF_A_REPORT = {
    "path-report-text": "binary", "sample-receipt-date": "date", "signed-off": "timestamp", "copies": "integer",
    "glucose": "float", "ward": "string", "urgent": "boolean",
}  # fmt: skip
FILTERED = {
    "sample-receipt-date >= '2010-02-01'": 1, "sample-receipt-date < '2010-02-01'": 1, "copies = 2": 1,
    "signed-off > '2010-02-03T00:00:00Z'": 1, "glucose <= 5.5": 1, "ward != 'A'": 1, "urgent = true": 1,
}  # fmt: skip


@pytest.mark.requirement("2.06")
def test_a_binary_attribute_is_defined_and_delivered_and_no_door_compares_it(maia_command: Command) -> None:
    """`path-report-text < x` is a type error for readers, subscribers and issuers; dates and all others compare."""
    home = maia_command
    home.do("domain", "init", str(home.home))
    home.keys("addenbrookes", "lab", "doctor")
    wanted = [flag for name, kind in TYPES_OF_A_REPORT.items() for flag in ("--attribute", f"{name}:{kind}")]
    home.do("type", "define", f"{REPORT}@1", *wanted, "--encryption", "plain")
    assert home.refused("type", "define", f"{REPORT}@2", "--attribute", "scan:object")[1] == "ATTRIBUTE_TYPE"
    for who in ("broker", "lab", "doctor"):
        home.grant("--from", "addenbrookes", "--to", who, "--type", REPORT, "--action", "publish,subscribe")
    rows = [dict(zip(TYPES_OF_A_REPORT, values, strict=True)) for values in (
        (b"benign", date(2010, 1, 31), datetime(2010, 2, 2, tzinfo=UTC), 1, 5.5, "A", False),
        (b"\x00\xff", date(2010, 2, 1), datetime(2010, 2, 4, tzinfo=UTC), 2, 7.0, "B", True),
    )]  # fmt: skip
    opened = maia.open(home.home).home
    assert publish_here(opened, REPORT, rows, as_="lab", at=datetime.now(UTC)) == 2
    found = {text: len(read_here(opened, REPORT, as_="doctor", where=text)) for text in FILTERED}
    assert found == FILTERED
    later = read_here(opened, REPORT, as_="doctor", where="sample-receipt-date >= '2010-02-01'")
    assert [row["path-report-text"] for row in later] == [b"\x00\xff"]
    for text in ("path-report-text < 'x'", "path-report-text = 'x'", "path-report-text any"):
        with pytest.raises(FilterTypeError) as raised:
            read_here(opened, REPORT, as_="doctor", where=text)
        assert raised.value.code == "FILTER_BINARY_ATTRIBUTE"
        subscribe = ("deliver", "add", "s", "--as", "doctor", "--type", REPORT, "--where", text)
        assert home.refused(*subscribe)[1] == "FILTER_BINARY_ATTRIBUTE"
    assert home.do("deliver", "list")["subscriptions"] == []
    give = ("grant", "--from", "addenbrookes", "--to", "doctor", "--type", REPORT, "--action", "subscribe")
    assert home.refused(*give, "--attribute", "path-report-text<x")[1] == "ATTRIBUTE_UNCOMPARED"
    home.grant(*give[1:], "--attribute", "sample-receipt-date>=2010-02-01", "--attribute", "path-report-text")


NESTED = {"tags": "array<string>", "place": "struct<ward:string,bed:integer>", "price": "decimal(10,2)"}


@pytest.mark.parametrize("text", ["tags = 'x'", "tags any", "place != 'x'", "place in ('x')"])
def test_no_filter_looks_into_what_is_sealed_whole(text: str) -> None:
    """Arrays and structs are opened or closed as a whole; the error says what the attribute is."""
    assert compile_filter("price >= 10.00 and price != 10.005", NESTED)
    with pytest.raises(FilterTypeError, match="cannot be filtered on") as raised:
        compile_filter(text, NESTED)
    assert raised.value.code == "FILTER_BINARY_ATTRIBUTE"
    assert NESTED[text.split(maxsplit=1)[0]] in raised.value.message


def test_decimals_of_their_own_size_are_compared_exactly() -> None:
    """Between two steps of the column lies no value: 10.005 is neither 10.00 nor 10.01, and is above the one."""
    column = pa.array([Decimal("10.00"), Decimal("10.01"), None], pa.decimal128(10, 2))
    batch = pa.RecordBatch.from_arrays([column], names=["price"])
    found = {
        text: select(compile_filter(f"price {text}", NESTED), batch).to_pylist()
        for text in ("= 10.0", "= 10.005", "> 10.005", "<= 10.005", "!= 10.005")
    }
    assert found == {
        "= 10.0": [True, False, False], "= 10.005": [False, False, False], "> 10.005": [False, True, False],
        "<= 10.005": [True, False, False], "!= 10.005": [True, True, False],
    }  # fmt: skip


def test_a_uid_keeps_the_size_and_the_parts_of_its_values() -> None:
    """Another scale, element or field is another type, which old rights and old readers do not mean."""
    for old, new in (("decimal(10,2)", "decimal(10,3)"), ("array<string>", "array<binary>")):
        check_uids([(attribute("a", 1, old),), (attribute("b", 1, old),)])
        with pytest.raises(MalformedError, match="UID_REUSED"):
            check_uids([(attribute("a", 1, old),), (attribute("a", 1, new),)])


def test_nothing_that_lies_under_a_null_is_sealed() -> None:
    """A value that was taken away does not travel inside an array or a struct either."""
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.array(["canary", "x"]), mask=pa.array([True, False]))
    structs = pa.StructArray.from_arrays([pa.array(["canary", "x"])], names=["ward"], mask=pa.array([True, False]))
    for column, text in ((lists, "array<string>"), (structs, "struct<ward:string>")):
        octets = encode_column(column, parse_attribute_type(text))
        assert b"canary" not in octets
        assert decode_column(octets, count=2).equals(column)


def test_digits_and_fields_that_a_type_does_not_have_are_refused() -> None:
    """A number of more digits than its type has is sealed by nobody and opened by nobody; no field is left out."""
    data = (10**10).to_bytes(16, "little")
    column = pa.Array.from_buffers(pa.decimal128(10, 2), 1, [None, pa.py_buffer(data)])
    price = parse_attribute_type("decimal(10,2)")
    with pytest.raises(UsageError, match="BLOCK_VALUE"):
        encode_column(column, price)
    good = encode_column(pa.array([Decimal("1.00")], pa.decimal128(10, 2)), price)
    with pytest.raises(SealError):
        decode_column(good[: -len(data)] + data, count=1)
    owner = KeySigner.generate().public_key
    place = EventType(name=TypeName(owner, "x.Place", FIRST), attributes=(attribute("place", 1, NESTED["place"]),))
    batch = pa.RecordBatch.from_arrays([pa.array([{"ward": "A", "floor": 3}])], names=["place"])
    with pytest.raises(MalformedError, match="VALUE_TYPE"):
        check_batch(place, batch)
