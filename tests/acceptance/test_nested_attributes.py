"""Arrays and structs as attributes, sealed whole, and decimals that keep their scale: defined, published, read."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import maia
from maia.errors import RowsRefusedError
from maia.testing import Command

TYPE = "clinic.Panel"
ATTRIBUTES = {
    "patient": "string",
    "price": "decimal(10,2)",
    "tags": "array<string>",
    "results": "array<struct<test:string,mmol:decimal(4,1),at:timestamp>>",
}
AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
ROWS = [
    {
        "patient": "Ann",
        "price": Decimal("12.50"),
        "tags": ["canary-tag", None],
        "results": [{"test": "glucose", "mmol": Decimal("5.4"), "at": AT}, None],
    },
    {"patient": "Bob", "price": Decimal("7.00"), "tags": [], "results": None},
]
SCHEMA = pa.schema(
    [
        ("patient", pa.string()),
        ("price", pa.decimal128(10, 2)),
        ("tags", pa.list_(pa.string())),
        (
            "results",
            pa.list_(
                pa.struct([("test", pa.string()), ("mmol", pa.decimal128(4, 1)), ("at", pa.timestamp("us", "UTC"))])
            ),
        ),
    ]
)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home whose lab publishes panels; the ward reads all, the desk neither tags nor results."""
    made = Command(tmp_path_factory.mktemp("nested") / "clinic")
    made.do("domain", "init", str(made.home), "--key")
    made.keys("lab", "ward", "desk")
    flags = [flag for name, kind in ATTRIBUTES.items() for flag in ("--attribute", f"{name}:{kind}")]
    made.do("type", "define", f"domain/{TYPE}@1", *flags)
    for who, *right in (
        ("broker", "--action", "publish,subscribe"),
        ("lab", "--action", "publish"),
        ("ward", "--action", "subscribe"),
        ("desk", "--action", "subscribe", "--attribute", "patient", "--attribute", "price >= 10.0"),
    ):
        made.grant("--from", "domain", "--to", who, "--type", f"domain/{TYPE}", *right)
    return made


@pytest.fixture
def published(spark: Any, clinic: Command) -> Command:
    """Let the lab publish two panels, once."""
    lab = maia.open(clinic.home).client("lab")
    done = lab.publish(pa.Table.from_pylist(ROWS, schema=SCHEMA), TYPE, publication="two")
    assert (done.events, dict(done.refused)) == (2, {})
    return clinic


def test_a_definition_says_sizes_and_parts(clinic: Command) -> None:
    """The signed definition holds the types as they were written, also as a schema of Spark's."""
    shown = clinic.do("type", "show", f"domain/{TYPE}@1")
    assert {item["name"]: item["type"] for item in shown["attributes"]} == ATTRIBUTES
    assert "DECIMAL(10,2)" in clinic.do("type", "show", f"domain/{TYPE}@1", "--spark")["ddl"]


def test_what_is_published_is_read_as_it_was(spark: Any, published: Command) -> None:
    """The ward gets decimals with their scale, arrays and structs whole, by every door; the log holds no plaintext."""
    ward = maia.open(published.home).client("ward")
    frame = ward.read(TYPE)
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    assert kinds["price"] == "decimal(10,2)"
    assert kinds["results"] == "array<struct<test:string,mmol:decimal(4,1),at:timestamp>>"
    rows = sorted(frame.toArrow().to_pylist(), key=lambda row: row["patient"])
    assert rows == ROWS
    assert [str(row["price"]) for row in rows] == ["12.50", "7.00"]
    ran = published("subscribe", "--type", TYPE, "--as", "ward", "--format", "json")
    assert ran.code == 0, ran.err
    ann = next(row for row in map(json.loads, ran.out.splitlines()) if row["patient"] == "Ann")
    assert ann["results"] == [{"test": "glucose", "mmol": "5.4", "at": "2026-06-01T09:00:00Z"}, None]
    assert ann["price"] == "12.50"
    options = {"home": str(published.home), "type": TYPE, "as": "ward"}
    [row] = spark.read.format("maia").options(**options).load().where("price = 12.50").select("tags").collect()
    assert row[0] == ["canary-tag", None]
    assert not [
        path
        for path in (published.home / "log").rglob("*")
        if path.is_file() and (b"canary-tag" in path.read_bytes() or b"glucose" in path.read_bytes())
    ]


def test_a_demand_on_a_decimal_is_exact(spark: Any, published: Command) -> None:
    """The desk sees rows whose price is at least 10.00, and neither tags nor results of them."""
    rows = maia.open(published.home).client("desk").read(TYPE).toArrow().to_pylist()
    assert rows == [{"patient": "Ann", "price": Decimal("12.50"), "tags": None, "results": None}]
    ward = maia.open(published.home).client("ward")
    assert ward.read(TYPE, where="price = 7.0").count() == 1
    assert ward.read(TYPE, where="price = 7.001").count() == 0


UNCOMPARED = {
    "a filter on an array": (("subscribe", "--where", "tags = 'x'"), 1, "FILTER_BINARY_ATTRIBUTE", "array<string>"),
    "a filter on a struct": (("subscribe", "--where", "results any"), 1, "FILTER_BINARY_ATTRIBUTE", "array<struct<"),
    "a right that compares one": (("grant", "--attribute", "tags = 'x'"), 2, "ATTRIBUTE_UNCOMPARED", "array<string>"),
}


