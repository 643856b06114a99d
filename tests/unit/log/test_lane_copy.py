"""Copying lanes: whatever is cut off or spoilt, and whenever, what is there is whole and what is missing comes once."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maia.errors import EncodingError, UnavailableError
from maia.log import START, CopiedLane, DirectoryStore, LaneMark, LogDirectory, OwnLanes, all_lanes, copy_lane
from maia.log.lane_objects import LaneId, LaneRecord, sign_record
from maia.principals import KeySigner
from maia.testing import LaneOf

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
ORIGIN = KeySigner(bytes([1]) * 32)
TYPE = "ab" * 32
LANE = LaneId(kind="events", owner=ORIGIN.public_key.key_id, topic=TYPE)


class Served:
    """A log with a lane of some commits, each with a segment."""

    def __init__(self, root: Path, count: int) -> None:
        self.path, self.own = root / "served", root / "own"
        self.lane = LaneOf(self.path, TYPE, ORIGIN, self.own, evidence=(b"certificate",))
        for number in range(count):
            self.add(number)
        self.lane.assert_end(at=NOW + timedelta(seconds=count))
        self.store = DirectoryStore(self.path)

    def add(self, number: int) -> None:
        """Commit one more."""
        table = pa.table({"x": [f"row {number}"] * 10})
        self.lane.commit(f"p{number}", at=NOW + timedelta(seconds=number), table=table)

    def objects(self) -> dict[str, bytes]:
        """Read all that counts: records, segments, evidence, and the head."""
        return objects(self.path)


def objects(path: Path) -> dict[str, bytes]:
    """Read all objects of a log but what its writer alone keeps."""
    files = (file for file in path.rglob("*") if file.is_file() and file.name != "names")
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


class Failing(DirectoryStore):
    """A store whose process is killed at its n-th write."""

    left = 0

    def put_new(self, name: str, data: bytes) -> bool:
        """Write, unless it is over."""
        self._count()
        return super().put_new(name, data)

    def put(self, name: str, data: bytes) -> None:
        """Write, unless it is over."""
        self._count()
        super().put(name, data)

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise UnavailableError("it is over", code="KILLED")


def copied(served: Served, target: Path, mark: LaneMark | None = None, **more: int) -> CopiedLane:
    """Copy once."""
    return copy_lane(served.store, DirectoryStore(target), LANE, mark=mark, **more)


def alarm(done: CopiedLane) -> str:
    """Tell why it stopped."""
    return "" if done.alarm is None else done.alarm.code


@pytest.fixture
def served(tmp_path: Path) -> Served:
    """Give a log with six commits."""
    return Served(tmp_path, 6)


def test_a_copy_is_the_lane_octet_for_octet(served: Served, tmp_path: Path) -> None:
    """Records, segments, evidence and head; the second time there is nothing to do."""
    done = copied(served, tmp_path / "copy")
    assert (done.records, done.events, done.more, alarm(done)) == (6, 60, False, "")
    assert objects(tmp_path / "copy") == served.objects()
    assert copied(served, tmp_path / "copy", done.mark).octets == 0
    assert list(all_lanes(DirectoryStore(tmp_path / "copy"))) == [LANE]
    assert list(all_lanes(DirectoryStore(tmp_path / "copy"), ["cd" * 32])) == []


def test_killed_at_every_write_it_goes_on_and_a_record_is_never_there_without_what_it_names(
    served: Served, tmp_path: Path
) -> None:
    """The copy is the cursor: no file beside it is needed to go on."""
    for writes in range(15):
        path = tmp_path / f"copy-{writes}"
        store = Failing(path)
        store.left = writes
        with suppress(UnavailableError):
            copy_lane(served.store, store, LANE)
        log = LogDirectory(path)
        for lane in log.lanes([TYPE]):
            assert lane.alarm is None
            for commit in lane.commits():
                assert log.evidence(bytes.fromhex(commit.evidence))
                for file in commit.files:
                    lane.check(file)
        before = len(list(path.rglob("*.record")))
        assert copied(served, path).records == 6 - before
        assert objects(path) == served.objects()


def test_a_long_lane_comes_in_turns_and_its_head_at_the_end(served: Served, tmp_path: Path) -> None:
    """A head counts only what is there, or readers would see a gap."""
    mark, turns = None, 0
    while turns < 10:
        done = copied(served, tmp_path / "copy", mark, most=2)
        mark, turns = done.mark, turns + 1
        if not done.more:
            break
        assert not (tmp_path / "copy" / LANE.head_name).exists() or done.mark.place.number == 5
    assert turns == 4
    assert objects(tmp_path / "copy") == served.objects()


def test_what_others_put_into_the_copy_gives_way(served: Served, tmp_path: Path) -> None:
    """Junk in the place of a record, of evidence and of a segment is exchanged for what was signed."""
    target = DirectoryStore(tmp_path / "copy")
    for name in served.objects():
        target.put(name, b"junk")
    assert alarm(copied(served, tmp_path / "copy")) == ""
    assert objects(tmp_path / "copy") == served.objects()


def test_a_large_segment_passes_over_the_disk(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into memory is compared on its way to a file without a name, and what was cut off goes."""
    monkeypatch.setattr("maia.log.lane_copy._IN_MEMORY", 10)
    name = next(name for name in served.objects() if name.endswith(".parquet"))
    DirectoryStore(tmp_path / "copy").put(name, b"cut off")
    assert alarm(copied(served, tmp_path / "copy")) == ""
    assert objects(tmp_path / "copy") == served.objects()


