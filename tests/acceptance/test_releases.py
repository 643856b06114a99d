"""Releases between domains: what leaves by the rules, to whom, how precisely; and what does not."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from release_world import PARTS, REPORT, RESEARCH, STUDY, TYPE, Hospital, blocks, report

import maia
from maia.errors import MaiaError
from maia.testing import Command


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the hospital once, with two reports of one patient and one of another."""
    hospital = Hospital(tmp_path_factory.mktemp("built") / "home")
    hospital.rules(RESEARCH)
    later = report(sample_receipt_date=date(2010, 3, 9), lab_number="A10/30000")
    hospital.publish(REPORT, later, report(patient_ID="999", patient_name="Jane Doe"))
    return hospital.maia.home


@pytest.fixture
def hospital(built: Path, tmp_path: Path) -> Hospital:
    """Give a copy of the hospital, which a test may change."""
    shutil.copytree(built, tmp_path / "home")
    made = Hospital.__new__(Hospital)
    made.maia = Command(tmp_path / "home")
    return made


def segments(home: Path, type_: str) -> list[Path]:
    """List the files of the log that hold events of a type."""
    name = maia.open(home).find_type(type_).type_id.hex()
    return sorted((home / "log" / f"type={name}").rglob("*.parquet"))


# ---------------------------------------------------------------- what leaves


@pytest.mark.requirement("20.01")
def test_only_what_was_agreed_is_on_the_wire(hospital: Hospital) -> None:
    """To the pharmacy two attributes leave; the others are not there, not even sealed."""
    (type_,) = hospital.define("pharmacy")
    (done,) = hospital.apply("pharmacy")
    assert (done["rows"], done["attributes"], done["target"]) == (3, ["hospital-ID", "lab-number"], type_)
    released = maia.open(hospital.maia.home).event_type(f"{TYPE}.domain.pharmacy")
    assert [item.name for item in released.attributes] == ["hospital-ID", "lab-number"]
    (segment,) = segments(hospital.maia.home, f"{TYPE}.domain.pharmacy")
    (source,) = segments(hospital.maia.home, TYPE)
    assert [blocks(path) for path in (segment, source)] == [{2}, {7}]


def test_nothing_leaves_to_whom_no_rule_names(hospital: Hospital) -> None:
    """No rule for a destination is no rows, and says so."""
    said = ("release", "apply", "--type", TYPE, "--as", "registrar", "--to")
    assert hospital.maia.refused(*said, "audit") == (3, "NO_RELEASE_RULE")
    assert hospital.maia.refused(*said, 'study("pharmacy")') == (3, "NO_RELEASE_RULE")
    assert hospital.maia.do("release", "list")["releases"] == []


@pytest.mark.requirement("20.02")
def test_precision_is_lowered(hospital: Hospital, tmp_path: Path) -> None:
    """A date to its month or year, a place to a grid, an age to five years, a number to its last digits."""
    hospital.maia.do(
        "type", "define", "domain/uk.nhs.visit@1", "--attribute", "day:date", "--attribute", "seen:timestamp",
        "--attribute", "location:string", "--attribute", "latitude:float", "--attribute", "age:integer",
        "--attribute", "card:string",
    )  # fmt: skip
    hospital.rules(
        "release uk.nhs.visit to registry coarsen day to month coarsen seen to year coarsen location to decimals(1)\n"
        "coarsen latitude to decimals(1) coarsen age to bucket(5) coarsen card to last(4)\n"
        "release uk.nhs.visit to audit coarsen day to year coarsen card to first(2)",
        "visits",
    )
    row = {
        "day": "2010-02-04", "seen": "2010-02-04T10:00:00Z", "location": "51.4952,-0.1439", "latitude": 51.4952,
        "age": 47, "card": "4929 1234 5678 9012",
    }  # fmt: skip
    sample = tmp_path / "sample.jsonl"
    sample.write_text(json.dumps(row) + "\n{}\n", "utf-8")
    said = ("release", "preview", "--type", "uk.nhs.visit", "--rows", str(sample), "--to")
    (seen,) = hospital.maia.do(*said, "registry")["previews"]
    after = {
        "day": "2010-02",
        "seen": "2010",
        "location": "51.5,-0.1",
        "latitude": 51.5,
        "age": "45-49",
        "card": "9012",
    }
    assert seen["before"] == [row, dict.fromkeys(row)]
    assert seen["after"] == [after, dict.fromkeys(row)]
    assert hospital.maia.do(*said, "audit")["previews"][0]["after"][0] == {"day": "2010", "card": "49"}
    shown = hospital.maia(*said, "registry").out
    assert any("2010-02-04" in line and line.rstrip().endswith("2010-02") for line in shown.splitlines())


