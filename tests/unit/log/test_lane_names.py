"""Publications are found by name at a cost that does not grow with the lane, and a name counts once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from maia.errors import EncodingError, UnavailableError
from maia.log import Commit, LogDirectory, OwnLanes
from maia.log.lane_names import RENEWED
from maia.log.lane_objects import parse_record
from maia.principals import KeySigner

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
BROKER = KeySigner(bytes([1]) * 32)
TYPE, OTHER = "ab" * 32, "cd" * 32
NOTHING = "00" * 32


class World:
    """A log, and the own record of a broker that publishes to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.own = path / "own"

    def lanes(self) -> OwnLanes:
        """Another process of the same home."""
        return OwnLanes(LogDirectory(self.path / "log"), self.own, BROKER)

    def publish(self, number: int, lanes: OwnLanes | None = None) -> Commit:
        """Publish under a name of its own."""
        at = NOW + timedelta(seconds=number)
        return (lanes or self.lanes()).commit(f"p{number}", TYPE, (), evidence=NOTHING, at=at)

    @property
    def folder(self) -> Path:
        """Where the own record of the lane lies."""
        return self.own / f"type={TYPE}" / f"origin={BROKER.public_key.key_id.hex()}"

    @property
    def names(self) -> Path:
        """The file of names."""
        return self.folder / "names"


@pytest.fixture(autouse=True)
def _no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here is about power cuts, and syncing takes most of the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A lane that has been written to for some time."""
    made = World(tmp_path)
    lanes = made.lanes()
    for number in range(2 * RENEWED + 5):
        made.publish(number, lanes)
    assert made.names.is_file()
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the own records that are read and verified."""
    found: list[int] = []

    def counted(lane: object, number: int, raw: bytes, **rest: int) -> object:
        found.append(number)
        return parse_record(lane, number, raw, **rest)  # type: ignore[arg-type]

    monkeypatch.setattr("maia.log.lane_writer.parse_record", counted)
    return found


def test_a_commit_reads_a_bounded_number_of_records_however_long_the_lane(world: World, read: list[int]) -> None:
    """Each by a process of its own, as micro-batches are: those since the names were kept, and two or three more."""
    counts = []
    for number in range(2 * RENEWED + 5, 5 * RENEWED):
        read.clear()
        world.publish(number)
        counts.append(len(read))
    assert max(counts) <= RENEWED + 3
    assert min(counts) <= 3


def test_a_stream_reads_a_bounded_number_of_records(tmp_path: Path, read: list[int]) -> None:
    """One name, many micro-batches: the newest is found, and the file stays small."""
    world, sizes = World(tmp_path), set()
    for batch in range(4 * RENEWED):
        read.clear()
        at = NOW + timedelta(seconds=batch)
        world.lanes().commit("s", TYPE, (), evidence=NOTHING, query="q", batch=batch, at=at)
        assert len(read) <= RENEWED + 3
        if world.names.is_file():
            sizes.add(world.names.stat().st_size)
    found = world.lanes().find("s")
    assert found is not None
    assert found.batch == 4 * RENEWED - 1
    assert max(sizes) - min(sizes) <= 4  # digits of the number


def test_every_name_is_found_and_no_other(world: World) -> None:
    """Those that the file holds, those that came since, and those of other types."""
    world.lanes().commit("elsewhere", OTHER, (), evidence=NOTHING, at=NOW)
    lanes = world.lanes()
    for number in range(2 * RENEWED + 5):
        found = lanes.find(f"p{number}")
        assert found is not None
        assert (found.publication, found.sequence) == (f"p{number}", number)
    found = lanes.find("elsewhere")
    assert found is not None
    assert found.type_id == OTHER
    assert lanes.find("p") is None
    assert lanes.find("") is None


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


LOST: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-40]),
    "flipped": _flip,
    "of a later format": lambda path: path.write_bytes(path.read_bytes().replace(b"lane-names1:1", b"lane-names1:2")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}  # fmt: skip


