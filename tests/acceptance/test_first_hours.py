"""The first hours with data of one's own: a type from what is there, times without a zone, rights that serve nobody."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from peer_world import Peers

import maia
from maia.errors import MalformedError, UsageError
from maia.testing import Command

TYPE = "clinic.Visit"
NAIVE = pa.schema([("patient", pa.string()), ("seen", pa.timestamp("us"))])
ROWS = pa.Table.from_pylist(
    [{"patient": "Ann", "seen": 1780304400000000}, {"patient": None, "seen": 1780308000000000}], schema=NAIVE
)


@pytest.fixture
def clinic(tmp_path: Path) -> Command:
    """Make a home with an owner's key, a lab and a ward."""
    made = Command(tmp_path / "clinic")
    made.do("domain", "init", str(made.home), "--key")
    made.keys("lab", "ward")
    return made


def kinds(clinic: Command, file: Path, *more: str) -> dict[str, str]:
    """Derive a type from a file, with the command."""
    found = clinic.do("type", "from-schema", str(file), *more)["attributes"]
    return {item["name"]: item["type"] for item in found}


def test_a_type_comes_from_a_file_or_a_frame(clinic: Command, tmp_path: Path) -> None:
    """Parquet, JSON lines, CSV, pandas and Arrow say the same columns; decimals, arrays and structs among them."""
    table = pa.table(
        {
            "patient": ["Ann"],
            "price": pa.array([Decimal("12.50")], pa.decimal128(10, 2)),
            "tags": pa.array([["urgent"]]),
            "place": pa.array([{"ward": "A", "bed": 3}]),
        }
    )
    wanted = {"patient": "string", "price": "decimal(10,2)", "tags": "array<string>"}
    wanted |= {"place": "struct<ward:string,bed:integer>"}
    pq.write_table(table, tmp_path / "visits.parquet")
    assert kinds(clinic, tmp_path / "visits.parquet") == wanted
    domain = maia.open(clinic.home)
    assert {item.name: item.type.value for item in domain.type_from_schema(table).attributes} == wanted
    line = {"patient": "Ann", "tags": ["urgent"], "place": {"ward": "A", "bed": 3}}
    (tmp_path / "visits.jsonl").write_text(json.dumps(line) + '\n{"tags": []}\n', "utf-8")
    assert kinds(clinic, tmp_path / "visits.jsonl") == {name: wanted[name] for name in line}
    (tmp_path / "visits.csv").write_text("patient,visits\nAnn,1\n", "utf-8")
    assert kinds(clinic, tmp_path / "visits.csv") == {"patient": "string", "visits": "integer"}
    defined = domain.type_from_schema(pd.DataFrame({"patient": ["Ann"], "visits": [1]}), f"domain/{TYPE}@1")
    assert [(item.name, item.type.value) for item in defined.attributes] == [
        ("patient", "string"),
        ("visits", "integer"),
    ]
    assert clinic("type", "verify", f"domain/{TYPE}@1").code == 0


def test_all_columns_that_do_not_fit_are_named_with_what_to_do(clinic: Command, tmp_path: Path) -> None:
    """One look tells everything that has to be mended, in the command and in Python; nothing is defined."""
    schema = pa.schema(
        [
            ("good", pa.string()),
            ("map", pa.map_(pa.string(), pa.int64())),
            ("seen", pa.timestamp("us")),
            ("count", pa.uint64()),
            ("deep", pa.list_(pa.struct([("when", pa.timestamp("us"))]))),
        ]
    )
    pq.write_table(schema.empty_table(), tmp_path / "odd.parquet")
    ran = clinic("type", "from-schema", str(tmp_path / "odd.parquet"), f"domain/{TYPE}@1")
    assert ran.code == 1
    for words in (
        "array of structs with a key and a value", "`seen` is", "--assume-utc", "cast it to int64", "field `when`",
    ):  # fmt: skip
        assert words in ran.err
    assert "good" not in ran.err
    with pytest.raises(MalformedError) as raised:
        maia.open(clinic.home).type_from_schema(schema, f"domain/{TYPE}@1")
    assert raised.value.code == "SCHEMA_TYPE"
    assert all(f"`{name}`" in raised.value.message for name in schema.names[1:])
    assert clinic.do("type", "show")["types"] == []


