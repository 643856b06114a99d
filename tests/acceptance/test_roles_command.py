"""Roles as the seeds tell of them, run with the `maia` command: two steps, any one rule, parameters, predicates."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from maia.testing import Command

ASKED = ("explain", "--type", "domain/Report@1", "--action", "subscribe", "--json", "--as")
READS = "subscribe Report(text)"


@pytest.fixture
def hospital(tmp_path: Path) -> Callable[..., Command]:
    """Give a function that makes a hospital with rules and members; each name is a member with a key."""

    def make(rules: str, *members: str, providers: str = "") -> Command:
        home = Command(tmp_path / "hospital")
        home.do("domain", "init", str(home.home), "--key")
        home.keys(*members)
        home.do("type", "define", "domain/Report@1", "--attribute", "text:string")
        (home.home / "policy" / "hospital.rules").write_text(rules, "utf-8")
        if providers:
            (home.home / "policy" / "providers.toml").write_text(providers, "utf-8")
        home.do("policy", "apply")
        for name in members:
            code = tmp_path / f"{name}.code"
            code.write_text(home.do("domain", "invite", name)["invitation"], "utf-8")
            home.do("domain", "join", str(home.home), "--as", name, "--invitation-file", str(code))
        return home

    return make


def may(home: Command, who: str) -> bool:
    """Tell whether somebody may read reports now."""
    ran = home(*ASKED, who)
    assert ran.code in (0, 3), ran.err
    return ran.code == 0


def activates(home: Command, role: str, who: str) -> bool:
    """Let somebody try to activate a role; tell whether it became active, and look that nothing else did."""
    before = home.do("role", "list")["roles"]
    ran = home("role", "activate", role, "--as", who, "--json")
    if ran.code == 0:
        return True
    assert (ran.code, ran.data["error"]) == (3, "ROLE_REFUSED")
    assert home.do("role", "list")["roles"] == before
    return False


@pytest.mark.requirement("12.02")
def test_holding_the_premises_is_not_holding_the_role(hospital: Callable[..., Command]) -> None:
    """All premises hold: without activating the role there is no right and no certificate; with it there is."""
    home = hospital(f"doctor(self) <- hired(self)*\ndoctor(d) |- {READS}\n", "ali")
    home.do("role", "appoint", "hired(ali)")
    issued = len(home.do("cert", "show")["certificates"])
    assert not may(home, "ali")
    assert len(home.do("cert", "show")["certificates"]) == issued
    assert activates(home, "doctor(ali)", "ali")
    assert may(home, "ali")
    home.do("role", "deactivate", "doctor(ali)", "--as", "ali")
    assert not may(home, "ali")


@pytest.mark.requirement("12.03")
def test_any_one_rule_suffices_and_without_one_there_is_nothing(hospital: Callable[..., Command]) -> None:
    """Two rules for one right, by two roles: whoever meets only the second has it; whoever meets none has nothing."""
    rules = (
        f"treating-doctor(self) <- assigned(self)*\ntreating-doctor(d) |- {READS}\n"
        f"clinical-researcher(self) <- enrolled(self)*\nclinical-researcher(r) |- {READS}\n"
    )
    home = hospital(rules, "chen", "nobody")
    home.do("role", "appoint", "enrolled(chen)")
    assert not activates(home, "treating-doctor(chen)", "chen")
    assert activates(home, "clinical-researcher(chen)", "chen")
    assert may(home, "chen")
    assert not activates(home, "clinical-researcher(nobody)", "nobody")
    assert not may(home, "nobody")


@pytest.mark.requirement("12.04")
def test_an_excluded_doctor_is_refused_alone(hospital: Callable[..., Command]) -> None:
    """Both are on the ward; one is excluded by the patient: for that patient, and nobody else is."""
    rules = (
        "treating-doctor(self, p) <- on-ward(self)*, patient(p)*, ?not-excluded(p, self)*\n"
        f"treating-doctor(d, p) |- {READS}\n"
    )
    home = hospital(rules, "x", "y")
    for fact in ("patient(patterson)", "patient(jones)", "on-ward(x)", "on-ward(y)"):
        home.do("role", "appoint", fact)
    for fact in ("not-excluded(patterson, y)", "not-excluded(jones, x)", "not-excluded(jones, y)"):
        home.do("role", "observe", fact)
    assert activates(home, "treating-doctor(y, patterson)", "y")
    assert not activates(home, "treating-doctor(x, patterson)", "x")
    assert not activates(home, "treating-doctor(y, patterson)", "x"), "another's role is not one's own"
    assert (may(home, "x"), may(home, "y")) == (False, True)
    assert activates(home, "treating-doctor(x, jones)", "x")


@pytest.mark.requirement("12.11")
def test_a_referral_hands_on_one_patient_and_falls_with_whom_it_came_from(hospital: Callable[..., Command]) -> None:
    """Ali refers Patterson to Brown: Brown's role is active, for Jones it is not; Ali's assignment ends, both go."""
    rules = (
        "treating-doctor(h, self, p) <- assigned(h, self, p)*\n"
        "treating-doctor(h, self, p) <- treating-doctor(_, d, p)*, consultant-doctor(h, self)*, "
        "consultant-referral(d, self, p)*\n"
        f"treating-doctor(h, d, p) |- {READS}\n"
    )
    home = hospital(rules, "ali", "brown")
    for fact in (
        "assigned('RGT01', ali, patterson)", "assigned('RGT01', ali, jones)", "consultant-doctor('OX', brown)",
    ):  # fmt: skip
        home.do("role", "appoint", fact)
    for patient in ("patterson", "jones"):
        assert activates(home, f"treating-doctor('RGT01', ali, {patient})", "ali")
    assert not activates(home, "treating-doctor('OX', brown, patterson)", "brown"), "before the referral"
    home.do("role", "appoint", "consultant-referral(ali, brown, patterson)")
    assert activates(home, "treating-doctor('OX', brown, patterson)", "brown")
    assert not activates(home, "treating-doctor('OX', brown, jones)", "brown")
    assert may(home, "brown")
    fallen = home.do("role", "revoke", "assigned('RGT01', ali, patterson)")["roles"]
    assert [role.partition(":")[0] for role in fallen] == ["ali", "brown"]
    assert (may(home, "ali"), may(home, "brown")) == (True, False)


DATABASE = """\
[[predicate]]
name = "detective"
arity = 1
kind = "sql"
database = "staff.db"
ask = "select 1 from staff where name = ?"
list = "select name from staff"
"""


@pytest.mark.requirement("12.08")
def test_a_fact_in_a_database_counts_as_an_appointment_does(hospital: Callable[..., Command]) -> None:
    """`detective` looked up, and `detective` appointed: equal answers for both people, also when it ends."""
    rules = "looked-up(self) <- ?detective(self)*\nappointed(self) <- detective(self)*\n"
    home = hospital(rules, "smith", "jones", providers=DATABASE)
    with closing(sqlite3.connect(home.home / "policy" / "staff.db")) as staff:
        staff.execute("create table staff (name text)")
        staff.execute("insert into staff values ('smith')")
        staff.commit()
    home.do("role", "appoint", "detective(smith)")

    def both(who: str) -> tuple[bool, bool]:
        return activates(home, f"looked-up({who})", who), activates(home, f"appointed({who})", who)

    assert (both("smith"), both("jones")) == ((True, True), (False, False))
    with closing(sqlite3.connect(home.home / "policy" / "staff.db")) as staff:
        staff.execute("delete from staff")
        staff.commit()
    home.do("role", "revoke", "detective(smith)")
    assert both("smith") == (False, False)
    (home.home / "policy" / "staff.db").unlink()
    home.do("role", "appoint", "detective(jones)")
    assert both("jones") == (False, True), "who cannot be asked says no, and what needs no asking stands"


EMERGENCY = '[[predicate]]\nname = "emergency"\nkind = "emergency"\nby = ["chief"]\n'


@pytest.mark.requirement("12.08")
def test_an_emergency_opens_the_emergency_rule_and_no_other(hospital: Callable[..., Command]) -> None:
    """Declared: whoever is on the ward may read by that rule; the rule of the treating doctor stays as it was."""
    rules = (
        "treating-doctor(self) <- assigned(self)*\n"
        "emergency-doctor(self) <- on-ward(self)*, ?emergency()*\n"
        f"treating-doctor(d) |- {READS}\nemergency-doctor(d) |- {READS}\n"
    )
    home = hospital(rules, "ali", "brown", providers=EMERGENCY)
    home.keys("chief")
    home.do("role", "appoint", "on-ward(ali)")
    assert not activates(home, "emergency-doctor(ali)", "ali")
    home.do("policy", "emergency", "--as", "chief", "--reason", "flood", "--until", "+1h")
    assert activates(home, "emergency-doctor(ali)", "ali")
    assert may(home, "ali")
    assert not activates(home, "treating-doctor(ali)", "ali")
    assert not activates(home, "emergency-doctor(brown)", "brown")
    home.do("policy", "emergency", "--end", "--as", "chief", "--reason", "dry")
    assert not activates(home, "emergency-doctor(ali)", "ali")
    assert not may(home, "ali")
