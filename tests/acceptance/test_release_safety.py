"""What would undo a release: another's type, the order of rows, counts of a child, other rules after a kill."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from release_world import PARTS, REPORT, RESEARCH, STUDY, TYPE, Hospital, report

import maia
from maia.errors import DeniedError
from maia.testing import Command

CHILD = "uk.nhs.biopsy"
KEPT = f"release {TYPE} to pharmacy keep hospital-ID, lab-number\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the hospital once, with its own rules and no reports."""
    hospital = Hospital(tmp_path_factory.mktemp("built") / "home")
    hospital.rules(RESEARCH)
    return hospital.maia.home


@pytest.fixture
def hospital(built: Path, tmp_path: Path) -> Hospital:
    """Give a copy of the hospital, which a test may change."""
    shutil.copytree(built, tmp_path / "home")
    made = Hospital.__new__(Hospital)
    made.maia = Command(tmp_path / "home")
    return made


def stranger_defines(hospital: Hospital, folder: Path, name: str, *attributes: str) -> Command:
    """Let another home define a type, and bring its key and the definition to the hospital."""
    other = Command(folder)
    other.do("domain", "init", str(folder), "--name", "stranger", "--key")
    chosen = [word for item in attributes for word in ("--attribute", item)]
    other.do("type", "define", f"domain/{name}@1", *chosen)
    hospital.maia.do("key", "import", "stranger", str(folder / "keys" / "domain.pub"))
    shutil.copytree(folder / "types", hospital.maia.home / "types", dirs_exist_ok=True)
    return other


def last_line_is_lost(home: Path) -> None:
    """Take back that the last release was done, as a kill before it was noted does."""
    ledger = home / "releases" / "ledger"
    *lines, last = ledger.read_bytes().splitlines(keepends=True)
    assert b'"done"' in last
    ledger.write_bytes(b"".join(lines))


# ---------------------------------------------------------------- where it goes


def test_a_type_of_that_name_that_somebody_else_defined_is_no_target(hospital: Hospital, tmp_path: Path) -> None:
    """Whoever owns the released type says who reads it: only what was defined here, or by the owner of what is read."""
    hospital.publish(REPORT)
    released = f"{TYPE}.domain.pharmacy"
    stranger_defines(hospital, tmp_path / "stranger", released, "hospital-ID:string", "lab-number:string")
    domain = maia.open(hospital.maia.home)
    assert domain.find_type(released).owner == domain.home.folder.key("stranger")
    said = ("release", "apply", "--type", TYPE, "--to", "pharmacy", "--as", "registrar")
    assert hospital.maia.refused(*said) == (5, "RELEASE_UNDEFINED")
    hospital.define("pharmacy")
    (done,) = hospital.apply("pharmacy")
    assert (done["rows"], done["target"]) == (1, f"domain/{released}@1")
    # A key that was named where it was defined is one of this domain's.
    hospital.maia.keys("office")
    hospital.maia.do("release", "define", "--type", TYPE, "--to", STUDY, "--as", "registrar", "--owner", "office")
    (done,) = hospital.apply(STUDY)
    assert (done["rows"], done["target"]) == (1, f"office/{TYPE}.study.bladder-7@1")


def test_a_rule_without_an_owner_means_the_type_of_the_home(hospital: Hospital, tmp_path: Path) -> None:
    """A second owner with a type of that name neither stops the rules nor is meant by them."""
    hospital.publish(REPORT)
    stranger_defines(hospital, tmp_path / "stranger", TYPE, "patient-ID:string")
    out = tmp_path / "out.jsonl"
    said = ("release", "apply", "--to", "pharmacy", "--as", "registrar", "--out", str(out), "--type")
    assert [done["rows"] for done in hospital.maia.do(*said, f"domain/{TYPE}")["releases"]] == [1]
    with pytest.raises(DeniedError, match="NO_RELEASE_RULE"):
        maia.open(hospital.maia.home).preview_release(f"stranger/{TYPE}", [{}], to="pharmacy")


# ---------------------------------------------------------------- in what order


@pytest.mark.requirement("20.03")
def test_the_place_of_a_row_does_not_link_two_studies(hospital: Hospital, tmp_path: Path) -> None:
    """Rows of each destination come in an order of its own, over all that is released at once, and always the same."""
    rule = 'release {} to study("{}") keep lab-number add id = pseudonym(patient-ID)\n'
    hospital.rules("".join(rule.format(TYPE, study) for study in "ab"))
    numbers = [f"A{number:02}" for number in range(24)]
    for half in (numbers[:12], numbers[12:]):
        hospital.publish(*[report(patient_ID=item, lab_number=item) for item in half])
    orders = []
    for study in "ab":
        out = tmp_path / f"{study}.jsonl"
        hospital.apply(f'study("{study}")', "--out", str(out))
        first = out.read_bytes()
        orders.append([json.loads(line)["lab-number"] for line in first.splitlines()])
        last_line_is_lost(hospital.maia.home)
        hospital.apply(f'study("{study}")', "--out", str(out))
        assert out.read_bytes() == first
    assert [sorted(order) for order in orders] == [numbers] * 2
    assert orders[0] != orders[1]
    assert all(set(order[:12]) not in (set(numbers[:12]), set(numbers[12:])) for order in orders)


