"""Lanes that never end: whoever serves one holds nobody for ever, and fills neither memory nor disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from maia.errors import EncodingError, NotFoundError
from maia.log import START, DirectoryStore, copy_lane
from maia.log.commits import Commit, LogFile, Moved, write_commit, write_moves
from maia.log.lane import LaneReader
from maia.log.lane_objects import LaneId, LaneRecord, sign_record
from maia.log.store import OpenObject
from maia.principals import KeySigner

OWNER = KeySigner(bytes([7]) * 32)
TYPE = "ab" * 32
LANE = LaneId(kind="events", owner=OWNER.public_key.key_id, topic=TYPE)
DAY = f"{LANE.folder}/date=2026-01-01"


class Endless:
    """A served log with a commit of one segment, and signed records behind it for as long as somebody asks."""

    def __init__(self, size: int = 10) -> None:
        file = LogFile(f"{DAY}/a.parquet", size, "00" * 32, 1, 1, 1, 1, ("11" * 16,))
        commit = Commit(0, "p", TYPE, LANE.owner.hex(), "00" * 32, (file,), stamp=10)
        self.records: list[LaneRecord] = [sign_record(LANE, START, stamp=10, body=_commit(commit), signer=OWNER)]

    def get(self, name: str, *, limit: int) -> bytes:
        """Give a record."""
        if not name.endswith(".record"):
            raise NotFoundError("none", code="NO_OBJECT")
        number = int(name[-19:-7])
        assert number < 2000, "it is asked for ever"
        while len(self.records) <= number:
            last = self.records[-1].place
            body = write_moves({f"{DAY}/{last.number}.parquet": Moved(f"{DAY}/y.segments", 0)}, LANE.folder)
            self.records.append(sign_record(LANE, last, stamp=11 + last.number, body=body, signer=OWNER))
        data = self.records[number].raw
        if len(data) > limit:
            raise EncodingError("too large", code="OBJECT_UNFIT")
        return data

    def open(self, name: str, *, limit: int) -> OpenObject:
        """Serve no segment."""
        raise NotFoundError(name, code="NO_OBJECT")

    def list_folders(self, *_args: object, **_more: object) -> list[str]:
        """List nothing."""
        return []


def _commit(commit: Commit) -> bytes:
    return write_commit(commit, LANE.folder)


@pytest.mark.parametrize("bound", ["_AHEAD_RECORDS", "_AHEAD_OCTETS"])
def test_where_a_segment_was_moved_is_looked_for_so_far_and_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """A lane that names a segment that is not served, and goes on for ever with moves of others, is parked."""
    monkeypatch.setattr(f"maia.log.lane_copy.{bound}", {"_AHEAD_RECORDS": 600, "_AHEAD_OCTETS": 200_000}[bound])
    source = Endless()
    done = copy_lane(source, DirectoryStore(tmp_path), LANE)
    assert done.alarm is not None
    assert (done.alarm.code, done.records) == ("LOG_FILE_MISSING", 0)
    assert done.passed >= 256  # what was only looked at is counted, for the budget of a round


def test_a_commit_of_more_than_a_copy_may_hold_is_damaged(tmp_path: Path) -> None:
    """Before anything of it is asked for: its origin says how large its segments are."""
    done = copy_lane(Endless(size=1 << 39), DirectoryStore(tmp_path), LANE)
    assert done.alarm is not None
    assert (done.alarm.code, done.passed) == ("LOG_FILE_DAMAGED", 0)


def test_a_page_holds_so_many_octets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And copying goes on behind it, here as there."""
    source = Endless()
    source.records = [sign_record(LANE, START, stamp=1, body=b"x" * 5000, signer=OWNER)]
    page = LaneReader(source, LANE).since(limit=256, octets=10_000)
    assert (page.more, page.alarm, len(page.records) < 256) == (True, None, True)
    assert sum(len(record.raw) for record in page.records) < 15_000
    monkeypatch.setattr("maia.log.lane_copy._PAGE_OCTETS", 10_000)
    mark, target = None, DirectoryStore(tmp_path)
    for _ in range(3):
        done = copy_lane(source, target, LANE, mark=mark)
        assert (done.more, done.alarm, 0 < done.records < 256) == (True, None, True)
        mark = done.mark
    assert (
        copy_lane(source, target, LANE).mark.place.number > mark.place.number
    )  # the copy is the cursor, in pages as well
