"""Upkeep goes by what the owner of a lane committed, whatever somebody took out of the log meanwhile."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.errors import UnavailableError
from maia.log import LogDirectory, LogFile, OwnLanes, sweep
from maia.log.lane_writer import LaneWriter
from maia.principals import KeySigner

AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
TYPE = "ab" * 32


@pytest.fixture
def lanes(tmp_path: Path) -> tuple[LogDirectory, OwnLanes, Path]:
    """Give a lane of twenty commits with a segment each, all of them old."""
    log = LogDirectory(tmp_path / "log")
    own = OwnLanes(log, tmp_path / "own", KeySigner(b"o" * 32))
    folder = own.writer(TYPE).lane.folder
    for number in range(20):
        path, stamp = f"{folder}/date=2026-06-01/{number:040d}.parquet", number + 1
        log.store.put(path, b"x")
        file = LogFile(path, 1, hashlib.sha256(b"x").hexdigest(), 1, 1, stamp, stamp, ("00" * 16,))
        own.commit(f"p{number}", TYPE, (file,), evidence="00" * 32, at=AT)
        os.utime(tmp_path / "log" / path, (1, 1))
    return LogDirectory(tmp_path / "log"), own, tmp_path / "log" / folder


def test_sweeping_removes_nothing_behind_a_record_that_somebody_took(
    lanes: tuple[LogDirectory, OwnLanes, Path],
) -> None:
    """The record is put again from the owner's own, and what it and the later ones name stays."""
    log, own, folder = lanes
    (folder / f"{2:012d}.record").unlink()
    (folder / "date=2026-06-01" / "left.parquet").write_bytes(b"y")
    os.utime(folder / "date=2026-06-01" / "left.parquet", (1, 1))
    removed = sweep(log, own, keep_newer_than=AT - timedelta(days=1))
    assert [Path(name).name for name in removed] == ["left.parquet"]
    assert (folder / f"{2:012d}.record").is_file()


def test_while_somebody_keeps_taking_records_nothing_is_swept(
    lanes: tuple[LogDirectory, OwnLanes, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not shown whole is not swept."""
    log, own, folder = lanes
    (folder / f"{2:012d}.record").unlink()
    monkeypatch.setattr(LaneWriter, "restore", lambda *_, **__: 0)
    with pytest.raises(UnavailableError) as refused:
        sweep(log, own, keep_newer_than=AT - timedelta(days=1))
    assert refused.value.code == "LANE_CHANGING"
    assert len(list(folder.glob("date=*/*.parquet"))) == 20