@pytest.mark.parametrize("words, status, code, text", UNCOMPARED.values(), ids=UNCOMPARED)
def test_nobody_compares_what_is_sealed_whole(
    clinic: Command, words: tuple[str, ...], status: int, code: str, text: str
) -> None:
    """The error names the attribute and what it is."""
    verb, *more = words
    who = ("--as", "ward") if verb == "subscribe" else ("--from", "domain", "--to", "ward", "--action", "subscribe")
    ran = clinic(verb, "--type", f"domain/{TYPE}", *who, *more)
    assert (ran.code, f"[{code}]" in ran.err, text in ran.err) == (status, True, True), ran.err


@pytest.fixture
def other(clinic: Command, tmp_path: Path) -> Command:
    """Give a copy of the home, for tests that publish more."""
    shutil.copytree(clinic.home, tmp_path / "clinic")
    return Command(tmp_path / "clinic")


def test_rows_that_do_not_fit_their_parts_are_refused_one_by_one(spark: Any, other: Command) -> None:
    """A digit too many, a field that is unknown, another kind of element: each costs its row, or its column."""
    lab = maia.open(other.home).client("lab")
    finer = pa.table({"price": pa.array([Decimal("1.255")], pa.decimal128(10, 3))})
    with pytest.raises(RowsRefusedError, match="VALUE_TYPE in `price`"):
        lab.publish(finer, TYPE)
    for odd in (
        pa.table({"tags": pa.array([[1]])}),
        pa.table({"results": pa.array([[{"test": "x", "unit": "y"}]])}),
        pa.table({"tags": pa.array(["plain"])}),
    ):
        with pytest.raises(RowsRefusedError, match="VALUE_TYPE"):
            lab.publish(odd, TYPE)
    mixed = pa.table({"price": pa.array([Decimal("1.255"), Decimal("1.250")], pa.decimal128(10, 3))})
    done = lab.publish(mixed, TYPE)
    assert (done.events, dict(done.refused)) == (1, {("VALUE_TYPE", "price"): 1})


def test_files_are_published_with_their_parts(spark: Any, other: Command, tmp_path: Path) -> None:
    """Parquet and JSON lines hold arrays and structs, and CSV does not; a key that no struct has refuses its line."""
    pq.write_table(pa.Table.from_pylist(ROWS, schema=SCHEMA), tmp_path / "panels.parquet")
    ran = other("publish", str(tmp_path / "panels.parquet"), "--type", TYPE, "--as", "lab", "--json")
    assert (ran.code, ran.data["events"]) == (0, 2), ran.err
    good = {"patient": "Cid", "price": "3.10", "results": [{"test": "lead", "mmol": 0.1, "at": "2026-06-01T09:00:00Z"}]}
    odd = {"patient": "Dan", "results": [{"test": "lead", "unit": "mmol"}]}
    naive = {"patient": "Eve", "results": [{"test": "lead", "at": "2026-06-01T09:00:00"}]}
    lines = [json.dumps(row) for row in (good, odd, naive)]
    (tmp_path / "panels.json").write_text("\n".join([*lines, "[1]", "{"]), "utf-8")
    ran = other("publish", str(tmp_path / "panels.json"), "--type", TYPE, "--as", "lab", "--json")
    assert (ran.code, ran.data["events"]) == (0, 1), ran.out
    assert ran.data["refused"] == [
        {"code": "ROW_MALFORMED", "column": column, "rows": 2} for column in (None, "results")
    ]
    (tmp_path / "panels.csv").write_text("patient,tags\nEve,a\n", "utf-8")
    refused = other.refused("publish", str(tmp_path / "panels.csv"), "--type", TYPE, "--as", "lab")
    assert refused[1] == "INPUT_TYPE"


def test_a_file_of_narrower_parts_fits_the_type_that_was_made_of_it(spark: Any, other: Command, tmp_path: Path) -> None:
    """What `type from-schema` takes is published too: integers inside structs and arrays are widened as outside."""
    kind = pa.struct([("street", pa.string()), ("no", pa.int32())])
    rows = [{"address": {"street": "Elm", "no": 7}, "doses": [{"half": [0.5, None]}]}, {"address": None, "doses": []}]
    halves = pa.list_(pa.struct([("half", pa.list_(pa.float32()))]))
    table = pa.Table.from_pylist(rows, schema=pa.schema([("address", kind), ("doses", halves)]))
    pq.write_table(table, tmp_path / "visits.parquet")
    other.do("type", "from-schema", str(tmp_path / "visits.parquet"), "domain/clinic.Visit")
    for who, action in (("broker", "publish,subscribe"), ("lab", "publish"), ("ward", "subscribe")):
        other.grant("--from", "domain", "--to", who, "--type", "domain/clinic.Visit", "--action", action)
    ran = other("publish", str(tmp_path / "visits.parquet"), "--type", "clinic.Visit", "--as", "lab", "--json")
    assert (ran.code, ran.data["events"]) == (0, 2), ran.err
    read = maia.open(other.home).client("ward").read("clinic.Visit")
    assert sorted((row.asDict(recursive=True) for row in read.collect()), key=str) == sorted(rows, key=str)
    swapped = pa.table({"address": pa.array([{"no": 7, "street": "Elm"}])})
    pq.write_table(swapped, tmp_path / "swapped.parquet")
    refused = other.refused("publish", str(tmp_path / "swapped.parquet"), "--type", "clinic.Visit", "--as", "lab")
    assert refused[1] == "INPUT_TYPE"
