"""Lanes: what their owner signed is read in order; what others put there means nothing."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.errors import MaiaError, UnavailableError, UsageError
from maia.log import DirectoryStore
from maia.log.lane import LaneReader, find_lanes
from maia.log.lane_objects import START, LaneId, LaneRecord, Place, sign_record
from maia.log.lane_writer import LaneWriter
from maia.principals import KeySigner

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MET, OTHER = KeySigner(bytes([1]) * 32), KeySigner(bytes([2]) * 32)
LANE = LaneId(kind="statement", owner=MET.public_key.key_id, topic="list")


class World:
    """A shared store, a home's own record, and the lane in them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = DirectoryStore(path / "log")
        self.reader = LaneReader(self.store, LANE)
        self.folder = path / "log" / LANE.folder

    def writer(self, home: str = "home") -> LaneWriter:
        """Another process of the same home."""
        return LaneWriter(self.store, LANE, MET, DirectoryStore(self.path / home, private=True))

    def say(self, *bodies: bytes) -> list[LaneRecord]:
        """Append, one second after the other."""
        writer = self.writer()
        return [writer.append(body, at=NOW) for body in bodies]

    def file(self, number: int) -> Path:
        """The object of a record."""
        return self.folder / f"{number:012d}.record"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An empty lane."""
    return World(tmp_path)


def bodies(world: World, place: Place = START) -> list[bytes]:
    """Read on, without an alarm."""
    found = world.reader.since(place)
    assert found.alarm is None
    return [record.body for record in found.records]


def code(world: World, place: Place = START) -> str:
    """Read on, and tell the alarm."""
    found = world.reader.since(place)
    assert found.alarm is not None
    return found.alarm.code


def test_records_come_in_order_and_once(world: World) -> None:
    """A cursor is a number and a digest; reading on from it gives what came since."""
    assert bodies(world) == []
    first, second = world.say(b"a", b"b")
    assert (first.number, second.number) == (0, 1)
    assert second.previous == first.digest
    assert second.stamp > first.stamp
    assert bodies(world) == [b"a", b"b"]
    assert bodies(world, first.place) == [b"b"]
    assert world.reader.since(limit=1).place == first.place
    assert [lane.owner for lane in find_lanes(world.store, "statement", "list")] == [LANE.owner]


def test_what_the_owner_did_not_sign_is_ignored_and_counted(world: World) -> None:
    """Junk, other people's records, records of other lanes and numbers: as if they were not there."""
    (first,) = world.say(b"a")
    other = LaneId(kind="statement", owner=OTHER.public_key.key_id, topic="list")
    elsewhere = LaneId(kind="statement", owner=LANE.owner, topic="other")
    junk = {
        "octets": b"\xff" * 100,
        "empty": b"",
        "someone else's": sign_record(other, first.place, stamp=9, body=b"x", signer=OTHER).raw,
        "of another lane": sign_record(elsewhere, first.place, stamp=9, body=b"x", signer=MET).raw,
        "of another number": first.raw,
        "huge": bytes(5 << 20),
    }
    for name, data in junk.items():
        world.file(1).write_bytes(data)
        found = world.reader.since()
        assert ([record.body for record in found.records], found.ignored, found.alarm) == ([b"a"], 1, None), name
    (second,) = world.say(b"b")  # the owner's next record takes the place of the junk
    assert second.number == 1
    assert bodies(world) == [b"a", b"b"]


def test_names_of_high_numbers_mean_nothing(world: World) -> None:
    """An attacker's 999999999999 influences neither the writer nor a reader, whatever it is."""
    world.say(b"a")
    for name in ("999999999999.record", "999999999998.record", "x.record", "-1.record", "999999999999.floor"):
        (world.folder / name).write_bytes(b"")
    os.mkfifo(world.folder / "999999999997.record")
    assert [record.number for record in world.say(b"b")] == [1]
    assert bodies(world) == [b"a", b"b"]


def test_a_pipe_under_the_next_number_stops_nobody(world: World) -> None:
    """Readers pass by, the owner puts its record in its place."""
    world.say(b"a")
    os.mkfifo(world.file(1))
    assert bodies(world) == [b"a"]
    world.say(b"b")
    assert bodies(world) == [b"a", b"b"]


