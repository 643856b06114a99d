"""Policy tests: `maia policy test` asserts who can and who cannot, and says which right and which rule nobody tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reasoning_world import RULES, TYPE, give, hospital, write_rules

from maia.testing import Command

GOOD = """
[[test]]
name = "names stay in the trust"
type = "uk.nhs.path_report"
attribute = "patient-name"
can = ["ali", "trust", "nhs"]
cannot = ["chen", "abroad", "lab"]
only = ["trust: members"]

[[test]]
type = "uk.nhs.path_report"
attribute = ["hospital-ID", "path-report-text"]
can = "chen"

[[test]]
name = "only the laboratory writes"
type = "uk.nhs.path_report"
attribute = "path-report-text"
action = "publish"
can = ["lab"]
cannot = ["ali", "chen"]

[[roles]]
type = "path_report"
attribute = "patient-name"
can = ["treating-doctor"]
cannot = ["clinical-researcher", "porter"]

[[suppose]]
role = "treating-doctor('Patterson')"
as = "Brown"
appoint = ["consultant-doctor(Brown)"]
holds = false

[[suppose]]
role = "treating-doctor('Patterson')"
as = "Brown"
appoint = ["consultant-referral('Ali', 'Brown', 'Patterson')"]
assume = ["consultant-doctor"]
holds = true
"""


@pytest.fixture
def home(maia_command: Command) -> Command:
    """Give the hospital with its rules."""
    made = hospital(maia_command)
    write_rules(made, RULES)
    return made


def write(home: Command, text: str, name: str = "hospital.toml") -> Path:
    """Write a file of policy tests."""
    path = home.home / "policy" / "tests" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def cell(*lines: str, attribute: str = "patient-name") -> str:
    """Write one test."""
    return "\n".join(["[[test]]", 'type = "uk.nhs.path_report"', f'attribute = "{attribute}"', *lines, ""])


def test_assertions_that_hold_pass_and_one_that_does_not_says_what_was_found(home: Command) -> None:
    """All hold; a right too many fails two assertions with the chain that gives it; one too few names what is lost."""
    write(home, GOOD)
    ran = home("policy", "test")
    assert ran.code == 0, ran.out
    assert "." * 17 in ran.out
    assert "0 failed" in ran.out
    give(home, "trust", "abroad", "--attribute", "patient-name", "--attribute", "hospital-ID='RGT01'")
    ran = home("policy", "test", "--json")
    assert ran.code == 1
    failed = [one for one in ran.data["outcomes"] if not one["passed"]]
    assert [(one["file"], one["line"], one["test"], one["reason"]) for one in failed] == [
        ("hospital.toml", 2, "names stay in the trust", "CAN")
    ] * 2
    assert all("trust" in one["found"] and "abroad" in one["found"] for one in failed), "the chain is the proof"
    write(home, cell('can = ["brown", "chen"]'))
    ran = home("policy", "test", "--json")
    assert ran.code == 1
    assert [one["reason"] for one in ran.data["outcomes"]] == ["CANNOT", "CANNOT"]
    assert "NO_EVIDENCE" in ran.data["outcomes"][0]["found"]
    assert "NOT_PERMITTED" in ran.data["outcomes"][1]["found"]
    said = home("policy", "test").out
    assert "hospital.toml:1: expected: brown reads `patient-name`" in said
    assert "FF" in said


def test_rows_and_moments_are_asserted_too(home: Command) -> None:
    """A right on one hospital's rows holds there alone, and until it ends; a filter stands for some row."""
    give(
        home,
        "trust",
        "brown",
        "--attribute",
        "hospital-ID='RGT01'",
        "--attribute",
        "path-report-text",
        "--until",
        "+9d",
    )
    told = {"attribute": "path-report-text"}
    good = (
        cell('row = { hospital-ID = "RGT01", path-report-text = "x" }', 'can = "brown"', **told)
        + cell('row = { hospital-ID = "RGT02", path-report-text = "x" }', 'cannot = "brown"', **told)
        + cell("where = \"hospital-ID = 'RGT02'\"", 'cannot = "brown"', 'can = "ali"', **told)
        + cell('at = "+10d"', 'cannot = "brown"', 'can = "ali"', **told)
    )
    write(home, good)
    assert home.do("policy", "test")["passed"] == 6
    write(home, good.replace("RGT02", "RGT01").replace("+10d", "+8d"))
    ran = home("policy", "test", "--json")
    assert (ran.code, ran.data["failed"]) == (1, 3)
    assert home("policy", "test", "--at", "+20d", "--json").data["failed"] == 1, "then Brown reads nowhere"


def test_what_no_test_touches_is_listed_and_can_be_demanded(home: Command) -> None:
    """Certificates in no chain asked about, and rules that gave no answer, are named; --covered refuses them."""
    write(home, cell('can = ["ali"]'))
    found = home.do("policy", "test")["coverage"]
    assert found["certificates"] == 4
    assert [line.split(" from ")[1].split(" ")[0] for line in found["untouched_certificates"]] == ["trust", "trust"]
    assert sorted(line.split(" to ")[1].split(" ")[0] for line in found["untouched_certificates"]) == ["chen", "lab"]
    assert found["rules"] == len(found["untouched_rules"]) == 7
    assert home("policy", "test", "--covered").code == 1
    write(home, GOOD)
    found = home.do("policy", "test")["coverage"]
    assert found["untouched_certificates"] == []
    assert [line.split(":")[1] for line in found["untouched_rules"]] == ["3", "5", "6", "7", "8"]
    assert "hospital.rules:3: clinical-researcher" in found["untouched_rules"][0]


