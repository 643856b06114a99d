"""Labels at the edge: a terminal that is not secure, a bridge to another domain, and the batch after a secret."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pathology_world import LABELS, PARTS, PATTERSON, REPORT, ROWS, define, hospital, label, publish_reports
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom

import maia
from maia.errors import FlowError
from maia.testing import Command, publish_here, read_here

LETTER = "uk.nhs.letter"
TERMINAL = """\
treating-doctor(self, p) <- referred(self, p)*
treating-doctor(d, p), ?secure-terminal(d) |- clinical(p)
treating-doctor(d, p) |- identifiable
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Build the hospital, and a practice outside that reads its letters."""
    folder = tmp_path_factory.mktemp("outside")
    home = hospital(folder / "hospital")
    define(home, LETTER, ("hospital-ID", "letter"))
    practice = Command(folder / "practice")
    practice.do("domain", "init", str(practice.home), "--name", "practice", "--key")
    practice.keys("gp")
    given = ("domain", "invite-peer", "--for", "practice", "--give", f"doctor |- subscribe {LETTER}")
    (folder / "invitation").write_text(str(home.do(*given)["invitation"]), "utf-8")
    answer = practice.do("domain", "connect", str(folder / "invitation"), "--yes", "--reader", "gp")
    (folder / "answer").write_text(str(answer["answer"]), "utf-8")
    home.do("domain", "connect", str(folder / "answer"), "--yes")
    publish_reports(home)
    return home


def outside(made: Command) -> list[str]:
    """Read the letters as the practice does, in its own home."""
    there = maia.open(made.home.parent / "practice")
    there.follow()
    return sorted(str(row["letter"]) for row in read_here(there.home, LETTER, as_="gp"))


def letters(frame: Any, part: str) -> Any:
    """Make letters of one part of the reports."""
    return frame.select("hospital-ID", F.col(f"`{part}`").alias("letter"))


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.requirement("17.13")
@pytest.mark.requirement("17.05")
def test_what_a_secret_taints_and_what_crosses_a_bridge(spark: Any, made: Command) -> None:
    """A batch with a secret stays inside and the next one's public part leaves; with the tag, the bridge lets it by."""
    ali = maia.open(made.home).client("ali")
    first = ali.labelled(REPORT, where=f"lab-number = '{ROWS[0][3]}'")
    assert [row[0] for row in first.select("path-report-text").collect()] == [ROWS[0][5]]
    with pytest.raises(FlowError, match="`letter` may not flow"):
        letters(first, "path-report-text").publish(LETTER)
    # The next batch: she read a secret before, and what is public of this one still crosses to the other domain.
    row = dict(zip(PARTS, ROWS[0], strict=True)) | {"lab-number": "A10/21400"}
    table = pa.Table.from_pylist([row])
    assert maia.open(made.home).client("lab").publish(table, REPORT, publication="next").events == 1
    later = ali.labelled(REPORT, where="lab-number = 'A10/21400'")
    assert letters(later, "lab-number").publish(LETTER, publication="public").events == 1
    assert outside(made) == ["A10/21400"]
    # What was read before did not become public by it, nor does it taint less when it is put beside the next.
    both = later.select("hospital-ID").join(first.select("hospital-ID", "path-report-text"), "hospital-ID")
    for secret in (letters(first, "path-report-text"), letters(both, "path-report-text")):
        with pytest.raises(FlowError, match="`letter` may not flow"):
            secret.publish(LETTER)
    assert outside(made) == ["A10/21400"]
    # The tag on the bridge: the policy says that letters may be clinical.
    label(made, f'{LABELS}\n[types."{LETTER}"]\nletter = {{ S = ["clinical(*)"] }}\n')
    try:
        again = ali.labelled(REPORT, where=f"lab-number = '{ROWS[0][3]}'")
        assert letters(again, "path-report-text").publish(LETTER, publication="tagged").events == 1
        assert outside(made) == ["A10/21400", ROWS[0][5]]
    finally:
        label(made, LABELS)


@pytest.mark.requirement("17.13")
def test_the_privilege_needs_a_secure_terminal(tmp_path: Path) -> None:
    """`secure-terminal` false: clinical parts are refused; true: they are there; false again: gone again."""
    home = hospital(tmp_path / "hospital")
    rows = [dict(zip(PARTS, row, strict=True)) for row in ROWS]
    assert publish_here(maia.open(home.home).home, REPORT, rows, as_="lab", at=datetime.now(UTC)) == 3
    (home.home / "policy" / "terminal.rules").write_text(TERMINAL, "utf-8")
    home.do("policy", "apply")
    (tmp_path / "code").write_text(home.do("domain", "invite", "ali")["invitation"], "utf-8")
    home.do("domain", "join", str(home.home), "--as", "ali", "--invitation-file", str(tmp_path / "code"))
    home.do("role", "appoint", f"referred(ali, '{PATTERSON}')")
    home.do("role", "activate", f"treating-doctor(ali, '{PATTERSON}')", "--as", "ali")
    label(home, f'{LABELS.partition("[readers.")[0]}\n[roles]\ntags = ["clinical", "identifiable"]\n')

    def seen() -> tuple[bool, ...]:
        rows = {row["lab-number"]: row for row in read_here(maia.open(home.home).home, REPORT, as_="ali")}
        return tuple(rows[ROWS[0][3]][part] is not None for part in PARTS)

    assert seen() == (*[True] * 5, False, False)
    home.do("role", "observe", "secure-terminal(ali)")
    assert seen() == (*[True] * 7,)
    home.do("role", "retract", "secure-terminal(ali)")
    assert seen() == (*[True] * 5, False, False)
    assert "`clinical(*)`" in str(maia.open(home.home).explain(REPORT, principal="ali", attribute="path-report-text"))
