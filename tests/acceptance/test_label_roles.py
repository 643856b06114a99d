"""Roles yield flow tags: what the policy answers and what labels show is the same, for everybody and every part."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pathology_world import COMMENT, LABELS, PARTS, PATTERSON, REPORT, ROWS, SMITH, define, label

import maia
from maia.labels import PUBLIC, Label, can_flow, read_as
from maia.policy import PolicyEngine, TagBook, parse_policy
from maia.testing import Command, publish_here, read_here

RULES = """\
treating-doctor(h, self, p) <- consultant(h, self)*, referred(self, p)*
treating-doctor(h, d, p) |- clinical(p)
treating-doctor(h, d, p) |- identifiable
clinical-researcher(s, self, p) <- study(s, self, p)*
clinical-researcher(s, r, p) |- clinical(p)
"""
FACTS = (
    "consultant('RGT01', ali)", "consultant('RGT02', brown)", f"referred(ali, '{PATTERSON}')",
    f"referred(brown, '{SMITH}')", f"study(s7, chen, '{PATTERSON}')", f"study(s7, chen, '{SMITH}')",
)  # fmt: skip
ROLES = {
    f"treating-doctor('RGT01', ali, '{PATTERSON}')": "ali",
    f"treating-doctor('RGT02', brown, '{SMITH}')": "brown",
    f"clinical-researcher(s7, chen, '{PATTERSON}')": "chen",
    f"clinical-researcher(s7, chen, '{SMITH}')": "chen",
}
PEOPLE = ("ali", "brown", "chen", "nobody")
REFERRAL, REFERRED = f"referred(brown, '{PATTERSON}')", f"treating-doctor('RGT02', brown, '{PATTERSON}')"


def policy_of(tags: str) -> str:
    """Give the labels of the types, with tags from roles in place of readers."""
    return f"{LABELS.partition('[readers.')[0]}\n[roles]\ntags = [{tags}]\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Make a hospital whose roles give tags, with three reports."""
    folder = tmp_path_factory.mktemp("roles")
    home = Command(folder / "hospital")
    home.do("domain", "init", str(home.home), "--key")
    home.keys("lab", "both", "strict", "monitor", *PEOPLE)
    define(home, REPORT, PARTS)
    define(home, COMMENT, ("patient-ID", "comment"))
    (home.home / "policy").mkdir(exist_ok=True)
    (home.home / "policy" / "hospital.rules").write_text(RULES, "utf-8")
    home.do("policy", "apply")
    for name in PEOPLE:
        code = folder / f"{name}.code"
        code.write_text(home.do("domain", "invite", name)["invitation"], "utf-8")
        home.do("domain", "join", str(home.home), "--as", name, "--invitation-file", str(code))
    for fact in FACTS:
        home.do("role", "appoint", fact)
    for role, who in ROLES.items():
        home.do("role", "activate", role, "--as", who)
    label(home, policy_of('"clinical", "identifiable"'))
    rows = [dict(zip(PARTS, row, strict=True)) for row in ROWS]
    assert publish_here(maia.open(home.home).home, REPORT, rows, as_="lab", at=datetime.now(UTC)) == 3
    return home


def shown(home: Path, who: str) -> dict[tuple[str, str], bool]:
    """Say of each report and part whether somebody sees it."""
    rows = {str(row["lab-number"]): row for row in read_here(maia.open(home).home, REPORT, as_=who)}
    return {(row[3], part): rows[row[3]][part] is not None for row in ROWS for part in PARTS}


def answered(engine: PolicyEngine, who: str) -> dict[tuple[str, str], bool]:
    """Say of each report and part whether the policy gives somebody the privilege that the part needs."""
    found = {}
    for row in ROWS:
        needs = dict.fromkeys(PARTS, "") | dict.fromkeys(PARTS[:2], "identifiable")
        needs |= dict.fromkeys(PARTS[5:], f"clinical('{row[0]}')")
        for part, privilege in needs.items():
            found[row[3], part] = not privilege or bool(engine.decide(privilege, principal=who))
    return found


@pytest.fixture
def engine() -> PolicyEngine:
    """Run the same rules with the same facts, without labels."""
    found = PolicyEngine(parse_policy(RULES))
    for fact in FACTS:
        found.appoint(fact)
    for role, who in ROLES.items():
        found.activate(role, principal=who)
    return found


@pytest.mark.requirement("17.08")
@pytest.mark.requirement("18.07")
def test_labels_show_what_the_policy_answers(made: Command, engine: PolicyEngine) -> None:
    """Every person, report and part: 84 of 84 agree, before a referral, after it, and after its end."""
    for step in ("before", "referred", "ended"):
        if step == "referred":
            made.do("role", "appoint", REFERRAL)
            made.do("role", "activate", REFERRED, "--as", "brown")
            engine.appoint(REFERRAL)
            engine.activate(REFERRED, principal="brown")
        if step == "ended":
            made.do("role", "retract", REFERRAL)
            engine.retract(REFERRAL)
        for who in PEOPLE:
            assert shown(made.home, who) == answered(engine, who), (step, who)
    assert sum(shown(made.home, "nobody").values()) == 9, "three parts of seven, of three reports"


