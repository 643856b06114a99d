"""The audit: an intent before the first row, a result whatever happens, and a chain that shows what was done to it.

All through doors: `import maia`, `format("maia")`, the `maia` command, and processes that are killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import environment
from pyspark.errors import PySparkException

import maia
from maia.errors import DeniedError, MaiaError, RowsRefusedError
from maia.testing import TYPE_NAME, Command, NumberplateHomes, numberplate_homes

SCHEMA = pa.schema(
    [("numberplate", pa.string()), ("timestamp", pa.timestamp("us", tz="UTC")), ("location", pa.string())]
)


TOO_LARGE = "x" * (10 << 20)


def sightings(*plates: str) -> pa.Table:
    """Make rows of the camera's."""
    return pa.Table.from_pylist([{"numberplate": plate, "location": "Euston"} for plate in plates], schema=SCHEMA)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> NumberplateHomes:
    """Build the homes once."""
    return numberplate_homes(tmp_path_factory.mktemp("audit"))


@pytest.fixture
def world(spark: Any, made: NumberplateHomes) -> NumberplateHomes:
    """Give the homes, with two publications in the log."""
    if not (made.ccs / "audit").exists():
        camera = maia.open(made.ccs).client("CCTV")
        camera.publish(sightings("AE05 XYZ", "BX51 ABC"), TYPE_NAME, publication="first")
        camera.publish(sightings("CD02 DEF"), TYPE_NAME, publication="second")
    return made


def rows(home: Path, *flags: str) -> list[dict[str, Any]]:
    """Ask `maia audit`."""
    found: list[dict[str, Any]] = Command(home).do("audit", *flags)["rows"]
    return found


def newest(home: Path, kind: str, client: str) -> dict[str, Any]:
    """Give the newest row of a kind and a client."""
    return rows(home, "--kind", kind, "--as", client)[-1]


def options(world: NumberplateHomes, client: str) -> dict[str, str]:
    """Give the options of `format("maia")`."""
    return {"home": str(world.ccs), "type": TYPE_NAME, "as": client}


def test_a_read_says_what_it_is_going_to_read_and_what_became_of_it(spark: Any, world: NumberplateHomes) -> None:
    """Who, by which key and certificates, which attributes, by which filter and plan; and how many rows in the end."""
    frame = spark.read.format("maia").options(**options(world, "BO"), where="numberplate = 'CD02 DEF'").load()
    assert frame.count() == 1
    intent = newest(world.ccs, "intent", "BO")
    key = maia.open(world.ccs).client("BO").key
    assert (intent["principal"], intent["subject"], intent["reason"]) == (key.fingerprint, "BO", "READ")
    assert (intent["events"], intent["filter"]) == (3, "numberplate = ?")
    assert intent["certificates"]
    assert "location" in intent["closed"]
    assert len(intent["plan"]) == 64
    results = [item for item in rows(world.ccs, "--kind", "result") if item["operation"] == intent["operation"]]
    assert {item["reason"] for item in results} == {"OK"}
    assert sum(item["events"] for item in results) == 1
    assert Command(world.ccs).do("audit", "verify")["sound"]


def test_one_row_is_enough_for_a_trace(world: NumberplateHomes) -> None:
    """`take(1)` shows a row and reads no further: the intent stands there all the same."""
    before = newest(world.ccs, "intent", "CCTV")["operation"]
    assert len(maia.open(world.ccs).client("BO").read(TYPE_NAME).take(1)) == 1
    intent = newest(world.ccs, "intent", "BO")
    assert intent["operation"] > before
    told = [item for item in rows(world.ccs, "--kind", "result") if item["operation"] == intent["operation"]]
    assert {item["reason"] for item in told} <= {"OK", "STOPPED", "RUNNING"}