@pytest.mark.parametrize("lose", LOST.values(), ids=LOST.keys())
def test_a_file_that_was_lost_or_damaged_is_made_anew(world: World, lose: Callable[[Path], object]) -> None:
    """It is made from the own record, which decides: a name counts once all the same."""
    lose(world.names)
    again = world.publish(3)
    assert again.sequence == 3
    assert again.stamp < world.publish(2 * RENEWED + 5).stamp
    assert world.names.is_file()


def test_no_octet_of_the_file_can_go_wrong_unseen(world: World) -> None:
    """Whatever octet is another one, the file is not believed."""
    whole = world.names.read_bytes()
    for at in range(0, len(whole), 41):
        world.names.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = world.lanes().find("p1")
        assert found is not None
        assert found.sequence == 1


def test_a_kill_before_the_file_is_renewed_costs_no_name(world: World) -> None:
    """An older file and a longer record: what the record has more is read from it."""
    older = world.names.read_bytes()
    lanes = world.lanes()
    for number in range(2 * RENEWED + 5, 4 * RENEWED):
        world.publish(number, lanes)
    assert world.names.read_bytes() != older
    world.names.write_bytes(older)
    for number in (0, RENEWED, 3 * RENEWED, 4 * RENEWED - 1):
        assert world.publish(number).sequence == number
    assert world.publish(4 * RENEWED).sequence == 4 * RENEWED


def test_a_file_from_another_time_does_not_fit(world: World, tmp_path: Path) -> None:
    """A home whose record was put back and written anew: the names of what is gone do not come back."""
    later = world.names.read_bytes()
    shutil.rmtree(tmp_path / "log")
    shutil.rmtree(world.own)
    lanes = world.lanes()
    for number in range(3 * RENEWED):
        lanes.commit(f"q{number}", TYPE, (), evidence=NOTHING, at=NOW + timedelta(days=1, seconds=number))
    world.names.write_bytes(later)
    assert world.lanes().find("p1") is None
    found = world.lanes().find("q1")
    assert found is not None
    assert found.sequence == 1


def test_a_restored_home_still_notices(world: World, tmp_path: Path) -> None:
    """With the file of its time or with a later one, nothing is signed before what the log has was taken over."""
    kept = tmp_path / "kept"
    shutil.copytree(world.own, kept)
    lanes = world.lanes()
    for number in range(2 * RENEWED + 5, 4 * RENEWED):
        world.publish(number, lanes)
    later = world.names.read_bytes()
    for names in (None, later):
        shutil.rmtree(world.own)
        shutil.copytree(kept, world.own)
        if names is not None:
            world.names.write_bytes(names)
        with pytest.raises(UnavailableError) as told:
            world.publish(4 * RENEWED)
        assert told.value.code == "LANE_AHEAD"
    assert world.lanes().adopt() == 2 * RENEWED - 5
    assert world.publish(4 * RENEWED - 1).sequence == 4 * RENEWED - 1


def test_a_file_in_the_shared_store_means_nothing(world: World, tmp_path: Path) -> None:
    """Whoever can write to the log claims no name and hides none."""
    other = World(tmp_path / "other")
    lanes = other.lanes()
    for number in range(2 * RENEWED):
        lanes.commit(f"claimed{number}", TYPE, (), evidence=NOTHING, at=NOW + timedelta(seconds=number))
    shutil.copy(other.names, tmp_path / "log" / world.folder.relative_to(world.own) / "names")
    world.names.unlink()
    assert world.lanes().find("claimed1") is None
    assert world.publish(1).sequence == 1


def test_a_published_record_that_the_home_lost_is_damage_and_not_a_free_name(world: World) -> None:
    """The file knows that it was published; it is not published a second time."""
    (world.folder / f"{3:012d}.record").unlink()
    with pytest.raises(EncodingError) as told:
        world.publish(3)
    assert told.value.code == "LANE_OWN_DAMAGED"


def test_no_file_is_made_of_a_record_with_a_gap(world: World) -> None:
    """What comes back later into the gap is found again."""
    missing = world.folder / f"{3:012d}.record"
    kept = missing.read_bytes()
    missing.unlink()
    world.names.unlink()
    assert world.lanes().find("p3") is None
    assert not world.names.exists()
    missing.write_bytes(kept)
    assert world.lanes().find("p3") is not None
    assert world.names.is_file()
