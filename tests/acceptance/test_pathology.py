"""`maia demo pathology`: the report of seven parts, its labels from roles, and what may leave; cell by cell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
YES, NO = True, False
# part: S, I, and whether Ali, Brown before and after referral, Chen and somebody without a role see it
TABLE = {
    "patient-ID": (["identifiable(*)"], [], (YES, NO, YES, NO, NO)),
    "patient-name": (["identifiable(*)"], [], (YES, NO, YES, NO, NO)),
    "hospital-ID": ([], [], (YES, YES, YES, YES, YES)),
    "lab-number": ([], ["pathlab"], (YES, YES, YES, YES, YES)),
    "sample-receipt-date": ([], ["pathlab"], (YES, YES, YES, YES, YES)),
    "path-report-text": (["clinical(*)"], ["pathlab"], (YES, NO, YES, YES, NO)),
    "SNOMED-CT-codes": (["clinical(*)"], ["pathlab"], (YES, NO, YES, YES, NO)),
}
CLINICAL = {"path-report-text", "SNOMED-CT-codes"}


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    """Play it once, as a user does."""
    program = "from maia.cli import main; main()"
    command = [sys.executable, "-c", program, "-q", "demo", "pathology", "--json"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=880)
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    assert not Path(found["home"]).exists()
    return found


@pytest.mark.requirement("24.12")
def test_each_reader_sees_the_parts_of_the_table(facts: dict[str, Any]) -> None:
    """Seven parts and five views, cell by cell, with the labels that the policy has for them."""
    views = ("Ali", "Brown before", "Brown after", "Chen", "no role")
    assert facts["labels"] == {part: {"S": secret, "I": vouched} for part, (secret, vouched, _) in TABLE.items()}
    assert facts["matrix"] == {part: dict(zip(views, row, strict=True)) for part, (_, _, row) in TABLE.items()}


@pytest.mark.requirement("24.12")
def test_records_of_one_person_stay_linked_and_the_laboratorys_word_is_on_four_parts(facts: dict[str, Any]) -> None:
    """Chen's study has two reports of one person and one of another, nameless; `pathlab` is on four parts."""
    ids = [row["anonymised-ID"] for row in facts["linked"]]
    assert ids == ["person A", "person A", "person B"]
    assert {frozenset(row) for row in facts["linked"]} == {
        frozenset({"hospital-ID", "SNOMED-CT-codes", "anonymised-ID"})
    }
    assert set(facts["vouched"]) == {"lab-number", "sample-receipt-date", *CLINICAL}


@pytest.mark.requirement("24.12")
def test_only_the_number_leaves_and_what_is_made_carries_its_sources(facts: dict[str, Any]) -> None:
    """The monitor's codes and its own count stay, the counter's leaves; Ali's comments carry S, and nobody's word."""
    found = facts["outcomes"]
    blocked = {what for what, outcome in found.items() if outcome == "refused FLOW"}
    assert blocked == {
        "the monitor shows codes", "the monitor shows its own count", "Ali publishes them as the laboratory's word",
        "Ali saves a text anywhere else", "texts of two patients, to Ali's folder",
    }  # fmt: skip
    assert found["the number that left"] == 2
    assert found["Ali's comments carry"] == "S: clinical(1234567768); I: -"
    assert found["Ali publishes report and comments"] == 3
    assert found["Ali saves a text in her own folder"] == "done"


@pytest.mark.requirement("24.12")
@pytest.mark.requirement("17.09")
def test_a_revoked_doctor_reads_the_earlier_reports_only(facts: dict[str, Any]) -> None:
    """The next report has the next tag of the sequence, which Brown does not hold."""
    both = {"ali": True, "brown": True}
    assert facts["revoked"] == {"A10/21367": both, "A10/21370": both, "A10/21399": {"ali": True, "brown": False}}
    assert facts["sequence"] == ["clinical(1234567768)", "clinical(1234567768)#2"]


@pytest.mark.requirement("24.12")
def test_at_home_there_are_no_clinical_parts(facts: dict[str, Any]) -> None:
    """The privilege needs a secure terminal; away from it Ali sees the other five parts."""
    assert set(facts["ali_at_home"]) == set(TABLE) - CLINICAL


def test_the_picture_is_what_was_printed(facts: dict[str, Any], script: Any) -> None:
    """Cell by cell."""
    drawn = script("pictures").draw("pathology", facts["views"])
    assert (IMAGES / "demo-pathology.svg").read_text("utf-8") == drawn, "run `python scripts/pictures.py`"
