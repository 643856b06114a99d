"""Writing through Spark's doors: what can never fit is refused before anything is written; silence means success."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import maia
from maia.errors import RowsRefusedError, UsageError
from maia.testing import Command

TYPE = "clinic.Result"


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a home whose lab may publish results of five visits, and whose ward may read them; the broker may not."""
    made = Command(tmp_path_factory.mktemp("writes") / "clinic")
    made.do("domain", "init", str(made.home))
    made.keys("owner", "lab", "ward", "desk", "clerk")
    attributes = ("patient:string", "visits:integer")
    made.do("type", "define", f"owner/{TYPE}@1", *(flag for text in attributes for flag in ("--attribute", text)))
    for who, *right in (
        ("broker", "--action", "publish"),
        ("ward", "--action", "subscribe"),
        ("desk", "--action", "publish"),
        ("lab", "--action", "publish", "--attribute", "patient", "--attribute", "visits=5", "--on-violation", "drop"),
        ("clerk", "--action", "publish", "--attribute", "visits=5", "--on-violation", "reject"),
    ):
        made.grant("--from", "owner", "--to", who, "--type", f"owner/{TYPE}", *right)
    return made


def options(clinic: Command, client: str) -> dict[str, str]:
    """Give the options of a client."""
    return {"home": str(clinic.home), "type": TYPE, "as": client}


def save(spark: Any, clinic: Command, rows: str, client: str = "lab") -> None:
    """Write the rows of a query through `format("maia")`."""
    spark.sql(rows).write.format("maia").mode("append").options(**options(clinic, client)).save()


def commits(clinic: Command) -> int:
    """Count the commits of the log."""
    return int(clinic.do("status")["log"]["commits"])


NEVER = {
    "an unknown column": ("SELECT 'x' patient, 5 vists", "NO_ATTRIBUTE", "did you mean `visits`?"),
    "one name twice": ("SELECT 'x' patient, 'y' patient", "ATTRIBUTE_NAME_TWICE", "two columns are called `patient`"),
    "a text for a number": ("SELECT 'x' patient, 'five' visits", "VALUE_TYPE", "column `visits` is string"),
    "a list for a text": ("SELECT array('x') patient, 5 visits", "VALUE_TYPE", "column `patient` is array<string>"),
    "a fraction for a number": ("SELECT 'x' patient, 5.0D visits", "VALUE_TYPE", "column `visits` is double"),
}


@pytest.mark.parametrize("rows, code, text", NEVER.values(), ids=NEVER)
def test_a_column_that_can_never_fit_is_refused_at_once(
    spark: Any, clinic: Command, rows: str, code: str, text: str
) -> None:
    """The error names the column; no task ran, so the audit knows nothing of it."""
    before = len(clinic.do("audit")["rows"])
    with pytest.raises(Exception, match=code) as raised:
        save(spark, clinic, rows)
    assert text in str(raised.value)
    assert len(clinic.do("audit")["rows"]) == before


def test_a_write_of_which_nothing_is_published_is_an_error(spark: Any, clinic: Command) -> None:
    """All rows break the lab's right: it raises with code and column, and the log has no commit of it."""
    before = commits(clinic)
    with pytest.raises(Exception, match="ROWS_REFUSED") as raised:
        save(spark, clinic, "SELECT 'x' patient, 6 visits")
    assert "1 row is refused, so nothing is published" in str(raised.value)
    assert "in `visits`" in str(raised.value)
    assert commits(clinic) == before


def test_what_is_published_can_be_read_without_a_right_of_the_broker(spark: Any, clinic: Command) -> None:
    """Some rows are refused, the others go through; `maia explain` says nothing of the broker, which may not read."""
    save(spark, clinic, "SELECT 'x' patient, 5 visits UNION ALL SELECT 'y', 6")
    domain = maia.open(clinic.home)
    assert [row.asDict() for row in domain.client("ward").read(TYPE).collect()] == [{"patient": "x", "visits": 5}]
    explained = clinic("explain", "--as", "ward", "--type", f"owner/{TYPE}@1", "--action", "subscribe")
    assert (explained.code, "warning" in explained.err) == (0, False)


