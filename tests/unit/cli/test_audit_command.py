"""`maia audit`: rows by kind, client and time, without Spark and without values."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clinic import build

from maia.domain import find_type
from maia.home import Home
from maia.log import AuditRow, write_audit

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
        write_audit(made.path / "audit", [row])
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
    """What a killed task left does not hide the rest, and is not hidden either."""
    [day] = (home.path / "audit").glob(f"date={NOW.date().isoformat()}")
    (day / "torn.parquet").write_bytes(b"PAR1")
    ran = maia("audit", "--json")
    assert len(ran.data["rows"]) == 3
    assert "torn.parquet" in ran.err


def test_audit_of_nobody_and_no_instant_are_refused(maia: Any, home: Home) -> None:
    """An unknown client is not found; a wrong instant is a wrong call."""
    assert maia("audit", "--as", "nobody").code == 5
    assert maia("audit", "--since", "yesterday").code == 2
    assert "no such rows" in maia("audit", "--kind", "expire").err
    assert maia("audit", "--kind", "nothing").code == 2