def test_what_cannot_be_told_and_whom_nobody_knows_fails_either_way(home: Command) -> None:
    """A certificate that waits for a statement is neither yes nor no; a misspelled name is not somebody who cannot."""
    waits = ("--test", "revalidation:trust")
    home.grant("--from", "trust", "--to", "brown", "--type", TYPE, "--action", "subscribe", *waits)
    for word in ("can", "cannot"):
        write(home, cell(f'{word} = ["brown"]'))
        ran = home("policy", "test", "--json")
        assert (ran.code, [one["reason"] for one in ran.data["outcomes"]]) == (1, ["DOUBT"])
    write(home, cell('only = ["trust: members"]'))
    assert home("policy", "test", "--json").data["outcomes"][0]["reason"] == "DOUBT"
    for word in ("can", "cannot"):
        write(home, cell(f'{word} = ["chne"]'))
        ran = home("policy", "test", "--json")
        assert (ran.code, ran.data["failed"]) == (1, 1)
        assert ran.data["outcomes"][0]["reason"] not in ("CAN", "CANNOT", "")
    write(home, '[[roles]]\ntype = "path_report"\nattribute = "patient-name"\ncannot = ["portre"]\n')
    assert home("policy", "test", "--json").data["outcomes"][0]["reason"] == "NO_SUCH_ROLE"
    write(home, cell('cannot = ["ali"]', attribute="patient-nmae"))
    assert home("policy", "test", "--json").data["outcomes"][0]["reason"] == "NO_SUCH_ATTRIBUTE"


WRONG = {
    "nothing asserted": ('[[test]]\ntype = "path_report"\nattribute = "patient-name"\n', "asserts nothing", 1),
    "an empty list asserts nothing": (cell("cannot = []"), "asserts nothing", 1),
    "no tests": ("# later\n", "no test", 1),
    "a misspelled word": ("\n" + cell('canot = ["ali"]'), "did you mean `cannot`", 2),
    "no table": ('[tests]\ncan = "x"\n', "none of", 1),
    "both": (cell('can = "ali"', 'cannot = "ali"'), "both", 1),
    "no TOML": ("[[test]]\ntype = path\n", "no TOML", 2),
    "a list of numbers": (cell("can = [1]"), "list of texts", 1),
    "an instant without a zone": (cell('can = "ali"', "at = 2026-01-01T00:00:00"), "time zone", 1),
    "a header that is hidden": ('test = [{type = "path_report", attribute = "x", can = "ali"}]\n', "header", 1),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_a_file_that_would_test_nothing_is_refused_with_its_line(
    home_without_rules: Command, case: tuple[str, str, int]
) -> None:
    """Unknown words, empty tests and files without tests are errors with file and line, not silence."""
    text, says, line = case
    path = home_without_rules.home / "t.toml"
    path.write_text(text, "utf-8")
    ran = home_without_rules("policy", "test", str(path), "--json")
    assert (ran.code, ran.data["error"]) == (1, "POLICY_TESTS")
    assert says in ran.data["message"]
    assert ran.data["message"].startswith(f"t.toml:{line}: ")


@pytest.fixture
def home_without_rules(maia_command: Command) -> Command:
    """Give a home with nothing in it."""
    maia_command.do("domain", "init", str(maia_command.home), "--name", "empty")
    return maia_command


def test_results_are_written_for_programs_that_collect_them(home: Command, tmp_path: Path) -> None:
    """JUnit XML names each assertion and each failure; a home without tests says where they go."""
    assert home.refused("policy", "test") == (5, "NO_POLICY_TESTS")
    write(home, cell('can = ["ali", "chen"]'))
    out = tmp_path / "junit.xml"
    assert home("policy", "test", "--junit", str(out)).code == 1
    text = out.read_text("utf-8")
    assert 'tests="2" failures="1"' in text
    assert '<failure type="CANNOT">' in text


LABELS = """
[types."uk.nhs.path_report"]
patient-name = { S = ["identifiable"] }
path-report-text = { S = ["clinical(patient-ID)"] }
[readers.ali]
S = ["clinical(1)"]
"""


def test_labels_close_what_certificates_open(home: Command) -> None:
    """Where the home has labels they count as they do for a client; a policy of labels that is damaged is doubt."""
    write(home, cell('can = ["ali"]'))
    assert home("policy", "test").code == 0
    labels = home.home / "policy" / "labels.toml"
    labels.write_text(LABELS, "utf-8")
    ran = home("policy", "test", "--json")
    assert (ran.code, ran.data["outcomes"][0]["reason"]) == (1, "CANNOT")
    of = ('row = { patient-ID = "1", path-report-text = "x" }', 'row = { patient-ID = "2", path-report-text = "x" }')
    both = cell(of[0], 'can = "ali"', attribute="path-report-text")
    write(home, both + cell(of[1], 'cannot = "ali"', attribute="path-report-text"))
    assert home.do("policy", "test")["passed"] == 2, "a patient's tag closes other patients' rows"
    labels.write_text("this is no policy", "utf-8")
    for word in ("can", "cannot"):
        write(home, cell(f'{word} = ["ali"]'))
        ran = home("policy", "test", "--json")
        assert ran.code == 1
        assert [one["reason"] for one in ran.data["outcomes"]] == ["DOUBT"]
    assert json.dumps(ran.data["outcomes"][0]["found"]).count("LABELS_UNKNOWN")