# ---------------------------------------------------------------- types that extend others


def with_child(hospital: Hospital) -> None:
    """Let the hospital have a type that extends its reports."""
    hospital.maia.do(
        "type", "define", f"domain/{CHILD}@1", "--extends", f"domain/{TYPE}@1", "--attribute", "organ:string"
    )
    for who, action in (("broker", "publish"), ("lab", "publish"), ("registrar", "subscribe")):
        hospital.grant(who, action, type_=CHILD)


def test_counts_of_a_type_and_of_its_child_are_not_taken_from_one_another(hospital: Hospital, tmp_path: Path) -> None:
    """A type is read with those that extend it: both rules are an error; one after the other counts nothing twice."""
    with_child(hospital)
    rule = "release counts of {} by hospital-ID to {} at least 2 patient-ID\n"
    for one, other in ((TYPE, CHILD), (CHILD, TYPE)):
        hospital.rules(rule.format(one, "registry") + rule.format(other, "registry"))
        ran = hospital.maia("release", "check", "--json")
        found = [(item["line"], item["finding"]) for item in ran.data["findings"]]
        assert (ran.code, found) == (1, [(2, "RELEASE_DIFFERENCE")])
    hospital.rules(rule.format(TYPE, "registry") + rule.format(CHILD, "audit"))
    assert hospital.maia("release", "check").code == 0
    people = [report(patient_ID=str(number)) for number in range(3)]
    hospital.publish(*people)
    hospital.publish(*[row | {"organ": "bladder"} for row in people[:2]], type_=CHILD)
    out = tmp_path / "out.jsonl"
    (done,) = hospital.apply("registry", "--out", str(out))
    assert (done["read"], json.loads(out.read_text("utf-8"))["count"]) == (5, 5)
    # The rules change: what was counted as reports is not counted as biopsies for the same destination.
    hospital.rules(rule.format(CHILD, "registry") + rule.format(CHILD, "audit"))
    said = ("release", "apply", "--type", CHILD, "--as", "registrar", "--out", str(out), "--to")
    assert [item["rows"] for item in hospital.maia.do(*said, "registry")["releases"]] == [0]
    assert [item["read"] for item in hospital.maia.do(*said, "audit")["releases"]] == [2]
    # And back: what came since is counted once, as biopsies.
    hospital.publish(*[row | {"organ": "lung"} for row in people], type_=CHILD)
    assert [item["read"] for item in hospital.maia.do(*said, "registry")["releases"]] == [3]
    hospital.rules(rule.format(TYPE, "registry"))
    assert [item["rows"] for item in hospital.apply("registry", "--out", str(out))] == [0]


def test_a_child_of_what_goes_direct_goes_direct(tmp_path: Path) -> None:
    """What is inherited travels as its owner wants: no child carries it into a log that is shared."""
    shared = Hospital(tmp_path / "home", "--log", str(tmp_path / "log"), options=("--release", "direct"))
    child = ("type", "define", f"domain/{CHILD}@1", "--extends", f"domain/{TYPE}@1", "--attribute", "organ:string")
    assert shared.maia.refused(*child, "--release", "overlay")[1] == "TYPE_EXTENDS_OPTIONS"
    shared.maia.do(*child, "--release", "direct")
    for who in ("broker", "lab"):
        shared.grant(who, "publish", type_=CHILD)
    with pytest.raises(DeniedError, match="DIRECT_SHARED"):
        shared.publish(REPORT | {"organ": "bladder"}, type_=CHILD)


def test_a_log_in_a_store_is_shared(s3: Any, hospital: Hospital) -> None:
    """What goes direct is not put there, and a store without it is one to which somebody can be invited."""
    settings = hospital.maia.home / "maia.toml"
    text = settings.read_text("utf-8")
    settings.write_text(text.replace('log = "log"', f'log = "s3://{s3.new_bucket()}/log"'), "utf-8")
    attributes = [word for name in PARTS for word in ("--attribute", f"{name}:string")]
    hospital.maia.do("type", "define", f"domain/{CHILD}@1", *attributes, "--release", "direct")
    for who in ("broker", "lab"):
        hospital.grant(who, "publish", type_=CHILD)
    with pytest.raises(DeniedError, match="DIRECT_SHARED"):
        hospital.publish(dict.fromkeys(PARTS, "1"), type_=CHILD)
    hospital.maia.do("domain", "invite-peer", "--for", "pharmacy", "--give", f"doctor |- subscribe {TYPE}(hospital-ID)")


# ---------------------------------------------------------------- what was begun, and what was lost


