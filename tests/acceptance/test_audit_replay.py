"""What the audit says was decided is decided again offline, to the same answer; or it says why it cannot be."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import maia
from maia.errors import MaiaError
from maia.testing import Command, deliver_here, read_here, record_here

TYPE = "owner/clinic.Result"
ROWS = [{"ward": "A", "name": "Patterson", "text": "well"}, {"ward": "B", "name": "Osborne", "text": "ill"}]
BOUNDED = "ward = 'B'"
_ON = ("--type", TYPE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a clinic and a mixed run: reads by several clients, publications, refusals, and a revocation between."""
    folder = tmp_path_factory.mktemp("replay")
    clinic = Command(folder / "clinic")
    clinic.do("domain", "init", str(clinic.home), "--name", "clinic")
    clinic.keys("owner", "doctor", "nurse", "clerk", "lab", "visitor")
    shapes = [word for name in ("ward", "name", "text") for word in ("--attribute", f"{name}:string")]
    clinic.do("type", "define", f"{TYPE}@1", *shapes)
    for who, action in (("broker", "subscribe"), ("broker", "publish"), ("lab", "publish")):
        clinic.grant("--from", "owner", "--to", who, *_ON, "--action", action, "--irrevocable")
    read = ("--from", "owner", *_ON, "--action", "subscribe")
    ends = clinic.grant(*read, "--to", "nurse", "--attribute", "ward='A'", "--attribute", "name")
    clinic.grant(*read, "--to", "doctor", "--irrevocable")
    assert publishing(clinic, folder, "lab") == 0
    assert [look(clinic, who) for who in ("doctor", "nurse")] == ["OK", "OK"]
    assert [look(clinic, who) for who in ("visitor", "clerk")] == ["NO_EVIDENCE", "NO_EVIDENCE"]
    assert look(clinic, "nurse", "name = 'Patterson'") == "OK"
    assert look(clinic, "nurse", "text = 'well'") == "FILTER_NOT_AUTHORISED"
    clinic.do("deliver", "add", "round", "--as", "doctor", *_ON)
    clinic.do("revoke", ends, "--yes")
    assert look(clinic, "nurse") == "REVOKED"
    clinic.grant(*read, "--to", "clerk", "--attribute", "text", "--irrevocable")
    assert look(clinic, "clerk") == "OK"
    assert publishing(clinic, folder, "lab") == 0
    assert publishing(clinic, folder, "clerk") != 0
    deliver_here(maia.open(clinic.home).home)
    assert look(clinic, "doctor") == "OK"
    return folder


@pytest.fixture
def clinic(made: Path, tmp_path: Path) -> Command:
    """Give the clinic."""
    shutil.copytree(made / "clinic", tmp_path / "clinic", symlinks=True)
    return Command(tmp_path / "clinic")


def look(home: Command, who: str, where: str = "") -> str:
    """Read as a client; tell how it ended."""
    try:
        read_here(maia.open(home.home).home, TYPE, as_=who, where=where)
    except MaiaError as error:
        return error.code
    return "OK"


