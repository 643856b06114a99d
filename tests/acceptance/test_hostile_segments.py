"""Files of a shared log that lie about themselves: refused before anything of them is unpacked, and nobody waits."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import maia
from maia.authority import Action, type_right
from maia.encryption import parse_parcel, sign_parcel
from maia.principals import KeySigner
from maia.testing import (
    TYPE_NAME,
    Command,
    LaneOf,
    NumberplateHomes,
    grant,
    numberplate_homes,
    publish_here,
    rows_of,
)

pytestmark = pytest.mark.threat("T53")
MILLISECOND = timedelta(milliseconds=1)


class World:
    """The homes of the number plates, the lane of the congestion charge service, and somebody who lies in it."""

    def __init__(self, root: Path) -> None:
        """Let the camera publish one sighting."""
        self.homes: NumberplateHomes = numberplate_homes(root)
        self.root, self.log = root, self.homes.ccs.parent / "log"
        self.command, self.domain = Command(self.homes.ccs), maia.open(self.homes.ccs)
        self.at = datetime.now(UTC)
        self.publish("P1")
        [self.first] = self.domain.log.commits()

    def now(self) -> datetime:
        """Give an instant after all that was given before."""
        self.at = max(datetime.now(UTC), self.at + MILLISECOND)
        return self.at

    def publish(self, plate: str) -> None:
        """Let the camera publish a sighting."""
        row = {"numberplate": plate, "timestamp": datetime.now(UTC), "location": "Victoria"}
        publish_here(self.domain.home, TYPE_NAME, [row], as_="CCTV", at=self.now())

    def own(self, type_id: str | None = None) -> LaneOf:
        """Give a lane of the service's own broker, which keeps to no rule from now on."""
        evidence = self.domain.log.evidence(bytes.fromhex(self.first.evidence))
        home = self.domain.home
        return LaneOf(self.log, type_id or self.first.type_id, home.broker, home.path / "lanes", evidence=evidence)

    def other(self, name: str = "mallory") -> LaneOf:
        """Give the lane of another broker that may publish the type."""
        signer, people = KeySigner.generate(), self.homes.network.people
        right = type_right(self.homes.network.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH])
        proof = grant(people["PITO"], signer, right).raw
        return LaneOf(self.log, self.first.type_id, signer, self.root / name, evidence=(proof,))

    def read(self) -> list[str]:
        """Read what the billing office may see now."""
        ran = self.command("subscribe", "--type", TYPE_NAME, "--as", "BO", "--json")
        return sorted(row["numberplate"] for row in ran.lines)

    def refusals(self) -> set[str]:
        """Give the codes of what was refused."""
        return {row["reason"] for row in self.command.do("audit", "--kind", "refuse")["rows"]}

    def alarms(self) -> set[str]:
        """Give the codes of what was passed by."""
        return {row["reason"] for row in self.command.do("audit", "--kind", "alarm")["rows"]}

    def parked(self) -> set[str]:
        """Give the codes for which readers wait."""
        return {item["code"] for item in self.command.do("status")["log"]["parked"]}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Give a log with one commit."""
    return World(tmp_path)


def varint(number: int, length: int | None = None) -> bytes:
    """Write a number as Parquet's descriptions do, on so many octets."""
    number, found = number << 1, bytearray()
    while number or len(found) < (length or 1):
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found[:-1], found[-1] & 0x7F])


def belittled(path: Path) -> None:
    """Let a compressed file say of itself that it has as many octets when it is unpacked as it lies there."""
    data, found = path.read_bytes(), pq.read_metadata(path).row_group(0)
    for index in range(found.num_columns):
        size = found.column(index).total_uncompressed_size
        if size > len(data):
            said = varint(size)
            start = data.rindex(said)
            data = data[:start] + varint(100, len(said)) + data[start + len(said) :]
    path.write_bytes(data)
    sizes = [pq.read_metadata(path).row_group(0).column(index).total_uncompressed_size for index in range(6)]
    assert max(sizes) <= len(data)


LIES: dict[str, tuple[dict[str, Any], Callable[[Path], None]]] = {
    "compressed, and says how far": ({"compression": "zstd", "use_dictionary": False}, lambda _: None),
    "compressed, and does not say how far": ({"compression": "zstd", "use_dictionary": False}, belittled),
    "one value for many rows": ({"compression": "none", "use_dictionary": True}, lambda _: None),
}


@pytest.mark.parametrize("options, lie", LIES.values(), ids=LIES)
def test_a_segment_that_grows_when_it_is_read_is_refused_unread(
    world: World, options: dict[str, Any], lie: Callable[[Path], None]
) -> None:
    """A7: of the right columns, committed by who may publish: a dead letter of its lane; the others' events come."""
    lane, at = world.other(), world.now()
    parcels = [bytes(1 << 26)] if options["compression"] == "zstd" else [bytes(1 << 19)] * 64
    file = lane.segment("bomb", rows_of(world.first, *parcels), at=at, **options)
    lie(world.log / file.path)
    file = lane.described(file)
    assert file.size < 1 << 20
    lane.say("bomb", file, at=at)
    assert world.read() == ["P1"]
    assert world.refusals() == {"SEGMENT_MALFORMED"}
    assert world.parked() == set()


