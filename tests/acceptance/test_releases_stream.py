"""One tree of release rules, on Arrow and on Spark, row for row; and the registry's reader, through Spark."""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from release_world import REPORT, RESEARCH, STUDY, TYPE, Hospital, report

import maia
from maia.events import arrow_type
from maia.policy import release
from maia.testing import Command

KINDS = {
    "ward": "string", "place": "string", "age": "integer", "lat": "float", "cost": "decimal(12,4)", "born": "date",
    "seen": "timestamp", "alive": "boolean", "odd `na.me`": "string",
}  # fmt: skip
RULES = """\
release demo.Stay to study("a")
  keep    ward, alive, "odd `na.me`", age
  coarsen place to decimals(1)
  coarsen lat to decimals(2)
  coarsen cost to decimals(1)
  coarsen born to year
  coarsen seen to month
  add     person = pseudonym(ward)
  add     stay = pseudonym(seen, scope = study("b"))
release demo.Stay to study("b")
  coarsen age to bucket(10)
  coarsen lat to bucket(3)
  coarsen ward to first(1)
  coarsen "odd `na.me`" to last(2)
  add     stay = pseudonym(seen)
release counts of demo.Stay by ward, lat, born to "the registry"
  coarsen lat to decimals(0)
  coarsen born to year
  at least 3 age
release counts of demo.Stay by alive, cost to audit
release counts of demo.Stay by seen to gp
  coarsen seen to month
  at least 2 "odd `na.me`"
"""
PLACES = ('study("a")', 'study("b")', '"the registry"', "audit", "gp")


def stays(count: int) -> list[dict[str, object]]:
    """Make rows with every kind of value, nulls among them; the same ones each time."""
    dice = random.Random(7)
    made = {
        "ward": lambda: dice.choice(["A", "B", "πλ", ""]),
        "place": lambda: dice.choice(["51.4952,-0.1439", "-0.04", "Victoria"]),
        "age": lambda: dice.randrange(-3, 12),
        "lat": lambda: dice.choice([0.0, -0.0, -0.2, 51.45, 51.25, 0.15]),
        "cost": lambda: Decimal(dice.randrange(-50, 50)) / 20,
        "born": lambda: date(1899, 12, 30) + timedelta(dice.randrange(900)),
        "seen": lambda: datetime(2010, 1, 31, 23, tzinfo=UTC) + timedelta(minutes=dice.randrange(120)),
        "alive": lambda: dice.random() < 0.5,
        "odd `na.me`": lambda: dice.choice(["x", "yz", "🜁bc"]),
    }
    return [{name: None if dice.random() < 0.1 else make() for name, make in made.items()} for _ in range(count)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home with the type and the rules."""
    command = Command(tmp_path_factory.mktemp("spark-releases") / "home")
    command.do("domain", "init", str(command.home), "--name", "demo", "--key")
    attributes = [word for name, kind in KINDS.items() for word in ("--attribute", f"{name}:{kind}")]
    command.do("type", "define", "domain/demo.Stay@1", *attributes)
    (command.home / "policy").mkdir(exist_ok=True)
    (command.home / "policy" / "stay.release").write_text(RULES, "utf-8")
    found = command.do("release", "check")["findings"]
    assert {item["finding"] for item in found} == {"PSEUDONYM_OPEN", "NO_MINIMUM"}
    return command.home


@pytest.mark.requirement("20.02")
@pytest.mark.parametrize("to", PLACES)
def test_spark_releases_what_arrow_releases(spark: Any, home: Path, to: str) -> None:
    """Rows in any order, counts in theirs; pseudonyms are made up, for the same rows, and no secret is made."""
    domain, rows = maia.open(home), stays(400)
    kinds = {item.name: item.type for item in domain.event_type("demo.Stay").attributes}
    schema = pa.schema([pa.field(name, arrow_type(kind)) for name, kind in kinds.items()])
    table = pa.Table.from_pylist(rows, schema=schema)
    frame = spark.createDataFrame(table).repartition(3)
    on_spark = domain.released(frame, "demo.Stay", to=to).toArrow().to_pylist()
    assert not (home / "releases" / "secret").exists()
    (tree,) = release.compile_releases(release.parse_releases(RULES), release.parse_destination(to), kinds)
    secret = secrets.token_bytes(release.SECRET_LENGTH)
    on_arrow = [
        row
        for batch in release.release_batches(tree, table.to_batches(max_chunksize=37), secret)
        for row in batch.to_pylist()
    ]
    assert len(on_arrow) > 2
    if tree.counts:
        assert on_spark == on_arrow
    else:
        hidden = [column.name for column in tree.columns if column.scope is not None]
        assert behind(on_spark, hidden) == behind(on_arrow, hidden)
        for name in hidden:
            assert {row[name] for row in on_spark} & {row[name] for row in on_arrow} <= {None}


def behind(rows: list[dict[str, object]], pseudonyms: Sequence[str]) -> list[list[str]]:
    """Give the rows without their pseudonyms, and for each pseudonym the rows that have it, sorted."""
    plain = [repr({name: value for name, value in row.items() if name not in pseudonyms}) for row in rows]
    found = [sorted(plain)]
    for name in pseudonyms:
        groups: dict[object, list[str]] = {}
        for row, text in zip(rows, plain, strict=True):
            groups.setdefault(row[name], []).append(text)
        assert None in groups
        found += sorted(sorted(group) for group in groups.values())
    return found


def test_a_study_reads_the_released_type_through_spark(spark: Any, tmp_path: Path) -> None:
    """The released type is a type as any other: read as a frame, with the rights of the reader."""
    hospital = Hospital(tmp_path / "home")
    hospital.rules(RESEARCH)
    hospital.define(STUDY)
    hospital.publish(REPORT, report(patient_ID="999"))
    domain = maia.open(hospital.maia.home)
    (done,) = domain.release(TYPE, to=STUDY, by="registrar")
    assert done.rows == 2
    hospital.grant("chen", "subscribe", "anonymised-ID", "sample-receipt-date", type_=f"{TYPE}.study.bladder-7")
    rows = domain.client("chen").read(f"{TYPE}.study.bladder-7").toArrow().to_pylist()
    assert [(row["hospital-ID"], row["sample-receipt-date"]) for row in rows] == [(None, "2010-02")] * 2
    assert len({row["anonymised-ID"] for row in rows}) == 2