def test_what_expired_is_counted_and_copying_begins_at_the_floor(served: Served, tmp_path: Path) -> None:
    """The floor is the origin's own word; the records below it are gone for everybody."""
    done = copied(served, tmp_path / "early", most=2)
    lanes = OwnLanes(LogDirectory(served.path), served.own, ORIGIN)
    lanes.writer(TYPE).forget(3, at=NOW + timedelta(minutes=1))
    fresh = copied(served, tmp_path / "fresh")
    assert (fresh.records, fresh.expired, alarm(fresh)) == (2, 4, "")
    late = copied(served, tmp_path / "early", done.mark)
    assert (late.records, late.expired, alarm(late)) == (2, 2, "")
    lane = LogDirectory(tmp_path / "early").lanes([TYPE])[0]
    assert (lane.count, lane.alarm) == (6, None)


def test_evidence_that_is_not_served_is_waited_for(served: Served, tmp_path: Path) -> None:
    """A record without its evidence would never be judged, and nobody would fetch it any more."""
    (evidence,) = (served.path / "_evidence").iterdir()
    data = evidence.read_bytes()
    evidence.write_bytes(b"another")
    assert alarm(copied(served, tmp_path / "copy")) == "EVIDENCE_MISSING"
    evidence.write_bytes(data)
    assert copied(served, tmp_path / "copy").records == 6


def test_two_neighbours_that_show_two_truths_are_found(served: Served, tmp_path: Path) -> None:
    """The copy holds what one neighbour served; another that serves a fork of it contradicts a signed record."""
    copied(served, tmp_path / "copy", most=3)
    other = DirectoryStore(tmp_path / "other")
    forked = _fork(served, 2)
    for name, data in served.objects().items():
        other.put(name, data)
    other.put(LANE.record_name(2), forked.raw)
    done = copy_lane(other, DirectoryStore(tmp_path / "copy"), LANE, mark=LaneMark())
    assert alarm(done) == ""  # it continues what is here; what lies behind is not asked for
    done = copy_lane(other, DirectoryStore(tmp_path / "second"), LANE)
    assert (alarm(done), len(done.contrary)) == ("LANE_FORKED", 2)


def test_a_served_log_that_goes_back_is_named(served: Served, tmp_path: Path) -> None:
    """Fewer records, an older head, no head, another record: each with what proves it."""
    done = copied(served, tmp_path / "copy")
    whole = served.objects()
    served.store.delete(LANE.record_name(5))
    gone = copied(served, tmp_path / "copy", done.mark)
    assert (alarm(gone), gone.contrary) == ("LANE_ROLLED_BACK", (whole[LANE.record_name(5)], whole[LANE.head_name]))
    served.store.put(LANE.record_name(5), _fork(served, 5).raw)
    assert alarm(copied(served, tmp_path / "copy", done.mark)) == "LANE_FORKED"
    served.store.put(LANE.record_name(5), whole[LANE.record_name(5)])
    served.store.delete(LANE.head_name)
    assert alarm(copied(served, tmp_path / "copy", done.mark)) == "LANE_ROLLED_BACK"
    served.store.put(LANE.head_name, whole[LANE.head_name])
    assert alarm(copied(served, tmp_path / "copy", done.mark)) == ""


def test_a_mark_is_read_as_it_was_written(served: Served, tmp_path: Path) -> None:
    """With the head, whose octets are anything."""
    mark = copied(served, tmp_path / "copy").mark
    assert LaneMark.parse(mark.to_bytes()) == mark
    assert LaneMark.parse(LaneMark().to_bytes()).place == START


@given(st.binary(max_size=200))
def test_no_octets_break_a_mark(data: bytes) -> None:
    """A file that somebody damaged is told as one."""
    with suppress(EncodingError):
        LaneMark.parse(data)


def _fork(served: Served, number: int) -> LaneRecord:
    """Sign another record of a number, as only the origin can."""
    from maia.log import parse_record

    before = parse_record(LANE, number - 1, served.objects()[LANE.record_name(number - 1)])
    return sign_record(LANE, before.place, stamp=before.stamp + 1, body=b"another truth", signer=ORIGIN)