def visits(clinic: Command) -> None:
    """Define visits, which the lab publishes and of which the ward reads the time, and who it was in no row."""
    clinic.do("type", "define", f"domain/{TYPE}@1", "--attribute", "patient:string", "--attribute", "seen:timestamp")
    for who, *right in (
        ("broker", "--action", "publish,subscribe"),
        ("lab", "--action", "publish,subscribe"),
        ("ward", "--action", "subscribe", "--attribute", "seen"),
    ):
        clinic.grant("--from", "domain", "--to", who, "--type", f"domain/{TYPE}", *right)


def test_times_without_a_zone_are_refused_until_somebody_says_the_zone(
    spark: Any, clinic: Command, tmp_path: Path
) -> None:
    """CSV, JSON, Parquet, pandas and Spark: without the option nothing goes through, with it the instant is exact."""
    visits(clinic)
    (tmp_path / "v.csv").write_text("patient,seen\nAnn,2026-06-01 09:00:00\n", "utf-8")
    (tmp_path / "v.json").write_text('{"patient": "Ann", "seen": "2026-06-01T09:00:00"}\n', "utf-8")
    pq.write_table(ROWS[:1], tmp_path / "v.parquet")
    for name in ("v.csv", "v.json", "v.parquet"):
        publish = ("publish", str(tmp_path / name), "--type", TYPE, "--as", "lab")
        assert clinic(*publish).code in (1, 3), name
        done = clinic.do(*publish, "--naive-timestamps", "+01:00")
        assert (done["events"], done["refused"]) == (1, []), name
    domain = maia.open(clinic.home)
    lab = domain.client("lab")
    assert lab.publish(ROWS[:1].to_pandas(), TYPE, naive_timestamps="+01:00").events == 1
    options = {"home": str(clinic.home), "type": TYPE, "as": "lab", "naiveTimestamps": "+01:00"}
    naive = spark.sql("SELECT 'Ann' patient, timestamp_ntz'2026-06-01 09:00:00' seen")
    naive.write.format("maia").mode("append").options(**options).save()
    seen = {row["seen"] for row in lab.read(TYPE).toArrow().to_pylist()}
    assert seen == {datetime(2026, 6, 1, 8, tzinfo=UTC)}
    zoned = tmp_path / "z.csv"
    zoned.write_text("patient,seen\nAnn,2026-06-01T09:00:00+02:00\n", "utf-8")
    assert clinic.do("publish", str(zoned), "--type", TYPE, "--as", "lab")["events"] == 1


def test_a_look_says_what_was_not_seen(spark: Any, clinic: Command) -> None:
    """In the ward's table `patient` is ∅, in the lab's it is null where there is none; the last line says why."""
    visits(clinic)
    domain = maia.open(clinic.home)
    domain.client("lab").publish(ROWS, TYPE, naive_timestamps="UTC")
    look = domain.client("ward").look(TYPE)
    assert [row["patient"] for row in look.rows] == [None, None]
    assert repr(look).count("∅") == 2
    assert repr(look).splitlines()[-1] == "2 rows; 1 attribute closed to you: patient"
    assert look._repr_html_().count("<td>∅</td>") == 2
    assert "1 attribute closed to you" in look._repr_html_()
    own = domain.client("lab").look(TYPE)
    assert sorted(cells[0] for cells in own.cells()) == ["Ann", "null"]
    assert (own.line(), "∅" in repr(own)) == ("2 rows", False)
    shown = clinic("subscribe", "--type", TYPE, "--as", "ward")
    assert (shown.code, shown.out.count("∅")) == (0, 2)
    assert "1 attribute closed to you: patient" in shown.err
    assert clinic("subscribe", "--type", TYPE, "--as", "lab").out.count("null") == 1
    with pytest.raises(UsageError, match="at least 1"):
        domain.client("ward").look(TYPE, limit=0)


