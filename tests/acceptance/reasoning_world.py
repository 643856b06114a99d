"""A hospital that shares pathology reports: who reads what, by certificates and by rules."""

from __future__ import annotations

from pathlib import Path

from maia.testing import Command

TYPE = "nhs/uk.nhs.path_report"
ATTRIBUTES = ("patient-ID", "patient-name", "hospital-ID", "path-report-text")
RULES = """
treating-doctor(patient) <- consultant-doctor(self)*, consultant-referral(from, self, patient)*
clinical-researcher(self) <- approved-study(study)*, registered(self, study)*
treating-doctor(p) |- subscribe path_report(patient-ID, patient-name, hospital-ID, path-report-text)
clinical-researcher(r) |- subscribe path_report(hospital-ID, path-report-text)
porter(self) <- ghost(self)*
ghost(self) <- porter(self)*
porter(p) |- subscribe path_report(path-report-text)
"""


def hospital(home: Command) -> Command:
    """Make the hospital: the type, and the rights of two doctors, a researcher, a laboratory and a partner."""
    home.do("domain", "init", str(home.home), "--name", "hospital")
    home.keys("nhs", "trust", "ali", "brown", "chen", "lab", "abroad")
    attributes = [part for at, name in enumerate(ATTRIBUTES) for part in ("--attribute", f"{name}:string:{at + 1}")]
    home.do("type", "define", f"{TYPE}@1", *attributes)
    give(home, "nhs", "trust", "--delegate", action="publish,subscribe")
    give(home, "trust", "ali")
    give(home, "trust", "chen", "--attribute", "hospital-ID", "--attribute", "path-report-text")
    give(home, "trust", "lab", action="publish")
    home.do("name", "add", "members", "--from", "trust", "--to", "ali")
    home.do("name", "add", "members", "--from", "trust", "--to", "trust")
    return home


def give(home: Command, by: str, to: str, *more: str, action: str = "subscribe") -> str:
    """Give a right on reports, which nobody can revoke, and return the id of its certificate."""
    return home.grant("--from", by, "--to", to, "--type", TYPE, "--action", action, "--irrevocable", *more)


def names(rows: list[dict[str, str]]) -> list[str]:
    """Give the names that the home has for principals."""
    return sorted(row["principal"].split(" ")[0] for row in rows)


def write_rules(home: Command, text: str, name: str = "hospital.rules") -> Path:
    """Write a file of rules."""
    path = home.home / "policy" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return path