@pytest.mark.requirement("20.03")
def test_records_of_a_person_stay_linkable_within_a_study_and_not_across(hospital: Hospital, tmp_path: Path) -> None:
    """Equal for one patient, another for another, other ones in another study; nobody finds them without the secret."""
    ids = {}
    for study in ("bladder-7", "lung-1"):
        hospital.define(f'study("{study}")')
        hospital.apply(f'study("{study}")')
        hospital.grant("chen", "subscribe", type_=f"{TYPE}.study.{study}")
        ids[study] = [row["anonymised-ID"] for row in hospital.read(f"{TYPE}.study.{study}", as_="chen")]
    (first, twice), (other, once) = Counter(ids["bladder-7"]).most_common()
    assert (twice, once) == (2, 1)
    assert len({*ids["bladder-7"], *ids["lung-1"]}) == 4
    # Later reports of the patient are linked with the earlier ones.
    hospital.publish(report(lab_number="A11/1"))
    hospital.apply(STUDY)
    assert hospital.read(f"{TYPE}.study.bladder-7", as_="chen")[-1]["anonymised-ID"] == first
    # Another hospital, which knows the rules and the patient's number, gives another id: the secret is its own.
    elsewhere = Hospital(tmp_path / "elsewhere")
    elsewhere.rules(RESEARCH)
    elsewhere.publish(REPORT)
    out = tmp_path / "out.jsonl"
    elsewhere.apply(STUDY, "--out", str(out))
    assert json.loads(out.read_text("utf-8"))["anonymised-ID"] not in {first, other}
    assert (hospital.maia.home / "releases" / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("20.04")
def test_the_anonymised_id_is_a_new_part_and_the_original_stays_closed(hospital: Hospital) -> None:
    """Chen reads anonymised-ID; patient-ID is no part of what he gets, and the report itself is closed to him."""
    hospital.define(STUDY)
    hospital.apply(STUDY)
    hospital.grant("chen", "subscribe", type_=f"{TYPE}.study.bladder-7")
    rows = hospital.read(f"{TYPE}.study.bladder-7", as_="chen")
    assert sorted(str(row["sample-receipt-date"]) for row in rows) == ["2010-02", "2010-02", "2010-03"]
    for row in rows:
        assert set(row) == {"hospital-ID", "SNOMED-CT-codes", "sample-receipt-date", "anonymised-ID"}
        assert "1234567768" not in row.values()
    with pytest.raises(MaiaError, match="NOT_PERMITTED"):
        hospital.read(TYPE, as_="chen")


RECIPIENTS = {
    "gp": set(PARTS),
    "clinician": set(PARTS),
    "pharmacy": {"patient-ID", "patient-name", "hospital-ID"},
    "audit": {"hospital-ID", "lab-number", "sample-receipt-date"},
}


@pytest.mark.requirement("20.08")
def test_completeness_differs_by_recipient(tmp_path: Path) -> None:
    """Complete for the general practitioner and the clinician, reduced for the pharmacy and the audit; cell by cell."""
    hospital = Hospital(tmp_path / "home")
    hospital.rules(
        "\n".join(f"release {TYPE} to {to} keep {', '.join(sorted(kept))}" for to, kept in RECIPIENTS.items())
    )
    hospital.publish(REPORT)
    for to, kept in RECIPIENTS.items():
        out = tmp_path / f"{to}.jsonl"
        assert [done["rows"] for done in hospital.apply(to, "--out", str(out))] == [1]
        row = json.loads(out.read_text("utf-8"))
        seen = {part: row.get(part) for part in PARTS}
        plain = {name: str(value) for name, value in REPORT.items()}
        assert seen == {part: plain[part] if part in kept else None for part in PARTS}, to
        assert set(row) == kept


# ---------------------------------------------------------------- counts


def reports_of(people: int, rows: int, code: str) -> list[dict[str, object]]:
    """Make so many reports about so many people."""
    return [report(patient_ID=f"{code}-{number % people}", SNOMED_CT_codes=code) for number in range(rows)]


COUNTS = f"release counts of {TYPE} by SNOMED-CT-codes to registry\n  at least 10 patient-ID\n"


def test_nine_people_with_thirty_rows_are_kept_back(tmp_path: Path) -> None:
    """People count, not rows; no event is counted twice for a destination, whatever the rules say later."""
    hospital = Hospital(tmp_path / "home")
    hospital.rules(COUNTS)
    nobody = [report(patient_ID=None, SNOMED_CT_codes="nine")] * 5
    hospital.publish(*reports_of(9, 30, "nine"), *nobody, *reports_of(10, 12, "ten"))
    out = tmp_path / "counts.jsonl"
    (done,) = hospital.apply("registry", "--out", str(out))
    assert (done["form"], done["rows"], done["groups_kept_back"], done["read"]) == ("counts", 1, 1, 47)
    assert json.loads(out.read_text("utf-8")) == {"SNOMED-CT-codes": "ten", "count": 12}
    # One more person: the difference to what was released would be that person. It is counted anew, alone.
    hospital.publish(*reports_of(1, 1, "ten"))
    (again,) = hospital.apply("registry", "--out", str(out))
    assert (again["rows"], again["groups_kept_back"], again["read"]) == (0, 1, 1)
    assert out.read_text("utf-8") == ""
    # Another rule does not get at the same events either.
    hospital.rules(COUNTS.replace("by SNOMED-CT-codes", "by hospital-ID"))
    assert [item["rows"] for item in hospital.apply("registry", "--out", str(out))] == [0]


def test_two_counts_for_one_destination_are_an_error(tmp_path: Path) -> None:
    """One could be taken from the other; the place of the second is told, and nothing is released by either."""
    hospital = Hospital(tmp_path / "home")
    hospital.rules(COUNTS, "a")
    hospital.rules(
        f"# once more\nrelease counts of domain/{TYPE} by hospital-ID to registry at least 10 patient-ID\n", "b"
    )
    ran = hospital.maia("release", "check", "--json")
    assert ran.code == 1
    assert [(item["file"], item["line"], item["column"], item["finding"]) for item in ran.data["findings"]] == [
        ("b.release", 2, 1, "RELEASE_DIFFERENCE")
    ]
    said = ("release", "apply", "--type", TYPE, "--to", "registry", "--as", "registrar")
    assert hospital.maia.refused(*said) == (1, "RELEASE_DIFFERENCE")


# ---------------------------------------------------------------- one after the other


def test_what_was_begun_and_killed_is_done_once(hospital: Hospital) -> None:
    """A release whose end was never noted is finished, or done again over the same events; no row leaves twice."""
    hospital.define(STUDY)
    domain = maia.open(hospital.maia.home)
    hospital.grant("chen", "subscribe", type_=f"{TYPE}.study.bladder-7")
    ledger = hospital.maia.home / "releases" / "ledger"
    domain.release(TYPE, to=STUDY, by="registrar")
    *begun, _ = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(begun) + b'{"done": 1, "gro')  # killed after the commit, while its end was written
    hospital.publish(report(lab_number="A11/2"))
    (done,) = domain.release(TYPE, to=STUDY, by="registrar")
    assert (done.rows, [entry.state for entry in domain.releases()]) == (1, ["done", "done"])
    assert len(hospital.read(f"{TYPE}.study.bladder-7", as_="chen")) == 4
    # Killed before anything left: what it covered is released, and what came later the next time.
    out = hospital.maia.home / "out.jsonl"
    domain.release(TYPE, to="pharmacy", by="registrar", out=out)
    *lines, _ = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines))
    hospital.publish(report(lab_number="A11/3"))
    assert [domain.release(TYPE, to="pharmacy", by="registrar", out=out)[0].rows for _ in range(3)] == [4, 1, 0]
    assert [entry.state for entry in domain.releases()] == ["done"] * 4
    ledger.write_bytes(b"{}\n" + ledger.read_bytes())
    assert hospital.maia.refused("release", "list") == (1, "RELEASE_LEDGER")


def test_a_release_needs_its_type_and_the_right_to_publish_it(hospital: Hospital) -> None:
    """Nothing is published under a type that nobody defined, nor by a client that nobody let."""
    said = ("release", "apply", "--type", TYPE, "--to", STUDY, "--as", "registrar")
    assert hospital.maia.refused(*said) == (5, "RELEASE_UNDEFINED")
    hospital.define(STUDY)
    assert hospital.maia.refused(*said[:-1], "chen")[0] == 3
    hospital.grant("chen", "subscribe")
    assert hospital.maia.refused(*said[:-1], "chen")[0] == 3
    assert hospital.maia.do("release", "list")["releases"] == []