def test_what_was_begun_is_done_as_it_was_begun_or_not_at_all(hospital: Hospital, tmp_path: Path) -> None:
    """A file may be out although nobody noted it: other rules, another file or another reader release nothing more."""
    hospital.publish(*[report(lab_number=f"A{number}") for number in range(3)])
    hospital.rules(KEPT)
    hospital.grant("chen", "subscribe")
    out = tmp_path / "out.jsonl"
    hospital.apply("pharmacy", "--out", str(out))
    before = out.read_bytes()
    last_line_is_lost(hospital.maia.home)
    said = ("release", "apply", "--type", TYPE, "--to", "pharmacy", "--as")
    hospital.rules(KEPT.replace("keep", "keep patient-ID,"))
    assert hospital.maia.refused(*said, "registrar", "--out", str(out)) == (3, "RELEASE_BEGUN")
    hospital.rules(KEPT)
    assert hospital.maia.refused(*said, "registrar", "--out", str(tmp_path / "b.jsonl")) == (3, "RELEASE_BEGUN")
    assert hospital.maia.refused(*said, "chen", "--out", str(out)) == (3, "RELEASE_BEGUN")
    assert out.read_bytes() == before
    assert [done["rows"] for done in hospital.apply("pharmacy", "--out", str(out))] == [3]
    assert out.read_bytes() == before
    # From then on the rules are free again.
    hospital.rules(KEPT.replace("keep", "keep patient-ID,"))
    hospital.publish(report(lab_number="A9"))
    assert [done["rows"] for done in hospital.apply("pharmacy", "--out", str(out))] == [1]


def test_what_was_begun_can_be_given_up_and_what_it_covers_stays_released(hospital: Hospital, tmp_path: Path) -> None:
    """By whoever began it, or the key of the domain; audited; the next release begins behind it, by other rules too."""
    hospital.publish(*[report(lab_number=f"A{number}") for number in range(3)])
    hospital.rules(KEPT)
    hospital.grant("chen", "subscribe")
    out, give_up = tmp_path / "out.jsonl", ("release", "abandon", "1")
    assert hospital.maia.refused(*give_up, "--as", "registrar") == (5, "NO_RELEASE")
    hospital.apply("pharmacy", "--out", str(out))
    assert hospital.maia.refused(*give_up, "--as", "registrar") == (2, "RELEASE_OVER")
    last_line_is_lost(hospital.maia.home)
    hospital.rules(KEPT.replace("keep", "keep patient-ID,"))
    said = ("release", "apply", "--type", TYPE, "--to", "pharmacy", "--as", "registrar", "--out", str(out))
    assert "maia release abandon 1" in hospital.maia(*said).err
    assert hospital.maia.refused(*give_up, "--as", "chen") == (3, "RELEASE_NOT_YOURS")
    assert hospital.maia.do("release", "list")["releases"][0]["state"] == "begun"
    assert hospital.maia.do(*give_up, "--as", "registrar")["state"] == "abandoned"
    assert hospital.maia.refused(*give_up) == (2, "RELEASE_OVER")
    told = [(row["subject"], row["reason"]) for row in hospital.maia.do("audit", "--kind", "release")["rows"]]
    assert ("registrar", "RELEASE_ABANDONED") in told
    # What it covers is released no more; what came after it is, by the rules of now.
    assert [done["rows"] for done in hospital.apply("pharmacy", "--out", str(out))] == [0]
    hospital.publish(report(lab_number="A9"))
    assert [done["rows"] for done in hospital.apply("pharmacy", "--out", str(out))] == [1]
    assert [json.loads(line)["lab-number"] for line in out.read_text("utf-8").splitlines()] == ["A9"]
    last_line_is_lost(hospital.maia.home)
    assert hospital.maia.do("release", "abandon", "2")["state"] == "abandoned"


def test_what_stands_in_the_log_is_not_given_up(hospital: Hospital) -> None:
    """It has left: it is finished, although nobody had noted it."""
    hospital.publish(REPORT)
    hospital.rules(KEPT)
    hospital.define("pharmacy")
    hospital.apply("pharmacy")
    last_line_is_lost(hospital.maia.home)
    assert hospital.maia.refused("release", "abandon", "1", "--as", "registrar") == (3, "RELEASE_LEFT")
    hospital.apply("pharmacy")
    assert [item["state"] for item in hospital.maia.do("release", "list")["releases"]] == ["done"]


def test_a_ledger_that_was_lost_does_not_begin_anew(hospital: Hospital, tmp_path: Path) -> None:
    """The audit tells that something was released; without the ledger nobody knows up to where."""
    hospital.publish(REPORT)
    out = tmp_path / "out.jsonl"
    hospital.apply("pharmacy", "--out", str(out))
    shutil.rmtree(hospital.maia.home / "releases")
    said = ("release", "apply", "--type", TYPE, "--to", "pharmacy", "--as", "registrar", "--out", str(out))
    assert hospital.maia.refused(*said) == (1, "RELEASE_LEDGER")