def test_an_empty_publication_makes_no_commit_and_keeps_no_name(spark: Any, clinic: Command) -> None:
    """Rows that were put right may be published under the same name."""
    desk, before = maia.open(clinic.home).client("desk"), commits(clinic)
    with pytest.raises(RowsRefusedError) as raised:
        desk.publish(pa.table({"patient": ["x"], "visits": ["many"]}), TYPE, publication="monday")
    wrong = raised.value.published
    assert (wrong.commit, wrong.events, wrong.refused) == (None, 0, {("VALUE_TYPE", "visits"): 1})
    assert commits(clinic) == before
    right = desk.publish(pa.table({"patient": ["x"], "visits": [3]}), TYPE, publication="monday")
    assert (right.events, right.repeated) == (1, False)
    assert commits(clinic) == before + 1


def test_pandas_may_lack_integers(spark: Any, clinic: Command) -> None:
    """A column with a missing cell holds floats: whole ones are the integers they were, others are refused."""
    desk = maia.open(clinic.home).client("desk")
    assert desk.publish(pd.DataFrame({"patient": ["a", "b"], "visits": [1, None]}), TYPE).events == 2
    for number in (1.5, 2.0**60):
        with pytest.raises(RowsRefusedError, match="VALUE_TYPE in `visits`"):
            desk.publish(pd.DataFrame({"patient": ["a"], "visits": [number]}), TYPE)


def test_a_slip_in_attributes_is_answered_with_the_nearest(spark: Any, clinic: Command) -> None:
    """`attributes=` names what the type has, in Python as in Spark's option."""
    ward = maia.open(clinic.home).client("ward")
    with pytest.raises(UsageError, match="did you mean `visits`"):
        ward.read(TYPE, attributes="vists")


def test_a_session_is_made_fit_or_told_what_it_lacks(
    spark: Any, clinic: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be set while it runs is set; a Python without Maia is named, with the way out, at every door."""
    spark.conf.set("spark.sql.session.timeZone", "Europe/London")
    assert maia.prepare(spark, home=clinic.home) is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/bin/false")
    with pytest.raises(UsageError, match="PYSPARK_PYTHON") as raised:
        maia.prepare(spark)
    assert raised.value.code == "SPARK_PYTHON"
    desk = maia.open(clinic.home).client("desk")
    with pytest.raises(UsageError, match="PYSPARK_PYTHON"):
        desk.publish(spark.sql("SELECT 'p' patient, 5L visits"), TYPE)
    with pytest.raises(UsageError, match="PYSPARK_PYTHON"):
        maia.open(clinic.home).client("ward").read(TYPE)


def test_a_right_says_what_becomes_of_a_publication_that_breaks_it(spark: Any, clinic: Command) -> None:
    """Of the lab's rows the wrong one is dropped; of the clerk's none leaves. The audit says how many, and why."""
    rows = spark.sql("SELECT 'p' patient, 5L visits UNION ALL SELECT 'q', 6L").coalesce(1)  # a batch is a partition's
    domain = maia.open(clinic.home)
    dropped = domain.client("lab").publish(rows, TYPE)
    with pytest.raises(RowsRefusedError, match="2 rows are refused") as raised:
        domain.client("clerk").publish(rows, TYPE)
    rejected = raised.value.published
    assert (dropped.events, dropped.forced, dropped.refused) == (1, 0, {("CONSTRAINT_VIOLATED", "visits"): 1})
    assert (rejected.events, rejected.commit) == (0, None)
    assert {code: count for (code, _), count in rejected.refused.items()} == {
        "CONSTRAINT_VIOLATED": 1, "BATCH_REJECTED": 1,
    }  # fmt: skip
    told = {row["reason"]: row["events"] for row in clinic.do("audit", "--as", "clerk", "--kind", "refuse")["rows"]}
    assert told == {"CONSTRAINT_VIOLATED": 1, "BATCH_REJECTED": 1}
