"""Lanes are found whatever else lies beside them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from maia.log import LogDirectory, lane_search
from maia.log.commits import Commit
from maia.log.own_lanes import OwnLanes
from maia.principals import KeySigner

TYPE = "ab" * 32
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with the lane of one origin."""
    lanes = OwnLanes(LogDirectory(tmp_path / "log"), tmp_path / "own", KeySigner(b"o" * 32))
    lanes.commit("first", TYPE, (), evidence="00" * 32, at=NOW)
    return tmp_path / "log"


def found(log: Path) -> list[str]:
    """Name the owners of the lanes that a reader with a judge looks at."""

    def admits(commit: Commit) -> str | None:
        return "owner" if commit.publication == "first" else None

    return [lane.name[-64:] for lane in LogDirectory(log, judge=lambda: admits).lanes([TYPE])]


def test_pages_of_strangers_do_not_end_the_search(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pages of folders that sort before the lane, and names that are none among them."""
    monkeypatch.setattr(lane_search, "MAX_LANES", 4)
    monkeypatch.setattr(lane_search, "_PAGE", 8)
    for number in range(100):
        (log / f"type={TYPE}" / f"origin={number:064x}").mkdir()
        (log / f"type={TYPE}" / f"origin={number:063x}-").mkdir()
    assert found(log) == [KeySigner(b"o" * 32).public_key.key_id.hex()]


def test_folders_that_are_no_types_hide_no_type(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for all types finds those there are."""
    monkeypatch.setattr("maia.log.directory.MAX_TYPES", 10)
    for number in range(50):
        (log / f"type=!{number:06d}").mkdir()
    assert [lane.name.partition("/")[0] for lane in LogDirectory(log).lanes()] == [TYPE]
