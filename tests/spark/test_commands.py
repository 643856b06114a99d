"""The stream commands with Spark: every row of the input is published or counted, each reader sees its own cells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent.parent / "unit" / "cli"))

from clinic import TYPE, build, publish_here

from maia.cli import app
from maia.home import Home

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    # pyspark leaves sockets to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CSV = """value,patient,ward,test,taken
5.4,Ada,A,glucose,2026-06-01T08:00:00Z
140.0,Ben,A,sodium,2026-06-01T08:05:00Z
7.9,"Cem, Jr",B,glucose,2026-06-01T08:10:00Z
high,Dee,B,glucose,2026-06-01T08:15:00Z
6.0,Eve,B,glucose,2026-06-01T08:15:00Z,and more
6.0,Fay,B
,Gus,,sodium,
"""
LINES = [
    b'{"patient": "Ada", "ward": "A", "test": "glucose", "value": 5.4, "taken": "2026-06-01T08:00:00Z"}',
    b'{"pateint": "Ben"}',
    b'{"patient": "Cem", "value": "high"}',
    b"{",
    b"[1]",
    b"",
    b"\xff\xfe",
    b'{"patient": "Dee", "patient": "Eve"}',
    b'{"patient": "Fay", "ward": null}',
]


class Program:
    """`maia` in this process, where the session of the tests runs."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, *args: str, stdin: bytes | None = None) -> Any:
        """Run a command line."""
        environment = {"MAIA_HOME": str(self.home), "NO_COLOR": "1", "COLUMNS": "200"}
        result = CliRunner().invoke(app, list(args), input=stdin, env=environment)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        result.code = result.exit_code  # type: ignore[attr-defined]
        result.err = result.stderr  # type: ignore[attr-defined]
        return result

    def keys(self, *names: str) -> None:
        """Make unsealed keys."""
        for name in names:
            assert self("key", "new", name, "--no-passphrase").code == 0

    def grant(self, *args: str) -> None:
        """Issue a capability."""
        assert self("grant", *args).code == 0

    def publish(self, source: str, *flags: str, stdin: bytes | None = None) -> tuple[int, dict[str, Any]]:
        """Publish as the laboratory."""
        ran = self("publish", source, "--type", TYPE, "--as", "lab", "--json", *flags, stdin=stdin)
        return ran.code, json.loads(ran.stdout)

    def read(self, client: str, *flags: str) -> list[dict[str, Any]]:
        """Read as a client."""
        ran = self("subscribe", "--type", TYPE, "--as", client, "--json", *flags)
        assert ran.code == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]


def refusals(data: dict[str, Any]) -> dict[str, int]:
    """Index refusals by code, and column where one is at fault."""
    return {
        item["code"] + (f" in {item['column']}" if item["column"] else ""): item["rows"] for item in data["refused"]
    }


@pytest.fixture
def maia(tmp_path: Path, spark: Any) -> Program:
    """Give the clinic, with Spark running."""
    program = Program(tmp_path / "clinic")
    build(program)
    return program


def test_a_csv_file_is_published_and_each_reader_sees_its_cells(maia: Program, tmp_path: Path) -> None:
    """Rows = published + refused; malformed ones are counted; an empty cell is null; the log holds no plaintext."""
    (tmp_path / "in.csv").write_text(CSV)
    code, data = maia.publish(str(tmp_path / "in.csv"), "--publication", "monday")
    assert (code, data["events"], refusals(data)) == (0, 4, {"ROW_MALFORMED": 2, "ROW_MALFORMED in value": 1})
    seen = sorted(maia.read("doctor"), key=lambda row: row["patient"])
    assert [row["patient"] for row in seen] == ["Ada", "Ben", "Cem, Jr", "Gus"]
    assert seen[0] == {
        "patient": "Ada", "ward": "A", "test": "glucose", "value": 5.4, "taken": "2026-06-01T08:00:00Z",
    }  # fmt: skip
    assert seen[3] == {"patient": "Gus", "ward": None, "test": "sodium", "value": None, "taken": None}
    some = sorted(maia.read("researcher"), key=lambda row: row["value"])
    assert some == [
        {"patient": None, "ward": ward, "test": "glucose", "value": value, "taken": None}
        for ward, value in (("A", 5.4), ("B", 7.9))
    ]
    assert [row["patient"] for row in maia.read("doctor", "--where", "ward = 'B'")] == ["Cem, Jr"]
    for path in Home.open(maia.home).log_path.rglob("*"):
        assert not path.is_file() or b"glucose" not in path.read_bytes()
    # again under its name: it counts once
    assert maia.publish(str(tmp_path / "in.csv"), "--publication", "monday")[1]["repeated"] is True
    assert len(maia.read("doctor")) == 4
    audit = json.loads(maia("audit", "--kind", "refuse", "--json").stdout)["rows"]
    assert [(row["reason"], row["events"], row["attributes"]) for row in audit] == [("ROW_MALFORMED", 3, ["value"])]