def test_an_explanation_knows_labels(made: Command) -> None:
    """Rights open every part to everybody here; what labels close is said to be closed, and of which rows it is not."""
    domain = maia.open(made.home)
    closed = domain.explain(REPORT, principal="nobody", attribute="patient-name")
    assert not closed
    assert "LABELS_CLOSE" in str(closed)
    assert domain.explain(REPORT, principal="nobody", attribute="hospital-ID")
    own = domain.explain(REPORT, principal="ali", attribute="path-report-text")
    assert own
    assert PATTERSON in str(own)


@pytest.mark.requirement("18.04")
def test_nothing_stops_a_report_from_its_doctor_and_what_does_is_named_by_its_tag(made: Command) -> None:
    """No rule keeps e2 from Ali, part by part, and it arrives; the name is kept from Chen by `identifiable` alone."""
    domain = maia.open(made.home)
    assert all(domain.explain(REPORT, principal="ali", attribute=part) for part in PARTS)
    [own] = [row for row in read_here(domain.home, REPORT, as_="ali") if row["patient-ID"] == PATTERSON]
    assert tuple(own[part] for part in PARTS) == ROWS[0]
    assert domain.explain(REPORT, principal="chen", attribute="path-report-text")
    closed = domain.explain(REPORT, principal="chen", attribute="patient-name")
    assert not closed
    assert "LABELS_CLOSE" in str(closed)
    assert "`identifiable`" in str(closed)
    assert "clinical" not in str(closed)
    assert {row["patient-name"] for row in read_here(domain.home, REPORT, as_="chen")} == {None}
    text = domain.explain(REPORT, principal="nobody", attribute="path-report-text")
    assert "`clinical(*)`" in str(text)
    assert "identifiable" not in str(text)


@pytest.mark.requirement("18.06")
def test_the_command_tells_who_sees_and_who_can_declassify(made: Command) -> None:
    """Tags of a role are those of now; a component that is added to the policy is on the list."""
    assert made.do("policy", "labels", "--as", "ali")["S"] == [f"clinical({PATTERSON})", "identifiable"]
    assert made.do("policy", "labels", "--as", "nobody")["S"] == []
    rows = made.do("policy", "labels")["labels"]
    assert {"type": REPORT, "attribute": "path-report-text", "S": ["clinical(*)"], "I": ["pathlab"]} in rows
    assert made.do("policy", "labels", "--tag", "identifiable")["declassify"] == []
    more = '[components.anonymiser]\ndoes = "pass"\ndeclassify = ["identifiable"]\nclients = ["lab"]\n'
    label(made, policy_of('"clinical", "identifiable"') + more)
    try:
        assert made.do("policy", "labels", "--tag", "identifiable")["declassify"] == ["anonymiser"]
        assert "anonymiser" in made("policy", "labels", "--tag", "identifiable").out
    finally:
        label(made, policy_of('"clinical", "identifiable"'))


@pytest.mark.requirement("18.07")
def test_a_fault_in_the_translation_is_found(made: Command, engine: PolicyEngine) -> None:
    """Leave one family out of the translation: somebody's cells and the policy's answers differ."""
    label(made, policy_of('"clinical"'))
    try:
        assert any(shown(made.home, who) != answered(engine, who) for who in PEOPLE)
    finally:
        label(made, policy_of('"clinical", "identifiable"'))


def test_revocation_moves_the_tag_on_and_takes_nothing_back(engine: PolicyEngine) -> None:
    """Brown is revoked: the next report has t2, which he does not hold; the earlier one stays open to him."""
    book = TagBook({"clinical"})
    engine.appoint(REFERRAL)
    engine.activate(REFERRED, principal="brown")
    assert book.follow(engine.privileges()) == ()
    name = f"clinical({PATTERSON})"
    earlier = Label(secrecy=frozenset({book.current(name)}))
    engine.retract(REFERRAL)
    assert book.follow(engine.privileges()) == (name,)
    later = Label(secrecy=frozenset({book.current(name)}))
    assert earlier != later
    assert read_as(PUBLIC, earlier, book.held("brown")) == earlier
    with pytest.raises(Exception, match="FLOW"):
        read_as(PUBLIC, later, book.held("brown"))
    for who in ("ali", "chen"):
        assert read_as(PUBLIC, later, book.held(who)) == later
        assert read_as(PUBLIC, earlier, book.held(who)) == earlier
    assert book.follow(engine.privileges()) == (), "who comes and stays moves nothing"


def test_a_terminal_outside_gives_no_tag_and_a_bridge_without_it_is_blocked() -> None:
    """The privilege needs a secure terminal: at home there is no tag; what carries it does not leave the network."""
    rules = parse_policy(
        "treating-doctor(self, p) <- referred(self, p)*\ntreating-doctor(d, p), ?secure-terminal(d) |- clinical(p)\n"
    )
    engine = PolicyEngine(rules)
    engine.appoint(f"referred(ali, '{PATTERSON}')")
    engine.activate(f"treating-doctor(ali, '{PATTERSON}')", principal="ali")
    report = Label(secrecy=frozenset({f"clinical({PATTERSON})"}))

    def holds() -> Any:
        book = TagBook({"clinical"})
        book.follow(engine.privileges())
        return book.held("ali")

    with pytest.raises(Exception, match="FLOW"):
        read_as(PUBLIC, report, holds())
    engine.observe("secure-terminal(ali)")
    inside = read_as(PUBLIC, report, holds())
    assert not can_flow(inside, PUBLIC), "a bridge to a domain without the tag"
    engine.retract("secure-terminal(ali)")
    with pytest.raises(Exception, match="FLOW"):
        read_as(PUBLIC, report, holds())
