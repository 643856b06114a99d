"""What rules say by themselves: which roles can ever read an attribute, what is missing, and what must be assumed."""

from __future__ import annotations

import pytest
from reasoning_world import RULES, hospital, write_rules

from maia.testing import Command


@pytest.fixture
def home(maia_command: Command) -> Command:
    """Give the hospital with its rules."""
    made = hospital(maia_command)
    write_rules(made, RULES)
    return made


@pytest.mark.requirement("18.01")
def test_the_roles_that_can_ever_read_a_part_follow_from_the_rules(home: Command) -> None:
    """The text is for treating doctors and clinical researchers, and for a third role once a rule says so."""

    def roles(attribute: str) -> list[str]:
        return sorted(
            row["role"].split("(")[0] for row in home.do("policy", "who-can", "path_report", attribute)["roles"]
        )

    assert roles("path-report-text") == ["clinical-researcher", "treating-doctor"], "nobody can ever be a porter"
    assert roles("patient-name") == ["treating-doctor"]
    [rule] = home.do("policy", "who-can", "path_report", "patient-name")["roles"]
    assert (rule["file"], rule["line"]) == ("hospital.rules", 4)
    write_rules(
        home, "auditor(self) <- employed(self)*\nauditor(a) |- subscribe path_report(path-report-text)\n", "b.rules"
    )
    assert roles("path-report-text") == ["auditor", "clinical-researcher", "treating-doctor"]
    assert home.do("policy", "who-can", "path_report", "patient-name", "--action", "publish")["roles"] == []
    assert home.refused("policy", "who-can", "path_report", "ward")[1] == "POLICY_ATTRIBUTE"
    assert home.refused("policy", "who-can", "nothing", "ward")[1] == "POLICY_TYPE"


@pytest.mark.requirement("18.02")
@pytest.mark.requirement("18.03")
def test_a_role_is_derived_or_its_missing_premise_is_named_and_supplied(home: Command) -> None:
    """Before the referral Brown lacks exactly it; with it he is a treating doctor, by that rule, and reads the text."""
    ask = (
        "policy",
        "suppose",
        "treating-doctor('Patterson')",
        "--as",
        "Brown",
        "--appoint",
        "consultant-doctor(Brown)",
    )
    refused = home(*ask, "--json")
    assert refused.code == 3
    assert [row["lacks"] for row in refused.data["lacks"]] == [["consultant-referral(from, 'Brown', 'Patterson')"]]
    found = home.do(*ask, "--appoint", "consultant-referral('Ali', 'Brown', 'Patterson')")
    assert found["holds"]
    assert any("consultant-referral('Ali', 'Brown', 'Patterson')" in line for line in found["proof"])
    assert any("path-report-text" in privilege for privilege in found["privileges"])
    assert found["assumed"] == []
    other = home(*ask, "--appoint", "consultant-referral('Ali', 'Brown', 'Smith')", "--json")
    assert other.code == 3, "a referral of another patient"


@pytest.mark.requirement("18.05")
def test_what_others_decide_may_be_assumed_and_is_listed(home: Command) -> None:
    """That Brown can read holds assuming that he is a consultant, as the GMC says; nothing else is assumed."""
    ask = ("policy", "suppose", "treating-doctor('Patterson')", "--as", "Brown")
    referral = ("--appoint", "consultant-referral('Ali', 'Brown', 'Patterson')")
    found = home.do(*ask, *referral, "--assume", "consultant-doctor")
    assert found["assumed"] == ["consultant-doctor('Brown')"]
    assert any("path-report-text" in privilege for privilege in found["privileges"])
    assert home(*ask, *referral).code == 3, "nothing is assumed that was not said"
    assert home(*ask, "--assume", "consultant-doctor").code == 3, "and nothing beside it"


@pytest.mark.requirement("18.09")
def test_rules_of_two_languages_on_one_type_are_laid_over_one_another(home: Command) -> None:
    """A filter policy and a role policy on reports have a tag in common and no conflict; two filters apart have one."""
    write_rules(home, "ward(self) <- employed(self)*\nward(w) |- subscribe path_report(hospital-ID)\n")
    write_rules(
        home,
        "desk(self) <- employed(self)*\n"
        "desk(d) |- subscribe path_report(hospital-ID, path-report-text) upper (hospital-ID = 'RGT01')\n",
        "filters.rules",
    )
    [found] = home.do("policy", "overlap")["overlaps"]
    assert sorted(found["languages"]) == ["filters", "roles"]
    assert found["conflict"] is False
    for part in ("maia-type", "subscribe", "bound", "RGT01"):
        assert part in found["common"]
    other = (
        "kiosk(self) <- employed(self)*\nkiosk(k) |- subscribe path_report(hospital-ID) upper (hospital-ID = 'RGT02')\n"
    )
    write_rules(home, other, "more.rules")
    found = home.do("policy", "overlap")["overlaps"]
    assert [row["languages"] for row in found if row["conflict"]] == [["filters", "filters"]]
    assert len(found) == 3
    write_rules(home, "lab(self) <- employed(self)*\nlab(k) |- publish path_report(hospital-ID)\n", "more.rules")
    assert len(home.do("policy", "overlap")["overlaps"]) == 1, "another action has nothing in common"


@pytest.mark.requirement("23.14")
def test_a_risk_class_says_which_kind_of_rule_its_attributes_need(home: Command) -> None:
    """Identifiable parts need a demand on the row and watched premises; a rule without is named, with its line."""
    write_rules(
        home, RULES.replace("consultant-referral(from, self, patient)*", "consultant-referral(from, self, patient)")
    )
    write_rules(
        home,
        '[identifiable]\nattributes = ["path_report.patient-ID", "path_report.patient-name"]\n'
        'requires = ["row", "monitored"]\n[open]\nattributes = ["path_report.hospital-ID"]\nrequires = []\n',
        "risks.toml",
    )
    ran = home("policy", "check", "--json")
    assert ran.code == 1
    risks = [row for row in ran.data["findings"] if row["finding"] == "POLICY_RISK"]
    assert {row["line"] for row in risks} == {4}
    assert len(risks) == 4, "two attributes, each without both"
    write_rules(home, RULES.replace("(patient-ID, patient-name,", "(patient-ID = p, patient-name,"))
    assert not [row for row in home.do("policy", "check")["findings"] if row["finding"] == "POLICY_RISK"]
    write_rules(home, '[high]\nattributes = ["path_report.patient-ID"]\nrequires = ["max"]\n', "risks.toml")
    assert home("policy", "check").code == 1, "that class asks for an access-control filter"
    for wrong in (
        '[high]\nattributes = ["x"]\nrequires = []',
        '[high]\nattributes = []\nrequires = ["magic"]',
        "high = 1",
    ):
        write_rules(home, wrong, "risks.toml")
        assert home.refused("policy", "check")[1] == "POLICY_RISKS"