def test_a_parcel_counts_in_the_lane_of_its_origin_alone(world: World) -> None:
    """Somebody else who may publish commits it as its own: it is refused there, and no event comes twice."""
    lane, [file] = world.other(), world.first.files
    copy = f"{lane.folder.relative_to(world.log)}/{'/'.join(file.path.split('/')[-2:])}"
    (world.log / copy).parent.mkdir(parents=True)
    shutil.copy(world.log / file.path, world.log / copy)
    lane.say("again", replace(file, path=copy), at=world.now())
    assert world.read() == ["P1"]
    assert world.refusals() == {"EVENTS_MISNAMED"}


def test_a_parcel_bears_a_stamp_that_its_commit_tells(world: World) -> None:
    """Its origin commits it again under stamps of now: it is refused, and no event comes twice."""
    at, [file] = world.now(), world.first.files
    stamp = int(at.timestamp() * 1000)
    world.own().say("again", replace(file, first_stamp=stamp, last_stamp=stamp), at=at)
    assert world.read() == ["P1"]
    assert world.refusals() == {"EVENTS_MISNAMED"}


def test_a_commit_names_nothing_outside_of_its_lane(world: World) -> None:
    """A name that leads elsewhere is no name, so the commit is none, and its publisher's refusal."""
    lane, [file] = world.other(), world.first.files
    folder = lane.folder.relative_to(world.log).as_posix()
    lane.say("elsewhere", replace(file, path=f"{folder}/../{'/'.join(file.path.split('/')[1:])}"), at=world.now())
    lane.say("beside", replace(file, path=f"{folder}/{file.path}"), at=world.now())
    assert world.read() == ["P1"]
    assert world.refusals() == {"COMMIT_SHAPE"}
    assert world.parked() == set()


def test_a_head_is_of_its_own_lane(world: World) -> None:
    """The head of another lane of the same owner, put in its place, is none: nobody waits for what never was."""
    lane = world.own("ab" * 32)
    for number in range(5):
        lane.commit(f"other {number}", at=world.now())
    lane.assert_end(at=world.now())
    shutil.copy(lane.folder / "head", world.own().folder / "head")
    assert world.read() == ["P1"]
    assert world.parked() == set()


def test_a_small_parcel_holds_no_million_events(world: World) -> None:
    """Its publisher signs that it does: refused by the number, before anything is made for so many."""
    at, [file] = world.now(), world.first.files
    data = pq.ParquetFile(world.log / file.path).read().column("parcel")[0].as_py()
    header = replace(
        parse_parcel(data).header, count=10**6, labels=(), parcel_id=bytes(16), event_base=bytes(16),
        stamp=int(at.timestamp() * 1000),
    )  # fmt: skip
    parcel = sign_parcel(header, (), world.domain.home.broker).to_bytes()
    assert len(parcel) < 1 << 10
    lane = world.own()
    made = lane.segment("million", rows_of(world.first, parcel), at=at, compression="none", use_dictionary=False)
    lane.say("million", made, at=at)
    assert world.read() == ["P1"]
    assert world.refusals() == {"PARCEL_COUNT"}


def test_what_lies_in_a_log_without_lanes_stops_nobody(maia_command: Command) -> None:
    """A commit of the format before lanes, planted in a log of today: a home that never had one reads on."""
    home = maia_command
    home.do("domain", "init", str(home.home))
    planted = home.home / "log" / "_commits" / f"{0:012d}.json"
    planted.parent.mkdir(parents=True)
    planted.write_text("{}")
    assert home.do("log", "show")["commits"] == []
    assert home.do("status")["problems"] == []


def test_a_compacted_file_is_compared_before_it_is_opened(world: World) -> None:
    """A sparse file of gigabytes in its place: passed by with an alarm, memory stays small, and all comes later."""
    world.publish("P2")
    world.command.do("log", "compact")
    [packed] = (world.log / f"type={world.first.type_id}" / f"origin={world.first.origin}").glob("date=*/*")
    assert world.read() == ["P1", "P2"]
    kept = packed.rename(world.root / "kept")
    bomb = rows_of(world.first, *[bytes(1 << 20)] * 2)
    pq.write_table(bomb, packed, compression="zstd", row_group_size=1)
    footer = packed.read_bytes()
    with packed.open("r+b") as file:
        file.truncate((1 << 33) - len(footer))
        file.seek((1 << 33) - len(footer))
        file.write(footer)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert world.read() == []
    assert world.alarms() == {"LOG_FILE_DAMAGED"}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 << 10, "in KiB"
    kept.rename(packed)
    assert world.read() == ["P1", "P2"]
