"""Sequences of flow tags: who loses one keeps what was open before, and what is published since has the next."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pathology_world import LABELS, PARTS, PATTERSON, REPORT, ROWS, SMITH, define, label

import maia
from maia.errors import DeniedError
from maia.testing import Command, publish_here, read_here

RULES = """\
treating-doctor(self, p) <- referred(self, p)*
treating-doctor(d, p) |- clinical(p)
ward-doctor(self, p) <- referred(self, p)*
ward-doctor(d, p), ?secure-terminal(d) |- clinical(p)
"""
BROWN = f"treating-doctor(brown, '{PATTERSON}')"
REFERRAL = f"referred(brown, '{PATTERSON}')"
TAG = f"clinical({PATTERSON})"
SEQUENCES = 'tags = ["clinical"]\nsequences = ["clinical"]\n'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a hospital once, in which Ali and Brown treat Patterson, with a report of before."""
    folder = tmp_path_factory.mktemp("sequences")
    home = Command(folder / "home")
    home.do("domain", "init", str(home.home), "--key")
    home.keys("lab", "ali", "brown", "both", "chen", "strict", "monitor", "nobody")
    define(home, REPORT, PARTS)
    (home.home / "policy" / "hospital.rules").write_text(RULES, "utf-8")
    home.do("policy", "apply")
    for name in ("ali", "brown"):
        (folder / name).write_text(home.do("domain", "invite", name)["invitation"], "utf-8")
        home.do("domain", "join", str(home.home), "--as", name, "--invitation-file", str(folder / name))
        home.do("role", "appoint", f"referred({name}, '{PATTERSON}')")
        home.do("role", "activate", f"treating-doctor({name}, '{PATTERSON}')", "--as", name)
    sequences(home)
    publish(home, "t1")
    return home.home


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Command:
    """Give a copy that a test may change."""
    shutil.copytree(built, tmp_path / "home")
    return Command(tmp_path / "home")


def sequences(home: Command, roles: str = SEQUENCES) -> None:
    """Label by roles, whose tags move on."""
    types = LABELS.partition('[types."uk.nhs.comment"]')[0]
    label(home, f"{types}\n[roles]\n{roles}")


def publish(home: Command, number: str, patient: str = PATTERSON) -> None:
    """Let the laboratory publish a report."""
    row = dict(zip(PARTS, ROWS[0], strict=True)) | {"lab-number": number, "patient-ID": patient}
    assert publish_here(maia.open(home.home).home, REPORT, [row], as_="lab", at=datetime.now(UTC)) == 1


def retract(home: Command, fact: str = REFERRAL) -> None:
    """Take a fact back, in a later second than all that was published."""
    next_second()
    home.do("role", "retract", fact)


def next_second() -> None:
    """Let the second end in which something was published: the register counts whole ones."""
    published = datetime.now(UTC).replace(microsecond=0)
    while datetime.now(UTC).replace(microsecond=0) == published:
        pass


def read(home: Command, who: str) -> dict[str, bool]:
    """Say of each report whether somebody sees its text; its number everybody does."""
    found = read_here(maia.open(home.home).home, REPORT, as_=who)
    return {str(row["lab-number"]): row["path-report-text"] is not None for row in found}


@pytest.mark.requirement("17.09")
def test_who_is_revoked_reads_the_earlier_report_and_not_the_later(home: Command) -> None:
    """Brown is revoked: the report labelled t2 is closed to him, the one labelled t1 stays open; Ali reads both."""
    assert read(home, "brown") == {"t1": True}
    assert home.do("policy", "labels", "--tag", TAG)["sequence"] == [{"tag": TAG, "until": None}]
    retract(home)
    publish(home, "t2")
    assert read(home, "brown") == {"t1": True, "t2": False}
    assert read(home, "ali") == {"t1": True, "t2": True}
    assert read(home, "nobody") == {"t1": False, "t2": False}
    first, second = home.do("policy", "labels", "--tag", TAG)["sequence"]
    assert (first["tag"], second) == (TAG, {"tag": f"{TAG}#2", "until": None})
    told = home.do("policy", "labels", "--as", "brown")
    assert (told["S"], told["lost"]) == ([], {TAG: first["until"]})
    assert f"{TAG}#2" in home("policy", "labels", "--tag", TAG).out
    # Of another patient nothing was ever open to him.
    publish(home, "smith", SMITH)
    assert read(home, "brown") == {"t1": True, "t2": False, "smith": False}
    # Referred again he reads everything; revoked again, what was published until then.
    home.do("role", "appoint", REFERRAL)
    home.do("role", "activate", BROWN, "--as", "brown")
    assert read(home, "brown") == {"t1": True, "t2": True, "smith": False}
    retract(home)
    publish(home, "t3")
    assert read(home, "brown") == {"t1": True, "t2": True, "t3": False, "smith": False}
    assert len(home.do("policy", "labels", "--tag", TAG)["sequence"]) == 3