def publishing(home: Command, folder: Path, who: str) -> int:
    """Publish as a client; tell how it ended."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return home("publish", str(path), *_ON, "--as", who).code


def replayed(home: Command, *more: str) -> dict[str, Any]:
    """Decide again."""
    ran = home("audit", "replay", *more, "--json")
    return {**ran.data, "exit": ran.code}


def entries(home: Command) -> list[bytes]:
    """Give the lines of the journal."""
    files = sorted((home.home / "audit" / "journal").glob("*.jsonl"))
    return b"".join(path.read_bytes() for path in files).splitlines(keepends=True)


def write(home: Command, lines: list[bytes]) -> None:
    """Write the journal."""
    [path] = sorted((home.home / "audit" / "journal").glob("*.jsonl"))
    path.write_bytes(b"".join(lines))


def test_every_decision_of_a_mixed_run_gives_the_same_answer(clinic: Command, tmp_path: Path) -> None:
    """Granted and refused, before and after a revocation, read, published and delivered: all of them, offline."""
    found = replayed(clinic)
    assert (found["exit"], found["differs"], found["cannot"], found["complete"]) == (0, 0, 0, True)
    answers = {(item["kind"], item["action"], item["answer"] == "OK") for item in found["decisions"]}
    assert {
        ("intent", "subscribe", True), ("intent", "publish", True), ("deliver", "subscribe", True),
        ("refuse", "subscribe", False), ("refuse", "publish", False), ("subscribe", "subscribe", True),
        ("advertise", "publish", True),
    } <= answers  # fmt: skip
    told = {(row["subject"], row["reason"]) for row in clinic.do("audit", "--kind", "intent")["rows"]}
    assert {("doctor", "READ"), ("nurse", "READ"), ("clerk", "READ"), ("lab", "PUBLISH")} <= told
    states = {item["state"] for item in found["decisions"]}
    assert len(states) >= 3  # before the revocation, after it, and after the last grant
    assert all(item["engine"] == maia.__version__ for item in found["decisions"])
    assert any(item["epoch"] for item in found["decisions"] if item["answer"] == "OK")
    # Also when everything that decided has gone from the home since: the record holds it.
    shutil.rmtree(clinic.home / "certificates")
    shutil.rmtree(clinic.home / "types")
    shutil.rmtree(clinic.home / "log")
    (clinic.home / "statements").unlink()
    again = replayed(clinic)
    assert (again["exit"], again["same"], again["complete"]) == (0, found["same"], True)
    assert maia.open(clinic.home).replay().complete


def test_no_value_is_in_the_record_and_a_filter_that_decides_has_to_be_shown(clinic: Command, tmp_path: Path) -> None:
    """Of a filter there are attributes and a salted digest; one that a right bounds is decided by when it is shown."""
    everything = b"".join(path.read_bytes() for path in (clinic.home / "audit").rglob("*") if path.is_file())
    for value in (b"Patterson", b"Osborne", b"well"):
        assert value not in everything
    bounds = ("--bound", f"upper ({BOUNDED})")
    clinic.grant("--from", "owner", "--to", "visitor", *_ON, "--action", "subscribe", *bounds, "--irrevocable")
    assert look(clinic, "visitor", BOUNDED) == "OK"
    assert look(clinic, "visitor", "ward = 'A'") == "FILTER_OUT_OF_BOUNDS"
    [granted, refused] = [item for item in replayed(clinic)["decisions"] if item["outcome"] == "cannot"]
    assert {granted["reason"], refused["reason"]} == {"REPLAY_FILTER"}
    assert replayed(clinic)["exit"] == 0  # nothing is wrong
    assert replayed(clinic)["complete"] is False
    assert replayed(clinic, str(granted["entry"]))["exit"] == 4  # whoever asks for it is told
    assert replayed(clinic, str(granted["entry"]), "--where", BOUNDED)["same"] == 1
    assert replayed(clinic, str(refused["entry"]), "--where", "ward = 'A'")["same"] == 1
    # Another filter than the one of then is no answer, whichever way it would have been decided.
    assert replayed(clinic, str(granted["entry"]), "--where", "ward = 'A'")["cannot"] == 1


def changed(lines: list[bytes], old: bytes, new: bytes) -> list[bytes]:
    """Change the first entry in which something stands."""
    at = next(place for place, line in enumerate(lines) if old in line)
    return [*lines[:at], lines[at].replace(old, new, 1), *lines[at + 1 :]]


FORGED: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "a refusal is made another one": (lambda lines: changed(lines, b"NO_EVIDENCE", b"NO_EVIDENCES"), "AUDIT_SIGNATURE"),
    "another client read": (
        lambda lines: changed(lines, b'"subject":"nurse"', b'"subject":"clerk"'),
        "AUDIT_SIGNATURE",
    ),
    "an entry is dropped": (lambda lines: lines[:3] + lines[4:], "AUDIT_GAP"),
    "the end is cut off": (lambda lines: lines[:-2], "AUDIT_TRUNCATED"),
}


@pytest.mark.threat("T70")
@pytest.mark.parametrize("forge, code", FORGED.values(), ids=FORGED)
def test_an_edited_record_is_refused(clinic: Command, forge: Callable[[list[bytes]], list[bytes]], code: str) -> None:
    """What the broker did not sign is no record, whatever it would be decided to."""
    write(clinic, forge(entries(clinic)))
    assert clinic.refused("audit", "replay") == (4, code)


@pytest.mark.threat("T70")
def test_what_decided_is_named_by_its_digest(clinic: Command) -> None:
    """A state that is changed or missing refuses the decisions that stood on it, and no others."""
    whole = replayed(clinic)
    name = whole["decisions"][-1]["state"]
    path = clinic.home / "audit" / "evidence" / f"{name}.json"
    assert path.stat().st_mode & 0o777 == 0o600
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"drop":[', b'"drop":["x"' + (b"," if b'"drop":["' in data else b""), 1))
    found = replayed(clinic)
    assert (found["exit"], {item["reason"] for item in found["decisions"]}) == (4, {"OK", "EVIDENCE_CHANGED"})
    path.unlink()
    found = replayed(clinic)
    assert (found["exit"], {item["reason"] for item in found["decisions"]}) == (4, {"OK", "EVIDENCE_MISSING"})
    assert found["same"] + found["cannot"] == whole["same"]


@pytest.mark.threat("T70")
def test_an_answer_that_is_another_one_has_an_exit_code_of_its_own(clinic: Command) -> None:
    """A broker that wrote down what its rights do not give is found: by its own record, decided again."""
    found = replayed(clinic)["decisions"]
    early = next(item for item in found if item["subject"] == "clerk" and item["answer"] != "OK")
    late = next(item for item in found if item["subject"] == "clerk" and item["answer"] == "OK")
    rows = clinic.do("audit", "--kind", "intent", "--as", "clerk")["rows"]
    decision = next(row["decision"] for row in rows if late["state"] in row["decision"])
    # It says that it granted a read, by a state in which the right was not there yet.
    lie = decision.replace(late["state"], early["state"])
    record_here(maia.open(clinic.home).home, subject="clerk", decision=lie)
    again = replayed(clinic)
    assert (again["exit"], again["differs"]) == (6, 1)
    [wrong] = [item for item in again["decisions"] if item["outcome"] == "differs"]
    assert wrong["reason"] == "REPLAY_DIFFERS"
    assert "NO_EVIDENCE" in wrong["why"] or "NOT_PERMITTED" in wrong["why"]


def test_an_auditor_gets_decisions_with_proofs_and_decides_them_again(clinic: Command, tmp_path: Path) -> None:
    """A table, a checkpoint and a proof of each entry, for their owner's eyes; checked with the broker's key alone."""
    lines, table = tmp_path / "lines", tmp_path / "table"
    told = clinic.do("audit", "export", str(lines), "--evidence")
    clinic.do("audit", "export", str(table), "--format", "parquet")
    rows = [json.loads(line) for line in (lines / "decisions.jsonl").read_text().splitlines()]
    assert len(rows) == told["rows"] == replayed(clinic)["same"]
    read = pq.read_table(table / "decisions.parquet").to_pylist()
    assert [(row["entry"], row["decision"]) for row in read] == [(row["entry"], row["decision"]) for row in rows]
    assert not (table / "evidence").exists()  # what decided goes along only when that is asked for
    for path in (lines, *lines.rglob("*"), table, *table.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0
    auditor = Command(tmp_path / "auditor")
    auditor.keys("me")
    shutil.copy(clinic.home / "keys" / "broker.pub", auditor.home / "keys" / "clinic.pub")
    shutil.rmtree(clinic.home)
    proofs = sorted((lines / "proofs").glob("*.tlog-proof"))
    assert {int(path.stem.split(".")[0]) for path in proofs} == {row["entry"] for row in rows}
    for path in proofs:
        assert auditor.do("audit", "check-proof", str(path), "--key", "clinic")["proves"] == "entry"
    found = replayed(auditor, "--from", str(lines), "--key", "clinic")
    assert (found["exit"], found["complete"], found["same"]) == (0, True, len(rows))
    # Another broker's key, an entry that was changed, and a folder that holds something are refused.
    assert auditor.refused("audit", "replay", "--from", str(lines), "--key", "me") == (4, "CHECKPOINT_SIGNATURE")
    swapped = (
        proofs[0].read_text().replace(proofs[0].read_text().splitlines()[1], proofs[1].read_text().splitlines()[1])
    )
    proofs[0].write_text(swapped)
    assert auditor.refused("audit", "replay", "--from", str(lines), "--key", "clinic") == (4, "AUDIT_NOT_INCLUDED")
    assert auditor.refused("audit", "export", str(lines), "--home", str(auditor.home))[0] != 0


def test_what_was_recorded_before_says_so(clinic: Command) -> None:
    """A record of a former Maia holds no decision: it cannot be made again, and nothing else is claimed."""
    number = record_here(maia.open(clinic.home).home, subject="doctor", decision="")
    found = replayed(clinic)
    assert (found["exit"], found["cannot"], found["complete"]) == (0, 1, False)
    assert replayed(clinic, str(number))["decisions"][0]["reason"] == "REPLAY_NOT_RECORDED"
    assert clinic.refused("audit", "replay", "999") == (5, "NO_SUCH_ENTRY")
    assert clinic.refused("audit", "replay", "0") == (5, "NO_DECISION")
