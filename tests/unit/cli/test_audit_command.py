"""`maia audit`: rows by kind, client and time, without Spark and without values."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clinic import build

from maia.domain import audit_of, find_type
from maia.home import Home
from maia.log import AuditRow

NOW = datetime.now(UTC)


@pytest.fixture
def home(maia: Any) -> Home:
    """Give the clinic with an audit of three days."""
    made = build(maia)
    type_id = find_type(made, "clinic.Result").type_id.hex()
    for days, kind, who, code in (
        (20, "publish", "lab", "OK"),
        (10, "deliver", "doctor", "OK"),
        (0, "refuse", "doctor", "NO_EVIDENCE"),
    ):
        row = AuditRow(
            at=NOW - timedelta(days=days), kind=kind, principal=made.key(who).fingerprint, type_id=type_id,
            source=f"{kind}-source", subject=who, code=code, events=days, clauses=("ab",),
        )  # fmt: skip
        audit_of(made).note([row])
    return made


CHOICES: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "all of it": ((), ["publish", "deliver", "refuse"]),
    "one kind": (("--kind", "refuse"), ["refuse"]),
    "two kinds": (("--kind", "refuse", "--kind", "publish"), ["publish", "refuse"]),
    "one client": (("--as", "doctor"), ["deliver", "refuse"]),
    "from an age on": (("--since", "15d"), ["deliver", "refuse"]),
    "from a day on": (("--since", (NOW - timedelta(days=2)).date().isoformat()), ["refuse"]),
    "the newest": (("--limit", "1"), ["refuse"]),
}


@pytest.mark.parametrize("flags, kinds", CHOICES.values(), ids=CHOICES)
def test_audit_shows_what_was_asked_for(maia: Any, home: Home, flags: tuple[str, ...], kinds: list[str]) -> None:
    """Rows come in the order of time."""
    assert [row["kind"] for row in maia("audit", *flags, "--json").data["rows"]] == kinds


def test_audit_names_keys_and_types_for_people(maia: Any, home: Home) -> None:
    """The table says `doctor` and the type's name, not hashes."""
    ran = maia("audit")
    assert ran.code == 0
    assert "doctor" in ran.out
    assert "clinic.Result" in ran.out
    assert "NO_EVIDENCE" in ran.out


def test_a_torn_audit_file_is_named_and_left_out(maia: Any, home: Home) -> None:
    """What a killed task left, in a file of a former audit or in a line, does not hide the rest, and is not hidden."""
    day = home.audit_path / f"date={NOW.date().isoformat()}"
    day.mkdir()
    (day / "torn.parquet").write_bytes(b"PAR1")
    [file] = home.audit_path.glob("journal/*.jsonl")
    file.write_bytes(file.read_bytes() + b"{}\n")
    ran = maia("audit", "--json")
    assert len(ran.data["rows"]) == 3
    assert "torn.parquet" in ran.err
    assert "line 5" in ran.err


def test_an_intent_stands_beside_its_result_and_verify_finds_what_is_missing(maia: Any, home: Home) -> None:
    """Exit code 0 while the chain is whole, 4 when it is not, and the code says what was done to it."""
    row = AuditRow(
        at=NOW, kind="intent", principal=home.key("doctor").fingerprint, type_id="aa", source="2 commits",
        subject="doctor", code="READ", events=4, attributes=("ward",), filter="ward = 'A'", plan="ab",
    )  # fmt: skip
    number = audit_of(home).begin(row)
    shown = maia("audit", "--kind", "intent", "--kind", "result", "--json").data["rows"]
    assert [(item["kind"], item["reason"], item["operation"]) for item in shown] == [
        ("intent", "READ", number), ("result", "RUNNING", number),
    ]  # fmt: skip
    assert (shown[0]["attributes"], shown[0]["filter"], shown[0]["plan"]) == (["ward"], "ward = 'A'", "ab")
    ran = maia("audit", "verify", "--json")
    assert (ran.code, ran.data["sound"], ran.data["running"]) == (0, True, [number])
    assert "the chain is whole" in maia("audit", "verify").out
    [file] = home.audit_path.glob("journal/*.jsonl")
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    ran = maia("audit", "verify", "--json")
    assert ran.code == 4
    assert [item["code"] for item in ran.data["breaks"]] == ["AUDIT_TRUNCATED"]
    assert "AUDIT_TRUNCATED" in maia("audit", "verify").out


def test_audit_of_nobody_and_no_instant_are_refused(maia: Any, home: Home) -> None:
    """An unknown client is not found; a wrong instant is a wrong call."""
    assert maia("audit", "--as", "nobody").code == 5
    assert maia("audit", "--since", "yesterday").code == 2
    assert "no such rows" in maia("audit", "--kind", "expire").err
    assert maia("audit", "--kind", "nothing").code == 2