def test_a_quoted_value_may_hold_line_breaks_quotes_and_separators(maia: Program, tmp_path: Path) -> None:
    """As RFC 4180 says; the rows around it are read as ever, and a malformed one is still counted."""
    text = (
        'patient,ward,test,value,taken\n"Ada\nLovelace, ""Countess""\r\nof Lovelace",A,glucose,5.4,\n'
        "Ben\\,A,sodium,high,\nCem\\,B,sodium,140,\n"
    )
    (tmp_path / "in.csv").write_text(text, newline="")
    code, data = maia.publish(str(tmp_path / "in.csv"))
    assert (code, data["events"], refusals(data)) == (0, 2, {"ROW_MALFORMED in value": 1})
    patients = [row["patient"] for row in maia.read("doctor")]
    assert sorted(patients) == ['Ada\nLovelace, "Countess"\r\nof Lovelace', "Cem\\"]


def test_json_lines_are_published_from_a_file_and_from_standard_input(maia: Program, tmp_path: Path) -> None:
    """Unknown keys, double keys, wrong values and what is no JSON are counted, and never become nulls."""
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(line for line in LINES if line != b"\xff\xfe"))
    code, data = maia.publish(str(tmp_path / "in.jsonl"))
    assert (code, data["events"], refusals(data)) == (0, 2, {"ROW_MALFORMED": 4, "ROW_MALFORMED in value": 1})
    code, data = maia.publish("-", stdin=b"\n".join(LINES))
    assert (code, data["events"], refusals(data)) == (0, 2, {"ROW_MALFORMED": 5, "ROW_MALFORMED in value": 1})
    assert sorted(row["patient"] for row in maia.read("doctor")) == ["Ada", "Ada", "Fay", "Fay"]
    assert maia.publish("-", stdin=b"{\n[\n")[0] == 1


def test_parquet_is_published_when_its_columns_fit(maia: Program, tmp_path: Path) -> None:
    """Smaller numbers are widened; another type or another name is refused as a whole."""
    good = pa.table({"patient": ["Ada"], "value": pa.array([1.5], type=pa.float32())})
    pq.write_table(good, tmp_path / "good.parquet")
    assert maia.publish(str(tmp_path / "good.parquet"))[1]["events"] == 1
    for name, table, error in (
        ("type", pa.table({"patient": [1]}), "INPUT_TYPE"),
        ("name", pa.table({"person": ["Ada"]}), "NO_ATTRIBUTE"),
    ):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        code, data = maia.publish(str(tmp_path / f"{name}.parquet"))
        assert (code, data["error"]) == (1, error)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    assert maia.publish(str(tmp_path / "broken.parquet"))[1]["error"] == "SPARK_FAILED"
    assert len(maia.read("doctor")) == 1