DYING = """
import sys, maia
frame = maia.open(sys.argv[1]).client("BO").read(sys.argv[2])
for row in frame.toLocalIterator():
    print("a row", flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.fault("F03")
def test_a_reader_that_dies_half_way_leaves_its_intent(world: NumberplateHomes) -> None:
    """It got a row of the first part and is killed with -9, Spark and all: the next look says that it is unfinished."""
    with subprocess.Popen(
        [sys.executable, "-c", DYING, str(world.ccs), TYPE_NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=environment(), start_new_session=True,
    ) as reader:  # fmt: skip
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"a row\n"
        running = newest(world.ccs, "intent", "BO")
        os.killpg(reader.pid, signal.SIGKILL)
    while "RUNNING" in (told := _results(world.ccs, running["operation"])):  # until the system has put an end to it
        time.sleep(0.1)
    assert "UNFINISHED" in told
    assert running["operation"] in Command(world.ccs).do("audit", "verify")["unfinished"]
    kept = maia.open(world.ccs).audit().where(f"operation = {running['operation']} and code = 'UNFINISHED'")
    assert kept.count() == 1


def test_what_is_published_or_fails_has_its_result(spark: Any, world: NumberplateHomes) -> None:
    """Counted when it counts; by its code when nothing is published, whether Maia says no or a task falls over."""
    camera = maia.open(world.ccs).client("CCTV")
    camera.publish(sightings("EF03 GHI", TOO_LARGE), TYPE_NAME, publication="third")
    with pytest.raises(DeniedError, match="ROWS_REFUSED"):
        camera.publish(sightings("GH04 JKL", TOO_LARGE), TYPE_NAME, publication="strict", strict=True)
    broken = spark.range(1).selectExpr(  # in a task: rows at hand would be looked at before anything is planned
        "assert_true(id < 0, 'fell over') is null as bad", "'GH04 JKL' as numberplate",
        "current_timestamp() as timestamp", "'Victoria' as location",
    )  # fmt: skip
    with pytest.raises(MaiaError, match="SPARK_FAILED"):
        camera.publish(broken.where("bad").drop("bad"), TYPE_NAME, publication="broken")
    writer = broken.where("bad").drop("bad").write.format("maia").mode("append")
    with pytest.raises(PySparkException, match="fell over"):
        writer.options(**options(world, "CCTV"), publication="by spark").save()
    told = {item["what"]: item for item in _operations(world.ccs) if item["who"] == "CCTV"}
    assert (told["third"]["result"], told["third"]["events"]) == ("OK", 1)
    assert told["strict"]["result"] == "ROWS_REFUSED"
    assert told["broken"]["result"] == "SPARK_FAILED"
    assert told["by spark"]["result"] == "ABORTED"


def test_every_micro_batch_has_its_intent_and_its_result(spark: Any, world: NumberplateHomes, tmp_path: Path) -> None:
    """A stream that reads and one that publishes, and the delivery job."""
    before = len(_operations(world.ccs))
    frame = maia.open(world.ccs).client("BO").subscribe(TYPE_NAME)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "place"))
    writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    pq.write_table(sightings("ST01 REA"), tmp_path / "in.parquet")
    (tmp_path / "in").mkdir()
    (tmp_path / "in.parquet").rename(tmp_path / "in" / "a.parquet")
    schema = spark.read.parquet(str(tmp_path / "in")).schema
    stream = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    sink = stream.writeStream.format("maia").options(**options(world, "CCTV"), publication="stream")
    sink.option("checkpointLocation", str(tmp_path / "sink")).trigger(availableNow=True).start().awaitTermination()
    command = Command(world.ccs)
    command.do("deliver", "add", "billing", "--as", "BO", "--type", TYPE_NAME)
    command.do("deliver", "--once")
    assert command("deliver", "show", "billing", "--as", "BO", "--json").code == 0
    found = _operations(world.ccs)[before:]
    assert {item["result"] for item in found} == {"OK"}
    assert {(item["doing"], item["who"]) for item in found} == {
        ("READ", "BO"), ("PUBLISH", "CCTV"), ("DELIVER", "1 subscriptions"),
    }  # fmt: skip
    outbox = [item["what"] for item in found if item["what"].startswith("outbox")]
    assert outbox == ["outbox batch 0", "outbox of billing"]


def test_refusals_are_in_the_audit(world: NumberplateHomes) -> None:
    """Who has no right, and who filters by what is closed to him, at every door."""
    domain = maia.open(world.ccs)
    with pytest.raises(MaiaError, match="NOT_PERMITTED"):
        domain.client("BO").publish(sightings("AE05 XYZ"), TYPE_NAME)
    assert newest(world.ccs, "refuse", "BO")["reason"] == "NOT_PERMITTED"
    with pytest.raises(MaiaError, match="FILTER_NOT_AUTHORISED"):
        domain.client("SO").read(TYPE_NAME, where="numberplate = 'AE05 XYZ'")
    assert newest(world.ccs, "refuse", "SO")["reason"] == "FILTER_NOT_AUTHORISED"
    before = len(rows(world.ccs, "--kind", "refuse", "--as", "CCTV"))
    assert Command(world.ccs).refused("subscribe", "--type", TYPE_NAME, "--as", "CCTV")[0] == 3
    assert len(rows(world.ccs, "--kind", "refuse", "--as", "CCTV")) == before + 1


def _file(home: Path) -> Path:
    [found] = (home / "audit" / "journal").glob("*.jsonl")
    return found


def _lines(home: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    file = _file(home)
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))


def _fork(home: Path) -> None:
    """Put an entry of the same number there that the broker signed as well, in a copy of the home that went on."""
    copy = home.with_name("copied")
    shutil.copytree(home, copy)
    for place, client in ((home, "CCTV"), (home, "CCTV"), (copy, "SO")):
        Command(place).refused("subscribe", "--type", TYPE_NAME, "--as", client, "--where", "numberplate = 'AE05 XYZ'")
    other = _file(copy).read_bytes().splitlines(keepends=True)[-1]
    shutil.rmtree(copy)
    _lines(home, lambda lines: [*lines[:-2], other, lines[-1]])


TAMPERED: dict[str, tuple[Callable[[Path], object], str]] = {
    "an entry is edited": (
        lambda home: _file(home).write_bytes(_file(home).read_bytes().replace(b"NOT_PERMITTED", b"ALL_PERMITTED", 1)),
        "AUDIT_SIGNATURE",
    ),
    "an entry is removed": (lambda home: _lines(home, lambda lines: lines[:2] + lines[3:]), "AUDIT_GAP"),
    "entries are exchanged": (
        lambda home: _lines(home, lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]]), "AUDIT_ORDER",
    ),
    "an entry is exchanged for another one of the broker's": (_fork, "AUDIT_CHAIN"),
    "the newest entry is cut off": (lambda home: _lines(home, lambda lines: lines[:-1]), "AUDIT_TRUNCATED"),
    "the audit is removed": (lambda home: shutil.rmtree(home / "audit"), "AUDIT_TRUNCATED"),
    "others may read it": (lambda home: _file(home).chmod(0o644), "AUDIT_MODE"),
}  # fmt: skip


@pytest.mark.threat("T70")
@pytest.mark.parametrize("tamper, code", TAMPERED.values(), ids=TAMPERED)
def test_what_is_done_to_the_audit_is_found(
    made: NumberplateHomes, tmp_path: Path, tamper: Callable[[Path], object], code: str
) -> None:
    """`maia audit verify` ends with 4 and names it; the same again after the home went on."""
    home = tmp_path / "ccs"
    shutil.copytree(made.ccs, home, ignore=shutil.ignore_patterns("audit*"))
    command = Command(home)
    for client in ("CCTV", "Smith", "CCTV"):
        command("subscribe", "--type", TYPE_NAME, "--as", client)
    for _ in range(3):
        command("subscribe", "--type", TYPE_NAME, "--as", "CCTV")
    assert command.do("audit", "verify")["sound"]
    tamper(home)
    ran = command("audit", "verify", "--json")
    assert ran.code == 4
    assert code in {item["code"] for item in ran.data["breaks"]}
    if code != "AUDIT_MODE":  # which the next entry mends
        command("subscribe", "--type", TYPE_NAME, "--as", "CCTV")
        assert command("audit", "verify", "--json").code == 4


@pytest.mark.fault("F08")
def test_a_line_that_a_crash_tore_is_put_aside_and_told(made: NumberplateHomes, tmp_path: Path) -> None:
    """The next entry mends it, says so, and the audit is whole."""
    home = tmp_path / "ccs"
    shutil.copytree(made.ccs, home, ignore=shutil.ignore_patterns("audit*"))
    command = Command(home)
    command("subscribe", "--type", TYPE_NAME, "--as", "CCTV")
    _file(home).write_bytes(_file(home).read_bytes() + b'{"at":"2026-11-1')
    ran = command("subscribe", "--type", TYPE_NAME, "--as", "CCTV")
    assert "AUDIT_TORN" in ran.err
    assert [item["reason"] for item in rows(home, "--kind", "alarm")] == ["AUDIT_TORN"]
    assert command.do("audit", "verify")["sound"]
    assert len(list((home / "audit" / "journal").glob("torn-*"))) == 1


def test_the_audit_is_its_owners_alone(world: NumberplateHomes) -> None:
    """Folders 0700 and files 0600, the dead letters of publishers as well."""
    with pytest.raises(RowsRefusedError):
        maia.open(world.ccs).client("CCTV").publish(sightings(TOO_LARGE), TYPE_NAME, publication="letters")
    for folder in (world.ccs / "audit", world.ccs / "refused"):
        for path in [folder, *folder.rglob("*")]:
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
    assert (world.ccs / "audit-head").stat().st_mode & 0o777 == 0o600


def test_a_former_audit_is_in_the_table_and_watched(spark: Any, made: NumberplateHomes, tmp_path: Path) -> None:
    """Rows that an audit without a journal left are read as they are; who changes them later is found."""
    home = tmp_path / "ccs"
    shutil.copytree(made.ccs, home, ignore=shutil.ignore_patterns("audit*"))
    day = home / "audit" / "date=2026-06-01"
    day.mkdir(parents=True)
    texts = dict.fromkeys(("principal", "type_id", "source", "subject", "code"), "old")
    old = {**texts, "at": pa.scalar(0, pa.timestamp("us", tz="UTC")).as_py(), "kind": "deliver", "events": 7}
    fields = [("at", pa.timestamp("us", tz="UTC")), *((name, pa.string()) for name in ("kind", *texts))]
    schema = pa.schema([*fields, ("events", pa.int64()), ("clauses", pa.list_(pa.string()))])
    pq.write_table(pa.Table.from_pylist([{**old, "clauses": []}], schema=schema), day / "a.parquet")
    command = Command(home)
    command("subscribe", "--type", TYPE_NAME, "--as", "CCTV")
    found = {(row["kind"], row["events"]) for row in maia.open(home).audit().collect()}
    assert {("deliver", 7), ("refuse", 0)} <= found
    assert (command.do("audit", "verify")["earlier"], (day / "a.parquet").stat().st_mode & 0o777) == (1, 0o600)
    (day / "a.parquet").unlink()
    assert [item["code"] for item in command("audit", "verify", "--json").data["breaks"]] == ["AUDIT_EARLIER"]


def _results(home: Path, operation: int) -> set[str]:
    """Give the codes of an operation's results."""
    return {item["reason"] for item in rows(home, "--kind", "result") if item["operation"] == operation}


def _operations(home: Path) -> list[dict[str, Any]]:
    """Put intents and results together."""
    found: dict[int, dict[str, Any]] = {}
    for row in rows(home, "--kind", "intent", "--kind", "result"):
        if row["kind"] == "intent":
            found[row["operation"]] = {
                "who": row["subject"], "doing": row["reason"], "what": row["source"], "events": 0, "result": "",
            }  # fmt: skip
        else:
            item = found[row["operation"]]
            item["events"] += row["events"]
            item["result"] = row["reason"] if item["result"] in ("", "OK") else item["result"]
    return [found[number] for number in sorted(found)]
