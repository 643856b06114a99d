"""`maia log`: what the log shows, compaction, expiry and sweeping from the command line."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clinic import build, data_files, publish_here

from maia.home import Home
from maia.log import LogDirectory, OwnLanes
from maia.principals import KeySigner
from maia.testing import Command


@pytest.fixture
def home(maia: Any) -> Home:
    """Give the clinic with three publications."""
    made = build(maia)
    for number in range(3):
        publish_here(made, f"day-{number}", [f"Ada {number}", "Ben"])
    return made


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two days pass."""
    instant = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)
    monkeypatch.setattr("maia.cli.log.command.now", lambda: instant)


def test_show_lists_commits_and_no_values(maia: Any, home: Home) -> None:
    """Type, broker and counts are there; patients are not."""
    ran = maia("log", "show")
    assert ran.code == 0
    assert all(f"day-{number}" in ran.out for number in range(3))
    assert "clinic.Result" in ran.out
    assert "Ada" not in ran.out
    data = maia("log", "show", "--limit", "2", "--json").data
    assert [row["publication"] for row in data["commits"]] == ["day-1", "day-2"]
    assert ([lane["place"].split(":")[0] for lane in data["lanes"]], data["expired"]) == (["2"], 0)
    assert data["commits"][0]["events"] == 2


def test_show_of_an_empty_log_says_so(maia: Any) -> None:
    """An empty log is no error."""
    build(maia)
    ran = maia("log", "show")
    assert (ran.code, ran.out) == (0, "")
    assert "empty" in ran.err


def test_log_of_no_home_is_not_found(maia: Any) -> None:
    """Without a home there is no log."""
    ran = maia("log", "show", "--json")
    assert (ran.code, ran.data["error"]) == (5, "NO_HOME")


def test_compact_rewrites_and_says_what(maia: Any, home: Home) -> None:
    """Three files become one; a dry run changes nothing; the second time there is nothing to do."""
    assert "would rewrite 3 files into 1" in maia("log", "compact", "--dry-run").out
    assert len(data_files(home)) == 3
    assert maia("log", "compact", "--json").data["after"] == 1
    assert len(data_files(home)) == 1
    assert "nothing to rewrite" in maia("log", "compact").out


def test_expire_needs_a_confirmation(maia: Any, home: Home, later: None) -> None:
    """Without --yes somebody has to say yes; nothing happens else."""
    ran = maia("log", "expire", "--older-than", "1d", stdin="n\n")
    assert (ran.code, "CONFIRMATION_MISSING" in ran.err) == (2, True)
    assert len(data_files(home)) == 3
    assert "would expire 3 commits, 6 events" in maia("log", "expire", "--older-than", "1d", "--dry-run").out
    assert len(data_files(home)) == 3


def test_expire_removes_and_remembers(maia: Any, home: Home, later: None) -> None:
    """What is old goes, the log says so, and the audit keeps it."""
    assert maia("log", "expire", "--older-than", "3d", "--yes").out == "nothing is that old\n"
    data = maia("log", "expire", "--older-than", "1d", "--yes", "--json").data
    assert (data["commits"], data["events"], list(data["lanes"].values()), data["done"]) == (3, 6, [2], True)
    assert data_files(home) == []
    assert "expired" in maia("log", "show").err
    [row] = maia("audit", "--kind", "expire", "--json").data["rows"]
    assert (row["events"], row["source"]) == (6, "own lanes")


def test_sweep_removes_what_nothing_names(maia: Any, home: Home, later: None) -> None:
    """A stray file goes, after a confirmation; committed ones stay."""
    stray = data_files(home)[0].with_name("stray.parquet")
    stray.write_bytes(b"x")
    assert "stray.parquet" in maia("log", "sweep", "--older-than", "1d", "--dry-run").out
    assert stray.exists()
    assert maia("log", "sweep", "--older-than", "1d").code == 2
    assert stray.exists()
    assert "stray.parquet" in maia("log", "sweep", "--older-than", "1d", "--yes").out
    assert (stray.exists(), len(data_files(home))) == (False, 3)


REFUSED = {
    "an age without a unit": (("expire", "--older-than", "30"), "AGE_TEXT"),
    "an age before all time": (("expire", "--older-than", "999999y"), "AGE_TEXT"),
    "a size of nothing": (("compact", "--target", "0"), "SIZE_TEXT"),
    "a size in words": (("compact", "--target", "big"), "SIZE_TEXT"),
}


@pytest.mark.parametrize("args, code", REFUSED.values(), ids=REFUSED)
def test_log_refuses(maia: Any, home: Home, args: tuple[str, ...], code: str) -> None:
    """Ages and sizes are read strictly."""
    ran = maia("log", *args, "--json")
    assert (ran.code, ran.data["error"]) == (2, code)


def test_a_strangers_stamp_from_the_far_future_is_shown(tmp_path: Path) -> None:
    """Whoever can write to the log chooses the stamps of its own lane; everybody else sees them, and goes on."""
    home = Command(tmp_path / "home")
    home.do("domain", "init", str(tmp_path / "home"), "--name", "clinic", "--key")
    log = LogDirectory(tmp_path / "home" / "log")
    eve = OwnLanes(log, tmp_path / "eve", KeySigner(b"e" * 32))
    eve.commit("x", "ab" * 32, (), evidence="00" * 32, at=datetime.now(UTC), stamp=(1 << 53) - 1)
    assert home("log", "show").code == 0
    assert [item["at"][:4] for item in home.do("log", "show")["commits"]] == ["9999"]


def test_a_lost_segment_is_named_by_whoever_looks(maia: Any, home: Home) -> None:
    """`reassert` says what it looked at, `compact` fails with a code, `doctor` names the file."""
    lost, cut = data_files(home)[:2]
    lost.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])
    assert "every record" in maia("log", "reassert").out
    ran = maia("log", "compact", "--json")
    assert ran.data["error"] == "LOG_FILE_MISSING"
    found = [item["detail"] for item in maia("doctor", "--json").data["findings"] if item["name"] == "log"]
    assert len(found) == 2
    assert any(lost.name in text and "LOG_FILE_MISSING" in text for text in found)
    assert any(cut.name in text and "LOG_FILE_DAMAGED" in text for text in found)


def test_only_the_digest_sees_what_keeps_its_size(maia: Any, home: Home) -> None:
    """`doctor` compares sizes; with `--digests` it reads."""
    changed = data_files(home)[0]
    data = bytearray(changed.read_bytes())
    data[len(data) // 2] ^= 1
    changed.write_bytes(bytes(data))

    def named(*more: str) -> list[str]:
        found = maia("doctor", *more, "--json").data["findings"]
        return [item["detail"] for item in found if item["name"] == "log"]

    assert named() == []
    assert ["LOG_FILE_DAMAGED" in text for text in named("--digests")] == [True]
