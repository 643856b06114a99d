"""Releases and labels: whoever releases reads as everywhere, so what may not flow to it does not leave either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pathology_world import label
from release_world import REPORT, RESEARCH, STUDY, TYPE, Hospital, report

SECRET = f"""
[types."{TYPE}"]
patient-ID = {{ S = ["identifiable"] }}
hospital-ID = {{ S = ["clinical(patient-ID)"] }}
"""
EVERYTHING = "".join(f'{name} = {{ S = ["closed"] }}\n' for name in REPORT)


@pytest.fixture
def hospital(tmp_path: Path) -> Hospital:
    """Build a hospital with the reports of two patients."""
    made = Hospital(tmp_path / "home")
    made.rules(RESEARCH)
    made.publish(REPORT, report(patient_ID="999", hospital_ID="RGT02"))
    made.define("pharmacy")
    made.define(STUDY)
    return made


def left(made: Hospital, to: str, file: Path) -> tuple[list[str], list[dict[str, object]]]:
    """Release to a file; say what was withheld, and what left."""
    (done,) = made.apply(to, "--out", str(file))
    return done["withheld"], [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_what_may_not_flow_to_the_releaser_does_not_leave(hospital: Hospital, tmp_path: Path) -> None:
    """The label policy closes the patient to the registrar: no pseudonym is made of it, and the ledger says so."""
    label(hospital.maia, SECRET)
    withheld, rows = left(hospital, STUDY, tmp_path / "study.jsonl")
    assert withheld == ["hospital-ID", "anonymised-ID"]
    assert [(row["hospital-ID"], row["anonymised-ID"], row["sample-receipt-date"]) for row in rows] == [
        (None, None, "2010-02")
    ] * 2


def test_a_carrier_opens_for_a_release_the_rows_that_it_opens_for_a_read(hospital: Hospital, tmp_path: Path) -> None:
    """The registrar has the tags of one patient: of the other one's row the attribute leaves empty."""
    label(hospital.maia, f'{SECRET}[readers.registrar]\nS = ["identifiable", "clinical(999)"]\n')
    withheld, rows = left(hospital, "pharmacy", tmp_path / "pharmacy.jsonl")
    assert withheld == []
    assert sorted(str(row["hospital-ID"]) for row in rows) == ["None", "RGT02"]
    assert sorted(str(row["hospital-ID"]) for row in hospital.read(TYPE, as_="registrar")) == ["None", "RGT02"]


@pytest.mark.parametrize(("policy", "code"), [
    (f'[types."{TYPE}"]\n{EVERYTHING}', "LABELS_CLOSE_ALL"),
    ("[types.nothing]\n", "LABELS_UNKNOWN"),
    ("[", "LABELS_UNKNOWN"),
])  # fmt: skip
def test_where_nothing_may_flow_or_nobody_knows_no_release_begins(hospital: Hospital, policy: str, code: str) -> None:
    """A type that is closed as a whole, or a policy that cannot be understood: refused, and the ledger has nothing."""
    label(hospital.maia, policy)
    for word in ("apply", "preview"):
        found = hospital.maia.refused("release", word, "--type", TYPE, "--to", "pharmacy", "--as", "registrar")
        assert found[1] == code
    assert hospital.maia.do("release", "list")["releases"] == []
    label(hospital.maia, "")
    (done,) = hospital.apply("pharmacy")
    assert (done["rows"], done["withheld"]) == (2, [])


def test_a_preview_shows_no_more_than_a_release_would(hospital: Hospital) -> None:
    """Sample rows are read as the client may read them."""
    label(hospital.maia, SECRET)
    asked = ("release", "preview", "--type", TYPE, "--to", "pharmacy", "--as", "registrar")
    (shown,) = hospital.maia.do(*asked)["previews"]
    assert [(row["patient-ID"], row["hospital-ID"]) for row in shown["before"]] == [(None, None)] * 2
    assert [row["hospital-ID"] for row in shown["after"]] == [None, None]