USELESS = {
    "a type that is not here": (("--type", "domain/clinic.Vist", "--action", "subscribe"), "TYPE_NOT_HERE"),
    "a version that is not here": (("--type", f"domain/{TYPE}@9", "--action", "subscribe"), "TYPE_NOT_HERE"),
    "a broker that may not": (("--type", f"domain/{TYPE}", "--action", "publish"), "BROKER_LACKS_RIGHT"),
}


@pytest.mark.parametrize("right, code", USELESS.values(), ids=USELESS)
def test_a_right_that_serves_nobody_is_given_with_a_warning(clinic: Command, right: tuple[str, ...], code: str) -> None:
    """The command and Python say so, and who has to do what; a right of use has no warning."""
    clinic.do("type", "define", f"domain/{TYPE}@1", "--attribute", "patient:string")
    given = clinic.do("grant", "--from", "domain", "--to", "lab", *right)
    assert given["warnings"] == [code]
    _, type_, _, action = right
    granted = maia.open(clinic.home).grant("ward", type_, actions=action)
    assert [item.code for item in granted.findings] == [code]
    assert f"warning: [{code}]" in str(granted)
    assert f"[{code}]" in granted._repr_html_()
    clinic.grant("--from", "domain", "--to", "broker", "--type", f"domain/{TYPE}", "--action", "publish")
    fine = clinic.do("grant", "--from", "domain", "--to", "ward", "--type", f"domain/{TYPE}@1", "--action", "publish")
    assert fine["warnings"] == []


def test_demands_that_contradict_each_other_are_no_right(clinic: Command) -> None:
    """Nobody is both Ann and Bob; nothing is signed."""
    clinic.do("type", "define", f"domain/{TYPE}@1", "--attribute", "patient:string")
    both = ("--attribute", "patient='Ann'", "--attribute", "patient='Bob'")
    grant = ("grant", "--from", "domain", "--to", "ward", "--type", f"domain/{TYPE}", "--action", "subscribe")
    assert clinic.refused(*grant, *both) == (2, "GIVES_NOTHING")
    assert not list((clinic.home / "certificates").glob("*.cert"))


def test_a_partner_learns_from_its_status_who_has_to_act(tmp_path: Path) -> None:
    """Before it is admitted the other side has to; once it is, its own first read takes the welcome up."""
    world = Peers(tmp_path)
    answer = world.answer(world.invite(), "--reader", "ann")
    [waiting] = world.mary.do("status")["steps"]
    assert waiting["command"] == "maia domain connect answer.maia"
    assert waiting["where"] == "the home of `clinic`"
    world.admit(answer)
    [step] = world.mary.do("status")["steps"]
    assert "has admitted this domain" in step["why"]
    assert step["command"] == "maia subscribe --type clinic/Result --as NAME"
    assert "has admitted this domain" in world.mary("doctor").out
    maia.open(world.mary.home).follow()
    assert not [item for item in world.mary.do("status")["steps"] if "admitted" in item["why"]]


@pytest.mark.parametrize("reads", [False, True])
def test_a_partner_that_was_disconnected_is_not_told_to_read(tmp_path: Path, reads: bool) -> None:
    """Its status says what the log says, also before a read has taken up anything; no key is promised for a column."""
    world = Peers(tmp_path)
    world.connect()
    if reads:
        maia.open(world.mary.home).follow()
    world.clinic.do("domain", "disconnect", "St Mary's", "--yes")
    if reads:
        maia.open(world.mary.home).follow()
    [step] = world.mary.do("status")["steps"]
    assert "has admitted" not in step["why"]
    assert step["where"] == "the home of `clinic`"
    said = world.mary("status").out
    assert "first published" not in said
    assert "closed to this domain, or not here yet" in said
