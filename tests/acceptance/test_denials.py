"""Rules that deny, and several credentials together: by the `maia` command, down to the cells that are open."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

import maia
from maia.testing import Command, publish_here, read_here

TYPE = "domain/Numberplate"
OTHER, WATCHED = "BX51 ABC", "AE05 XYZ"
RULES = """\
tracker(self) <- detective(self)*
traffic(self) <- warden(self)*
tracker(d) |- subscribe Numberplate(location, numberplate = 'AE05 XYZ')
traffic(w) |- subscribe Numberplate(timestamp)
tracker(d) |- brief('cases')
"""
DENIALS = """\
suspended(self) !- subscribe Numberplate(location)
conflicted(self, plate) !- subscribe Numberplate(location, numberplate = plate)
suspended(self) !- brief('cases')
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the home once: the Met owns the type, and Smith is detective and warden."""
    met = Command(tmp_path_factory.mktemp("denials") / "met")
    met.do("domain", "init", str(met.home), "--key")
    met.keys("smith", "jones", "camera")
    attributes = ("numberplate:string:1", "timestamp:string:2", "location:string:3")
    met.do("type", "define", f"{TYPE}@1", *(word for text in attributes for word in ("--attribute", text)))
    for name in ("broker", "camera"):
        met.grant("--from", "domain", "--to", name, "--type", TYPE, "--action", "publish,subscribe")
    apply(met, RULES + DENIALS)
    for who in ("smith", "jones"):
        code = met.home.with_name(f"{who}.code")
        code.write_text(met.do("domain", "invite", who)["invitation"], "utf-8")
        met.do("domain", "join", str(met.home), "--as", who, "--invitation-file", str(code))
        met.do("role", "appoint", f"detective({who})")
    met.do("role", "appoint", "warden(smith)")
    return met.home


@pytest.fixture
def met(template: Path, tmp_path: Path) -> Command:
    """Give a copy of the home."""
    shutil.copytree(template, tmp_path / "met")
    return Command(tmp_path / "met")


def apply(met: Command, rules: str) -> dict[str, object]:
    """Put rules in force."""
    (met.home / "policy").mkdir(exist_ok=True)
    (met.home / "policy" / "met.rules").write_text(rules, "utf-8")
    return met.do("policy", "apply")


def activate(met: Command, who: str = "smith", *roles: str) -> list[dict[str, str]]:
    """Activate roles, and give what was refused with the last."""
    refused: list[dict[str, str]] = []
    for role in roles or (f"tracker({who})",):
        refused = met.do("role", "activate", role, "--as", who)["refused"]
    return refused


def sees(met: Command, plate: str | None = WATCHED, who: str = "smith") -> set[str]:
    """Give the attributes that somebody sees of a row with a plate, or without."""
    row = {"timestamp": "9:00", "location": "Victoria"} | ({} if plate is None else {"numberplate": plate})
    found = set()
    for attribute in ("numberplate", "timestamp", "location"):
        ran = met("who-can", TYPE, attribute, "--as", who, "--row", json.dumps(row), "--json")
        assert ran.code in (0, 3), ran.err
        found |= {attribute} if ran.code == 0 else set()
    return found


@pytest.mark.requirement("23.11")
def test_credentials_add_up_and_a_denial_overrides_all_of_them(met: Command) -> None:
    """Two roles together open three attributes of one plate; a suspension closes one at once, whoever gave it."""
    activate(met, "smith", "tracker(smith)", "traffic(smith)")
    assert sees(met) == {"location", "numberplate", "timestamp"}
    assert sees(met, OTHER) == {"timestamp"}, "demands of different rights are not mixed"
    activate(met, "jones")
    met.do("role", "appoint", "suspended(smith)")
    assert sees(met) == {"timestamp"}, "the certificate ended with the appointment, before anything was fetched"
    activate(met)
    assert sees(met) == {"numberplate", "timestamp"}, "what is left is issued anew"
    assert sees(met, OTHER) == {"timestamp"}
    assert sees(met, who="jones") == {"location", "numberplate"}, "nobody else is concerned"
    met.do("role", "retract", "suspended(smith)")
    activate(met)
    assert sees(met) == {"location", "numberplate", "timestamp"}


@pytest.mark.requirement("23.11")
def test_what_is_denied_reaches_no_reader_through_the_kernel(met: Command) -> None:
    """Published rows show a denied reader what is left, cell by cell; the same is said before anything is read."""
    apply(met, RULES.replace("numberplate = 'AE05 XYZ'", "numberplate") + DENIALS)
    met.do("role", "appoint", f"conflicted(smith, '{WATCHED}')")
    activate(met)
    rows = [{"numberplate": plate, "timestamp": "9:00", "location": "Victoria"} for plate in (WATCHED, OTHER, None)]
    home = maia.open(met.home).home
    publish_here(home, TYPE, rows, as_="camera", at=datetime.now(UTC))
    shown = read_here(home, TYPE, as_="smith")
    found = {(row["numberplate"], row["location"]) for row in shown}
    assert found == {(OTHER, "Victoria")}, "a row without the value may be meant: it stays closed"
    assert sees(met) == set()
    assert sees(met, OTHER) == {"location", "numberplate"}


@pytest.mark.requirement("23.11")
def test_a_denial_of_one_plate_leaves_the_other_and_of_the_whole_nothing(met: Command) -> None:
    """A conflict on another plate takes nothing; on the one that is tracked it takes the right whole, with a code."""
    met.do("role", "appoint", f"conflicted(smith, '{OTHER}')")
    assert activate(met) == []
    assert sees(met) == {"location", "numberplate"}
    met.do("role", "appoint", f"conflicted(smith, '{WATCHED}')")
    [refused] = activate(met)
    assert refused["error"] == "DENIED_BY_RULE"
    assert refused["privilege"].startswith("subscribe Numberplate")
    assert sees(met) == set()
    assert met("read", TYPE, "--as", "smith").code != 0


@pytest.mark.requirement("23.11")
def test_a_denial_is_explained_noted_and_shown_before_it_is_in_force(met: Command) -> None:
    """The rule, its line, the fact and what is left; the journal; the preview of a policy that denies more."""
    activate(met)
    met.do("role", "appoint", "suspended(smith)")
    activate(met)
    told = met.do("policy", "explain", "tracker(smith)", "--as", "smith")
    [right] = told["privileges"]
    assert right["left"].endswith("without subscribe Numberplate(location)")
    assert right["denied_by"] == ["suspended(self) !- subscribe Numberplate(location)"]
    assert any("line 6 of met.rules" in line and "suspended(smith)" in line for line in told["denied"])
    assert any("brief" in line for line in told["denied"])
    shown = met.do("explain", "--as", "smith", "--type", f"{TYPE}@1", "--action", "subscribe")
    assert '"3"' not in shown["effective"], "the certificate itself does not name the location"
    lines = met.do("domain", "journal")["lines"]
    assert any(line["action"] == "deny" for line in lines)
    more = RULES + DENIALS + "suspended(self) !- subscribe Numberplate\n"
    (met.home / "policy" / "met.rules").write_text(more, "utf-8")
    [change] = met.do("policy", "preview")["changes"]
    assert (change["member"], len(change["ended"])) == ("smith", 1)
    assert sees(met) == {"numberplate"}, "a preview changes nothing"
    met.do("policy", "apply")
    assert sees(met) == set()


@pytest.mark.requirement("23.11")
def test_the_analysis_shows_what_each_denial_takes_and_which_takes_nothing(met: Command) -> None:
    """A part of one rule, all of another; a denial of what nobody is given is named, and fails a check."""
    found = met.do("policy", "denials")
    taken = {row["line"]: [(item["line"], item["takes"]) for item in row["effects"]] for row in found["denials"]}
    assert taken == {6: [(3, "part")], 7: [(3, "part")], 8: [(5, "whole")]}
    assert [row["line"] for row in found["wholly_denied"]] == [5]
    assert met("policy", "denials", "--check").code == 1
    rules = met.home / "policy" / "met.rules"
    rules.write_text(RULES + "suspended(self) !- publish Numberplate\n", "utf-8")
    [row] = met.do("policy", "denials")["denials"]
    assert row["idle"] is True
    assert [item["finding"] for item in met.do("policy", "check")["findings"]] == ["IDLE_DENIAL"]
    rules.write_text(RULES + "suspended(self) !- subscribe Numberplate(numberplate = 'BX51 ABC')\n", "utf-8")
    [row] = met.do("policy", "denials")["denials"]
    assert row["idle"] is True, "no rule gives that plate"
    rules.write_text(RULES + "suspended(self) !- subscribe Numberplate(numberplate != 'BX51 ABC')\n", "utf-8")
    assert met.do("policy", "denials")["denials"][0]["effects"][0]["takes"] == "part"
    assert met("policy", "denials", "--check").code == 0


@pytest.mark.requirement("23.11")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("tracker(self) !- subscribe Numberplate", "a role can be left"),
        ("?away(self) !- subscribe Numberplate", "who cannot be asked would deny nothing"),
        ("suspended(self)* !- subscribe Numberplate", "nothing is to be watched"),
        ("suspended(self) !- subscribe Numberplate@1", "another version would show the same"),
        ("suspended(self) !- subscribe Numberplate upper (numberplate any)", "bounds say how a right is used"),
        ("suspended(self) !- publish Numberplate(location = 'Victoria')", "a publisher's value could be forced"),
        ("suspended(self) !- subscribe Numberplate(numberplate = plate)", "a variable that nothing binds"),
        ("suspended(self) !- subscribe Numberplate(colour)", "no such attribute"),
    ],
)
def test_a_denial_that_could_be_stepped_around_is_refused(met: Command, line: str, why: str) -> None:
    """What would deny less than it says is no policy, and what was in force stays."""
    (met.home / "policy" / "met.rules").write_text(RULES + line + "\n", "utf-8")
    assert met("policy", "check").code == 1, why
    assert met("policy", "apply").code == 1, why
    (met.home / "policy" / "met.rules").write_text(RULES, "utf-8")
    (met.home / "policy" / "more.rules").write_text(line + "\n", "utf-8")
    assert met("policy", "apply").code == 1, "in a file of its own as well"


@pytest.mark.requirement("23.11")
def test_what_denies_is_not_handed_to_the_one_whom_it_concerns(met: Command) -> None:
    """An appointment that is brought along can be left at home, so one that denies is recorded here alone."""
    out = met.home / "fact.cert"
    asked = ("domain", "appoint", "kim", "suspended(kim)", "--key", "jones", "--out", str(out))
    assert met.refused(*asked)[1] == "APPOINTMENT_DENIES"
    assert not out.exists()
    met.do("domain", "appoint", "kim", "detective(kim)", "--key", "jones", "--out", str(out))