def test_what_a_publisher_may_not_set_is_nulled_forced_or_refused_and_said(maia: Program, tmp_path: Path) -> None:
    """A trainee may set the ward to A and the patient, and only publish low values."""
    maia.keys("trainee")
    maia.grant(
        *("--from", "owner", "--to", "trainee", "--type", f"owner/{TYPE}", "--action", "publish"),
        *("--attribute", "1", "--attribute", "2=A", "--attribute", "4<=10.0"),
    )
    (tmp_path / "in.csv").write_text(CSV)
    ran = maia("publish", str(tmp_path / "in.csv"), "--type", TYPE, "--as", "trainee", "--json")
    data = json.loads(ran.stdout)
    malformed = {"ROW_MALFORMED": 2, "ROW_MALFORMED in value": 1}
    assert (data["events"], refusals(data)) == (2, {"CONSTRAINT_VIOLATED in value": 2, **malformed})
    assert (data["forced"], data["nulled"] > 0) == (1, True)
    assert {(row["ward"], row["test"]) for row in maia.read("doctor")} == {("A", None)}
    shown = maia("publish", str(tmp_path / "in.csv"), "--type", TYPE, "--as", "trainee").stdout
    assert "published 2 events" in shown
    assert "refused 2 rows: CONSTRAINT_VIOLATED in `value`" in shown
    assert "refused 2 rows: ROW_MALFORMED\nrefused 1 row: ROW_MALFORMED in `value`\n" in shown
    assert "forced a value in 1 event\n" in shown


def test_subscribe_writes_tables_files_and_folders(maia: Program, tmp_path: Path) -> None:
    """A table is cut and says so, a file is for its owner only, a folder is Parquet."""
    publish_here(Home.open(maia.home), "p", [f"P{number:03d}" for number in range(60)])
    ran = maia("subscribe", "--type", TYPE, "--as", "doctor")
    assert "P000" in ran.stdout
    assert "showing 50 events" in ran.stderr
    assert "∅" in maia("subscribe", "--type", TYPE, "--as", "researcher", "--limit", "1").stdout
    assert maia("subscribe", "--type", TYPE, "--as", "doctor", "--json", "--out", str(tmp_path / "o")).code == 0
    assert len((tmp_path / "o").read_text().splitlines()) == 60
    assert (tmp_path / "o").stat().st_mode & 0o077 == 0
    folder = tmp_path / "folder"
    ran = maia("subscribe", "--type", TYPE, "--as", "researcher", "--format", "parquet", "--out", str(folder))
    assert ran.code == 0
    assert pq.read_table(folder).column("patient").null_count == 60


def test_strict_publishes_all_rows_or_none(maia: Program, tmp_path: Path) -> None:
    """One malformed row, or one that is refused, and nothing is published."""
    (tmp_path / "in.csv").write_text(CSV)
    code, data = maia.publish(str(tmp_path / "in.csv"), "--strict")
    assert (code, data["error"]) == (1, "ROW_MALFORMED")
    assert "3 rows are refused, so nothing is published: ROW_MALFORMED, ROW_MALFORMED in `value`" in data["message"]
    audit = json.loads(maia("audit", "--kind", "refuse", "--json").stdout)["rows"]
    assert [(row["reason"], row["events"]) for row in audit] == [("ROW_MALFORMED", 3)]
    (tmp_path / "in.csv").write_text("\n".join(CSV.splitlines()[:3]))
    code, data = maia.publish(str(tmp_path / "in.csv"), "--strict")
    assert (code, data["events"], data["refused"]) == (0, 2, [])
    assert len(maia.read("doctor")) == 2


def test_subscribe_says_what_was_closed_and_refused(maia: Program, tmp_path: Path) -> None:
    """In one line on standard error; an empty result never hides a refusal; attributes project."""
    home = Home.open(maia.home)
    publish_here(home, "p", ["Ada", "Ben"])
    ran = maia("subscribe", "--type", TYPE, "--as", "researcher", "--json", "--attributes", "ward,value,patient")
    assert [list(json.loads(line)) for line in ran.stdout.splitlines()] == [["ward", "value", "patient"]] * 2
    assert "2 rows; 1 attribute closed to you: patient\n" in ran.stderr
    ran = maia("subscribe", "--type", TYPE, "--as", "researcher", "--json", "--where", "ward = 'Z'")
    assert "0 rows; 2 attributes closed to you: patient, taken; 2 events not in your right or filter" in ran.stderr
    for path in home.log_path.glob("type=*/origin=*/date=*/*.parquet"):
        path.write_bytes(path.read_bytes()[:-1])
    ran = maia("subscribe", "--type", TYPE, "--as", "doctor", "--json")
    assert (ran.code, ran.stdout) == (1, "")
    assert "0 rows; 1 lane of the log waits, and not all of it was read: LOG_FILE_DAMAGED (`maia status`)" in ran.stderr