def test_a_removed_record_is_a_gap_and_never_a_skip(world: World) -> None:
    """Readers stop before it with an alarm; the owner puts it again and they go on."""
    records = world.say(b"a", b"b", b"c")
    world.file(1).unlink()
    found = world.reader.since()
    assert [record.body for record in found.records] == [b"a"]
    assert found.alarm is not None
    assert found.alarm.code == "LANE_GAP"
    assert found.place == records[0].place
    assert world.writer().reassert(at=NOW) == 1
    assert bodies(world) == [b"a", b"b", b"c"]


def test_a_removed_newest_record_is_missed_by_the_head(world: World) -> None:
    """With the head the reader knows that it is blind; the owner's next write brings the record back."""
    world.say(b"a", b"b")
    world.writer().assert_head(at=NOW)
    world.file(1).unlink()
    assert code(world) == "LANE_GAP"
    world.say(b"c")
    assert bodies(world) == [b"a", b"b", b"c"]


def test_a_removed_newest_record_never_gives_its_number_away(world: World) -> None:
    """The next record has the next number, although the store has forgotten the one before (finding A20)."""
    first, second = world.say(b"a", b"b")
    world.file(1).unlink()
    (third,) = world.say(b"c")
    assert (third.number, third.previous) == (2, second.digest)
    assert bodies(world, second.place) == [b"c"]
    assert bodies(world, first.place) == [b"b", b"c"]


def test_two_histories_of_one_owner_are_a_fork(world: World) -> None:
    """A reader that read one of them gets an alarm from the other, by record and by head."""
    _first, second = world.say(b"a", b"b")
    fork = World(world.path / "fork")
    fork.say(b"a", b"other")
    fork.say(b"next")
    world.file(2).write_bytes(fork.file(2).read_bytes())
    assert code(world, second.place) == "LANE_FORKED"
    world.file(2).unlink()
    other = World(world.path / "another")
    other.say(b"a", b"other")
    head = other.writer().assert_head(at=NOW)
    assert head.place.number == second.number
    (world.folder / "head").write_bytes((other.folder / "head").read_bytes())
    assert code(world, second.place) == "LANE_FORKED"


def test_a_stamp_that_does_not_grow_is_an_alarm(world: World) -> None:
    """The owner's writer refuses it, and a reader does not take it from a writer that does not."""
    (first,) = world.say(b"a")
    with pytest.raises(UsageError, match="LANE_STAMP"):
        world.writer().append(b"b", at=NOW, stamp=first.stamp)
    late = sign_record(LANE, first.place, stamp=first.stamp, body=b"b", signer=MET)
    world.file(1).write_bytes(late.raw)
    assert code(world) == "LANE_STAMP"
    found = world.reader.since(first.place, stamp=first.stamp)
    assert found.alarm is not None
    assert found.records == ()


def test_a_clock_that_went_back_stamps_on(world: World) -> None:
    """The next stamp is one more than the last."""
    (first,) = world.say(b"a")
    second = world.writer().append(b"b", at=NOW - timedelta(days=1))
    assert second.stamp == first.stamp + 1


def test_a_home_from_the_past_signs_nothing_and_takes_over(world: World) -> None:
    """The log is ahead of the home's own record: refused with a hint, and adopted when asked."""
    world.say(b"a", b"b", b"c")
    for home in ("empty", "half"):
        restored = world.writer(home)
        with pytest.raises(UnavailableError, match="LANE_AHEAD"):
            restored.append(b"d", at=NOW)
        with pytest.raises(UnavailableError, match="LANE_AHEAD"):
            restored.reassert(at=NOW)
    assert world.writer("half").adopt() == 3
    assert world.writer("half").append(b"d", at=NOW).number == 3
    assert bodies(world) == [b"a", b"b", b"c", b"d"]


def test_a_home_from_the_past_notices_it_though_the_next_record_was_removed(world: World) -> None:
    """Removing one object does not hide that the log is ahead."""
    world.say(b"a", b"b", b"c")
    world.file(0).unlink()
    with pytest.raises(UnavailableError, match="LANE_AHEAD"):
        world.writer("empty").append(b"d", at=NOW)


def test_a_home_from_the_past_notices_another_record_under_its_number(world: World) -> None:
    """Its key signed something else under that number: nothing more is signed."""
    world.say(b"a", b"b")
    fork = World(world.path / "fork")
    fork.say(b"a", b"other")
    world.file(1).write_bytes(fork.file(1).read_bytes())
    with pytest.raises(UnavailableError, match="LANE_AHEAD"):
        world.say(b"c")


