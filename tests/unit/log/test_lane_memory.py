"""A lane that was read once is read on, at a cost that does not grow with it; what is remembered decides nothing."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka import Kafka
from maia.errors import UncheckedError
from maia.log import (
    START,
    Commit,
    EventLane,
    LogDirectory,
    LogFile,
    OwnLanes,
    Place,
    Store,
    compact,
    open_store,
    sign_record,
    write_commit,
)
from maia.log.lane_memory import EVERY, RENEWED, LaneMemory, SeenLane
from maia.log.lane_objects import LaneId
from maia.principals import KeySigner
from s3 import S3Server

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
BROKER = KeySigner(bytes([1]) * 32)
TYPE = "ab" * 32
LANE = LaneId(kind="events", owner=BROKER.public_key.key_id, topic=TYPE)
NAME = f"{TYPE}/{BROKER.public_key.key_id.hex()}"
NOTHING = "00" * 32
MANY = RENEWED + 5


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about power cuts, and syncing takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


class World:
    """A log, the own record of a broker that publishes to it, and the home of somebody who reads it."""

    def __init__(self, path: Path, store: Store) -> None:
        self.path = path
        self.store = store
        self._lanes = OwnLanes(LogDirectory(store), path / "own", BROKER)
        self.count = 0
        self._place = START

    def sign(self, count: int) -> None:
        """Put so many signed records into the store, by hand, which is quicker."""
        for number in range(self.count, self.count + count):
            body = write_commit(Commit(0, f"p{number}", TYPE, "", NOTHING, ()), LANE.folder)
            record = sign_record(LANE, self._place, stamp=1_000_000 + number, body=body, signer=BROKER)
            self.store.put_new(LANE.record_name(number), record.raw)
            self._place = record.place
        self.count += count

    @property
    def own(self) -> OwnLanes:
        """The lanes that the broker writes."""
        return self._lanes

    @property
    def seen(self) -> Path:
        """The file in which the reader remembers the lane."""
        return self.path / "seen" / LANE.folder / "seen"

    def publish(self, count: int) -> list[Commit]:
        """Publish so many commits, a second apart."""
        self.count += count
        return [
            self._lanes.commit(f"p{number}", TYPE, (), evidence=NOTHING, at=NOW + timedelta(seconds=number))
            for number in range(self.count - count, self.count)
        ]

    def log(self, store: Store | None = None) -> LogDirectory:
        """The log as another process of the reader's home opens it."""
        return LogDirectory(store or self.store, memory=self.path / "seen")

    def lane(self) -> EventLane:
        """The lane as another process of the reader's home finds it, read as far as it goes."""
        [lane] = self.log().lanes([TYPE])
        return lane

    @contextmanager
    def counted(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
        """Note the names of what is read from the store meanwhile."""
        found: list[str] = []
        get = self.store.get

        def noted(name: str, *, limit: int) -> bytes:
            found.append(name)
            return get(name, limit=limit)

        with monkeypatch.context() as patch:
            patch.setattr(self.store, "get", noted)
            yield found


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A lane in a directory that was written for some time, and read once."""
    made = World(tmp_path, open_store(str(tmp_path / "log")))
    made.publish(MANY)
    assert made.lane().count == MANY
    assert made.seen.is_file()
    return made


@pytest.fixture(params=("directory", "memory", "s3", pytest.param("kafka", marks=pytest.mark.slow)))
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """An empty log in each kind of store."""
    place = str(tmp_path / "log")
    if request.param == "memory":
        place = f"memory://{secrets.token_hex(8)}"
    elif request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        place = f"s3://{server.new_bucket()}/p"
    elif request.param == "kafka":
        node: Kafka = request.getfixturevalue("kafka")
        place = node.new_log()
    return World(tmp_path, open_store(place))


def test_a_look_costs_the_same_however_long_the_lane_is(anywhere: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every store: of a lane four times as long, another process reads as many objects to know where it ends."""
    costs = []
    for more in (RENEWED, 3 * RENEWED):
        anywhere.sign(more)
        anywhere.lane()
        with anywhere.counted(monkeypatch) as read:
            lane = anywhere.lane()
        costs.append(len(read))
        assert (lane.count, lane.alarm, lane.finding) == (anywhere.count, None, None)
    assert costs[0] == costs[1] < 20


def test_what_is_new_is_read_and_the_rest_is_not(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that knows where the home was reads the three commits behind it, and finds the newest."""
    *_, last = world.publish(3)
    with world.counted(monkeypatch) as read:
        lane = world.lane()
    assert lane.end == last.place
    assert LANE.record_name(MANY - 20) not in read
    assert lane.newest() == last


def test_the_newest_commit_is_known_though_nothing_was_read(world: World) -> None:
    """What the home remembers leads to the newest commit, which is read from the store with its signature."""
    newest = world.lane().newest()
    assert newest is not None
    assert newest.publication == f"p{MANY - 1}"


def test_commits_are_read_from_the_store_and_never_from_the_memory(world: World) -> None:
    """A record that somebody removed below where the home was is a gap for whoever goes through it."""
    commits = world.lane().commits()
    assert [commit.publication for commit in commits] == [f"p{number}" for number in range(MANY)]
    world.store.delete(LANE.record_name(5))
    lane = world.lane()
    assert lane.count == MANY
    with pytest.raises(UncheckedError, match="LANE_GAP"):
        lane.commits()


@pytest.mark.parametrize("kind", ["flipped", "cut", "empty", "of another lane"])
def test_a_damaged_memory_is_ignored_and_told(world: World, kind: str) -> None:
    """Whatever lies there, the same commits are read, from the beginning, and the reader is told."""
    good = world.seen.read_bytes()
    other = LaneId(kind="events", owner=LANE.owner, topic="cd" * 32)
    LaneMemory(world.path / "seen").write(other, world.store.place, SeenLane(place=Place(3, bytes(32)), stamp=5))
    foreign = (world.path / "seen" / other.folder / "seen").read_bytes()
    world.seen.write_bytes(
        {"flipped": good[:-9] + b"x" + good[-8:], "cut": good[:60], "empty": b"", "of another lane": foreign}[kind]
    )
    lane = world.lane()
    assert (lane.count, lane.alarm) == (MANY, None)
    assert lane.finding is not None
    assert lane.finding.code == "LANE_MEMORY"
    assert len(lane.commits()) == MANY
    assert world.lane().finding is None  # it was made anew


@pytest.mark.parametrize(
    "place",
    [Place(MANY + 40, bytes(32)), Place(MANY - 9, bytes(range(32))), Place(3, bytes(32))],
    ids=["beyond the lane", "another record", "another record of the beginning"],
)
def test_a_memory_of_what_is_not_so_is_ignored_and_told(world: World, place: Place) -> None:
    """A memory with a right digest of its own and a wrong place neither hides commits nor makes any up."""
    memory = LaneMemory(world.path / "seen")
    memory.write(LANE, world.store.place, SeenLane(place=place, stamp=7))
    lane = world.lane()
    assert (lane.count, lane.alarm) == (MANY, None)
    assert lane.finding is not None
    assert lane.finding.code == "LANE_MEMORY"
    assert len(lane.commits()) == MANY


def test_a_record_that_was_read_and_is_gone_is_told(world: World) -> None:
    """When somebody takes away the end of a lane that a home has read, it says so until it is there again."""
    for number in range(MANY - RENEWED, MANY):
        world.store.delete(LANE.record_name(number))
    for _ in range(2):
        lane = world.lane()
        assert lane.count == MANY - RENEWED
        assert lane.finding is not None
        assert lane.finding.code == "LANE_MEMORY"
    world.own.reassert(at=NOW + timedelta(days=1), depth=None)
    lane = world.lane()
    assert (lane.count, lane.finding) == (MANY, None)


def test_a_lane_that_is_held_is_missed_when_its_folder_is_gone(world: World) -> None:
    """Whoever takes a lane away, or all of its type, hides nothing: the home that held it says what is not there."""
    world.lane().hold()
    gone = world.path / "gone"
    for folder in (world.path / "log" / LANE.folder, (world.path / "log" / LANE.folder).parent):
        folder.rename(gone)
        log = world.log()
        for lane in (*log.lanes([TYPE]), *log.lanes()):
            assert (lane.count, lane.doubt and lane.doubt.code) == (0, "LANE_MEMORY")
        gone.rename(folder)
        [lane] = log.lanes([TYPE])
        assert (lane.count, lane.doubt, lane.finding) == (MANY, None, None)  # the same process sees it come back


def test_a_lane_that_nobody_held_is_not_missed(world: World) -> None:
    """Strangers who make lanes and take them away again leave no doubt behind."""
    shutil.rmtree(world.path / "log" / LANE.folder)
    assert world.log().lanes([TYPE]) == []


def test_a_lane_that_is_held_is_remembered_to_its_last_record(world: World) -> None:
    """Cutting one record off a lane that is held is noticed, however few were read since it was remembered."""
    world.lane().hold()
    world.publish(1)
    assert world.lane().count == MANY + 1
    world.store.delete(LANE.record_name(MANY))
    world.store.delete(LANE.head_name)
    lane = world.lane()
    assert (lane.count, lane.doubt and lane.doubt.code) == (MANY, "LANE_MEMORY")


@pytest.mark.parametrize("more", [0, RENEWED], ids=["nothing is new to it", "much is new to it"])
def test_a_process_that_is_behind_does_not_forget_what_another_one_read(tmp_path: Path, more: int) -> None:
    """A memory that is further on than the lane stays, whoever looks, and is the finding itself."""
    world = World(tmp_path, open_store(str(tmp_path / "log")))
    world.sign(5)
    old = world.lane()
    world.sign(3 * RENEWED)
    world.lane()
    kept = world.seen.read_bytes()
    for number in range(5 + more, 5 + 3 * RENEWED):
        world.store.delete(LANE.record_name(number))
    old.refresh()
    assert (old.count, old.finding and old.finding.code) == (5 + more, "LANE_MEMORY")
    assert world.seen.read_bytes() == kept
    assert world.lane().finding is not None


def test_what_another_process_remembers_meanwhile_is_compared_before_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look of a process and its writing, another one read further, and what it read was taken away."""
    world = World(tmp_path, open_store(str(tmp_path / "log")))
    world.sign(5)
    old = world.lane()
    world.sign(RENEWED)
    since, kept = old._reader.since, list[bytes]()

    def meanwhile(*args: Any, **options: Any) -> Any:
        found = since(*args, **options)
        world.sign(RENEWED)
        world.lane()
        kept.append(world.seen.read_bytes())
        for number in range(5 + RENEWED, 5 + 2 * RENEWED):
            world.store.delete(LANE.record_name(number))
        return found

    monkeypatch.setattr(old._reader, "since", meanwhile)
    old.refresh()
    assert (old.count, old.finding and old.finding.code) == (5 + RENEWED, "LANE_MEMORY")
    assert [world.seen.read_bytes()] == kept


def test_a_process_that_is_behind_goes_on_where_another_one_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another process of the home read and verified is not read again, and not written over."""
    world = World(tmp_path, open_store(str(tmp_path / "log")))
    world.sign(5)
    old = world.lane()
    world.sign(3 * RENEWED)
    world.lane()
    kept = world.seen.read_bytes()
    with world.counted(monkeypatch) as read:
        old.refresh()
    assert (old.count, old.finding, world.seen.read_bytes()) == (world.count, None, kept)
    assert len(read) < 20
    assert len(old.commits()) == world.count


def test_what_has_expired_since_is_no_finding(world: World) -> None:
    """A lane whose owner let everything expire that the home had read begins at its floor."""
    world.lane().hold()
    world.publish(5)
    world.own.writer(TYPE).forget(MANY + 1, at=NOW + timedelta(days=1))
    lane = world.lane()
    assert (lane.finding, lane.doubt, lane.alarm) == (None, None, None)
    assert [commit.publication for commit in lane.commits()] == [f"p{MANY + number}" for number in (2, 3, 4)]


def test_a_memory_is_of_one_store(world: World, tmp_path: Path) -> None:
    """A home whose log lies elsewhere now reads the lane there from its beginning, and tells nothing."""
    world.lane().hold()
    elsewhere = open_store(str(tmp_path / "elsewhere"))
    assert world.log(elsewhere).lanes([TYPE]) == []
    own = OwnLanes(LogDirectory(elsewhere), tmp_path / "own", BROKER)
    own.reassert(at=NOW + timedelta(days=1), depth=None)
    [lane] = world.log(elsewhere).lanes([TYPE])
    assert (lane.count, lane.finding) == (MANY, None)


def test_a_memory_is_for_its_owner_alone(world: World) -> None:
    """Nobody but the owner of the home reads or writes it."""
    assert world.seen.stat().st_mode & 0o077 == 0


def test_a_place_before_an_instant_is_found_without_reading(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the place that is given to the first commit of an instant there are few; before it there are no others."""
    lane = world.lane()
    wanted = lane.commits()[MANY - 10]
    with world.counted(monkeypatch) as read:
        lane = world.lane()
        place = lane.before(wanted.stamp)
        found = lane.commits(place)
    assert wanted in found
    assert len(found) <= 10 + EVERY
    assert LANE.record_name(0) not in read
    assert lane.before(0) is None


def test_segments_are_followed_to_where_they_were_moved_before(tmp_path: Path) -> None:
    """What a record said of where segments lie is remembered by its place, and a hidden record hides no segment."""
    world = World(tmp_path, open_store(str(tmp_path / "log")))
    files = []
    for number in range(RENEWED):
        at = NOW + timedelta(seconds=number)
        name = f"{LANE.folder}/date=2026-06-01/{number:024d}.parquet"
        with world.store.create(name) as made:
            made.file.write(b"octets %d" % number)
            made.finish()
        files.append(world.own.log.store.get(name, limit=100))
        stamp = int(at.timestamp() * 1000)
        world.own.commit(f"p{number}", TYPE, (_said(name, files[-1], stamp),), evidence=NOTHING, at=at)
    done = compact(world.own.log, world.own, at=NOW + timedelta(days=1))
    assert (done.before, done.after) == (RENEWED, 1)
    world.lane()
    lane = world.lane()
    assert lane.count == RENEWED + 1
    [first, *_] = [file for commit in world.own.log.commits() for file in commit.files]
    moved = lane.place_of(first)
    assert moved is not None
    assert moved.path.endswith(".segments")
    world.store.delete(LANE.record_name(RENEWED))
    hidden = EventLane(world.store, LANE, LaneMemory(tmp_path / "seen"))
    hidden._seen, hidden._unread = lane._seen, {RENEWED}
    with pytest.raises(UncheckedError, match="LANE_HIDDEN"):
        hidden.place_of(first)


def _said(name: str, data: bytes, stamp: int) -> LogFile:
    return LogFile(name, len(data), hashlib.sha256(data).hexdigest(), 1, 1, stamp, stamp, ("00" * 16,))