def test_no_filter_reads_by_what_is_open_of_before(home: Command) -> None:
    """A filter over a part that only earlier events open is refused: what it finds among later ones would tell."""
    retract(home)
    publish(home, "t2")
    with pytest.raises(DeniedError, match="FILTER_NOT_AUTHORISED"):
        read_here(maia.open(home.home).home, REPORT, as_="brown", where="path-report-text = 'Large solid tumour'")


def test_without_a_sequence_a_loss_closes_everything(home: Command) -> None:
    """The policy says which tags move on; the loss of others closes what was open, as does a stricter rule."""
    retract(home)
    assert read(home, "brown") == {"t1": True}
    sequences(home, 'tags = ["clinical"]\n')
    assert read(home, "brown") == {"t1": False}
    sequences(home)
    (home.home / "policy" / "hospital.rules").write_text(RULES.replace("clinical(p)", "other(p)"), "utf-8")
    home.do("policy", "apply")
    assert read(home, "brown") == {"t1": False}
    sequences(home, 'tags = []\nsequences = ["clinical"]\n')
    assert "LABELS_UNKNOWN" in home.refused("policy", "labels")[1]


def test_what_lapsed_opens_nothing_of_before(home: Command) -> None:
    """A role whose time was over is found out later: since when it was no more nobody wrote, so nothing is kept."""
    publish(home, "smith", SMITH)
    next_second()
    now = datetime.now(UTC)
    ended, before = ((now - timedelta(minutes=minutes)).isoformat(timespec="seconds") for minutes in (30, 50))
    home.do("role", "appoint", f"referred(brown, '{SMITH}')", "--until", ended, "--at", before)
    home.do("role", "activate", f"treating-doctor(brown, '{SMITH}')", "--as", "brown", "--at", before)
    assert home.do("policy", "labels", "--as", "brown")["S"] == [TAG]
    assert ("lapse", "brown") in {(line["action"], line["who"]) for line in home.do("domain", "journal")["lines"]}
    assert read(home, "brown") == {"t1": True, "smith": False}


def test_conditions_hold_for_what_was_open_before_too(home: Command) -> None:
    """A lost role gives what it would give now: away from the secure terminal nothing, back at it what was before."""
    retract(home)
    referral, role = f"referred(brown, '{SMITH}')", f"ward-doctor(brown, '{SMITH}')"
    home.do("role", "appoint", referral)
    home.do("role", "activate", role, "--as", "brown")
    publish(home, "smith", SMITH)
    home.do("role", "observe", "secure-terminal(brown)")
    assert read(home, "brown") == {"t1": True, "smith": True}
    retract(home, referral)
    publish(home, "later", SMITH)
    assert read(home, "brown") == {"t1": True, "smith": True, "later": False}
    home.do("role", "retract", "secure-terminal(brown)")
    assert read(home, "brown") == {"t1": True, "smith": False, "later": False}


@pytest.mark.parametrize("ending", ["withdrawn before", "ended by the policy that gives"])
def test_a_rule_of_today_opens_nothing_of_before_to_who_never_held_the_tag(
    home: Command, tmp_path: Path, ending: str
) -> None:
    """Chen's visits gave no tag, and are over: that visitors may read from now on opens no report to him."""
    call, visit = f"called(chen, '{PATTERSON}')", "visitor(self, p) <- called(self, p)*\n"
    policy(home, f"{RULES}{visit}visitor(d, p) |- flowers(p)\n")
    (tmp_path / "chen").write_text(home.do("domain", "invite", "chen")["invitation"], "utf-8")
    home.do("domain", "join", str(home.home), "--as", "chen", "--invitation-file", str(tmp_path / "chen"))
    home.do("role", "appoint", call)
    home.do("role", "activate", f"visitor(chen, '{PATTERSON}')", "--as", "chen")
    assert read(home, "chen") == {"t1": False}
    if ending == "withdrawn before":
        retract(home, call)
    else:
        next_second()
        visit = "visitor(self, p) <- invited(self, p)*\n"
    policy(home, f"{RULES}{visit}visitor(d, p) |- clinical(p)\n")
    publish(home, "t2")
    assert ("fall", "chen") in {(line["action"], line["who"]) for line in home.do("domain", "journal")["lines"]}
    assert read(home, "chen") == {"t1": False, "t2": False}
    assert home.do("policy", "labels", "--as", "chen")["lost"] == {}
    # Who held it keeps it, by the policy of then and of now; where one of them gives nothing, nothing is kept.
    retract(home)
    publish(home, "t3")
    assert read(home, "brown") == {"t1": True, "t2": True, "t3": False}
    lost = {(line["who"], line["what"]) for line in home.do("domain", "journal")["lines"] if line["action"] == "lose"}
    assert ("brown", f"{BROWN.replace(chr(39), '')} |- {TAG}") in {(who, what.replace("'", "")) for who, what in lost}


def policy(home: Command, rules: str) -> None:
    """Put rules in force."""
    (home.home / "policy" / "hospital.rules").write_text(rules, "utf-8")
    home.do("policy", "apply")