def test_several_processes_of_a_home_share_the_numbers(world: World) -> None:
    """Each has looked before the other wrote; the own record decides who gets which."""
    one, two = world.writer(), world.writer()
    assert one.newest() is None
    assert two.newest() is None
    for turn in range(4):
        assert one.append(b"one", at=NOW).number == 2 * turn
        assert two.append(b"two", at=NOW).number == 2 * turn + 1
    assert bodies(world) == [b"one", b"two"] * 4


def test_a_record_that_the_store_refused_counts_and_goes_out_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says that it counts; the next write brings it."""
    world.say(b"a")
    writer = world.writer()
    writer.newest()

    def refuse(*_: object, **__: object) -> bool:
        raise UnavailableError("no space", code="FILE_UNAVAILABLE")

    with monkeypatch.context() as patch:
        patch.setattr(writer._store, "put_new", refuse)
        with pytest.raises(UnavailableError, match="LANE_PENDING"):
            writer.append(b"b", at=NOW)
    assert bodies(world) == [b"a"]
    world.say(b"c")
    assert bodies(world) == [b"a", b"b", b"c"]


def test_a_refusal_that_came_last_does_not_sign_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The own record is there, whole, although syncing its folder failed: it counts (finding B22)."""
    world.say(b"a")
    writer = world.writer()
    writer.newest()
    put_new = writer._own.put_new

    def late(name: str, data: bytes) -> bool:
        put_new(name, data)
        raise UnavailableError("input or output error", code="FILE_UNAVAILABLE")

    monkeypatch.setattr(writer._own, "put_new", late)
    assert writer.append(b"b", at=NOW).number == 1
    assert bodies(world) == [b"a", b"b"]


def test_the_floor_is_signed_before_anything_goes(world: World) -> None:
    """A reader that was away is told; one that was not reads on."""
    records = world.say(b"a", b"b", b"c", b"d")
    world.writer().forget(1, at=NOW)
    assert not world.file(1).exists()
    assert code(world) == "LANE_EXPIRED"
    assert code(world, records[0].place) == "LANE_EXPIRED"
    assert bodies(world, records[1].place) == [b"c", b"d"]
    found = world.reader.since()
    assert found.head is not None
    assert found.head.floor == records[1].place
    assert bodies(world, found.head.floor) == [b"c", b"d"]
    with pytest.raises(UsageError):
        world.writer().forget(3, at=NOW)
    assert world.writer("fresh").adopt() == 2
    assert world.writer("fresh").append(b"e", at=NOW).number == 4


def test_a_floor_that_the_store_was_not_told_is_told_when_it_is_asked_for_again(world: World) -> None:
    """Killed after it signed the floor: the next run tells the store, and removes what the first one left."""
    records = world.say(b"a", b"b", b"c", b"d")
    world.writer().assert_head(at=NOW)
    old = {path: path.read_bytes() for path in (world.folder / "head", world.file(0), world.file(1))}
    world.writer().forget(1, at=NOW)
    for path, data in old.items():
        path.write_bytes(data)
    world.writer().forget(1, at=NOW)
    found = world.reader.since()
    assert found.head is not None
    assert found.head.floor == records[1].place
    assert not world.file(0).exists()
    assert not world.file(1).exists()
    told = (world.folder / "head").read_bytes()
    world.writer().forget(1, at=NOW + timedelta(minutes=1))
    assert (world.folder / "head").read_bytes() == told


def test_an_old_head_put_back_moves_nothing(world: World) -> None:
    """It tells its age; what was read stays read."""
    world.say(b"a")
    world.writer().assert_head(at=NOW)
    old = (world.folder / "head").read_bytes()
    (second,) = world.say(b"b")
    world.writer().assert_head(at=NOW + timedelta(minutes=1))
    (world.folder / "head").write_bytes(old)
    found = world.reader.since(second.place)
    assert (found.records, found.alarm) == ((), None)
    assert found.head is not None
    assert found.head.asserted == int(NOW.timestamp() * 1000)


def test_damage_at_the_home_is_told(world: World) -> None:
    """The own record is not guessed."""
    world.say(b"a")
    own = world.path / "home" / LANE.record_name(0)
    own.write_bytes(b"damaged")
    with pytest.raises(MaiaError, match="LANE_OWN_DAMAGED"):
        world.say(b"b")