def test_following_into_a_file_goes_on_where_it_ended(maia: Program, tmp_path: Path) -> None:
    """Stopped and started again, every event stands there once; a half-written line is cut off."""
    from threading import Timer

    home, out = Home.open(maia.home), tmp_path / "out.jsonl"
    flags = ("subscribe", "--type", TYPE, "--as", "doctor", "--json", "--follow", "--out", str(out))

    def follow_until(patient: str) -> None:
        def stop() -> None:
            for _ in range(200):
                if out.exists() and patient in out.read_text():
                    break
                time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

        Timer(1, stop).start()
        ran = maia(*flags)
        assert ran.code == 130, ran.stderr

    publish_here(home, "p", ["Ada"])
    follow_until("Ada")
    with out.open("a") as file:
        file.write('{"patient": "torn')
    publish_here(home, "q", ["Ben"])
    follow_until("Ben")
    assert [json.loads(line)["patient"] for line in out.read_text().splitlines()] == ["Ada", "Ben"]
    assert out.stat().st_mode & 0o077 == 0


def test_the_delivery_job_fills_the_outbox_once(maia: Program) -> None:
    """`maia deliver --once` goes on where it ended; each client reads its own."""
    home = Home.open(maia.home)
    assert maia("deliver", "add", "ward", "--as", "doctor", "--type", TYPE).code == 0
    publish_here(home, "p", ["Ada"])
    ran = maia("deliver", "--once", "--json")
    data = json.loads(ran.stdout)
    assert (ran.code, data["events"], data["commits"], data["lag"]) == (0, {"ward": 1}, 1, 0), ran.stderr
    publish_here(home, "q", ["Ben"])
    ran = maia("deliver", "--once")
    assert (ran.code, ran.stdout) == (0, "ward: 1 event\n"), ran.stderr
    shown = maia("deliver", "show", "ward", "--as", "doctor", "--json").stdout
    assert [json.loads(line)["patient"] for line in shown.splitlines()] == ["Ada", "Ben"]


def test_follow_ends_at_its_limit_and_follows_a_compacted_and_expired_log(maia: Program) -> None:
    """A stream reads across moved files, and starts behind what has expired."""
    home = Home.open(maia.home)
    for number in range(3):
        publish_here(home, f"p{number}", [f"P{number}"])
    assert maia("log", "compact").code == 0
    assert sorted(row["patient"] for row in maia.read("doctor", "--follow", "--limit", "3")) == ["P0", "P1", "P2"]
    assert len(maia.read("doctor")) == 3
    time.sleep(2)
    assert maia("log", "expire", "--older-than", "1s", "--yes").code == 0
    publish_here(home, "p3", ["P3"])
    assert [row["patient"] for row in maia.read("doctor", "--follow", "--limit", "1")] == ["P3"]
    assert [row["patient"] for row in maia.read("doctor")] == ["P3"]


def test_interrupting_a_follower_ends_it_with_130(maia: Program, tmp_path: Path) -> None:
    """Ctrl-C stops the query; what came until then was written."""
    publish_here(Home.open(maia.home), "p", ["Ada"])
    command = [sys.executable, "-m", "maia.cli", "subscribe", "--type", TYPE, "--as", "doctor", "--json", "--follow"]
    environment = {**os.environ, "MAIA_HOME": str(maia.home)}
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment, start_new_session=True)
        try:
            for _ in range(400):
                if (tmp_path / "out").stat().st_size or process.poll() is not None:
                    break
                time.sleep(0.5)
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    assert [json.loads(line)["patient"] for line in (tmp_path / "out").read_text().splitlines()] == ["Ada"]
    assert (tmp_path / "err").read_text() == "1 row\n"
