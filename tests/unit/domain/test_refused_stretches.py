"""What the audit says of a stretch of the log that a client was refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))

from clinic import TYPE, build, publish_here

from maia.domain import Domain, TypePart, find_type, note_refused
from maia.testing import Command


@pytest.mark.parametrize("count, said", [(1, f"1 commit of {TYPE}"), (2, f"2 commits of {TYPE}")])
def test_commits_are_counted_in_words(tmp_path: Path, count: int, said: str) -> None:
    """One is one."""
    command = Command(tmp_path / "clinic")
    home = build(command)
    publish_here(home, "monday", ["Ada"])
    with Domain.open(home.path) as domain:
        commit = domain.lanes.find("monday")
        assert commit is not None
        part = TypePart(name=find_type(home, TYPE), commits=(commit,) * count, plan=None, code="NO_EVIDENCE")
        note_refused(domain, part, "visitor")
    rows = command.do("audit", "--kind", "refuse")["rows"]
    assert [row["source"] for row in rows] == [said]
