"""No key and nonce come twice: over brokers, over a million events, over kills, restarts and clocks that go back."""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from own_keys_world import OwnKeys

import maia
from maia.authority import Action, type_right
from maia.encryption import Parcel
from maia.testing import TYPE_NAME, Command, grant, numberplate_homes, publish_here, sealed_here

COMMITMENT = 32
MILLION = 10**6


def used(parcels: Iterable[Parcel]) -> list[bytes]:
    """List what each block says of the key that it is sealed with, which is used with one nonce: its commitment."""
    return [bytes(block[:COMMITMENT]) for parcel in parcels for block in parcel.blocks]


@pytest.mark.threat("T47")
@pytest.mark.requirement("15.06")
def test_two_brokers_in_one_millisecond_share_no_key_and_nonce(tmp_path: Path) -> None:
    """CB and MB publish the same sighting under the same stamp: both parts travel, and no block is sealed alike."""
    homes = numberplate_homes(tmp_path)
    people = homes.network.people
    write = type_right(homes.network.key("PITO"), TYPE_NAME, actions=[Action.PUBLISH])
    homes.add(homes.met, grant(people["PITO"], people["MB"], write), grant(people["PITO"], people["Smith"], write))
    at = datetime.now(UTC)
    row = {"numberplate": "AE05 XYZ", "timestamp": at, "location": "Victoria"}
    for home, who in ((homes.ccs, "CCTV"), (homes.met, "Smith")):
        publish_here(maia.open(home).home, TYPE_NAME, [row], as_=who, at=at)
    parcels = sealed_here(maia.open(homes.ccs).home)
    first, second = (parcel.header for parcel in parcels)
    assert (first.type_id, first.stamp, first.epoch) == (second.type_id, second.stamp, second.epoch)
    assert {first.origin, second.origin} == {people[name].public_key.key_id for name in ("CB", "MB")}
    assert first.parcel_id != second.parcel_id
    assert len(set(used(parcels))) == 6, "three attributes each, each under a key of its own"
    assert not set(parcels[0].blocks) & set(parcels[1].blocks)


@pytest.mark.slow
@pytest.mark.threat("T47")
@pytest.mark.requirement("15.06")
def test_a_million_events_use_no_key_and_nonce_twice(tmp_path: Path) -> None:
    """10^6 events, all alike, in twenty publications a millisecond or two apart: none is sealed as another."""
    world = OwnKeys(tmp_path / "pito", ago_hours=1)
    part = ["AE05 XYZ"] * (MILLION // 20)
    for number in range(20):
        world.publish(*part)
        world.now += timedelta(milliseconds=1 + number % 2)
    parcels = world.parcels()
    headers = [parcel.header for parcel in parcels]
    names = {(header.origin, header.event_base, position) for header in headers for position in range(header.count)}
    assert len(names) == MILLION
    assert len(set(used(parcels))) == len({header.parcel_id for header in headers}) == 20
    assert len({bytes(parcel.blocks[0]) for parcel in parcels}) == 20
    assert all(later.stamp > sooner.stamp for sooner, later in pairwise(headers))


class Stamping:
    """A home whose camera publishes through Spark, and whose mark of the highest stamp can be seen and spoiled."""

    def __init__(self, path: Path) -> None:
        """Make the home."""
        self.world = OwnKeys(path, ago_hours=0)
        self.mark = path / "stamps"

    def publish(self) -> int:
        """Open the home anew, publish one event, and give its stamp."""
        before = {parcel.header.parcel_id for parcel in self.world.parcels()}
        domain = maia.open(self.world.command.home)
        domain.client("camera").publish(pa.table({"plate": ["AE05 XYZ"]}), "Sighting")
        [new] = [item for item in self.world.parcels() if item.header.parcel_id not in before]
        return new.header.stamp

    def set_mark(self, stamp: int) -> None:
        """Leave the mark as a clock would have that ran ahead."""
        digits = b"%d" % stamp
        self.mark.write_bytes(digits + b" %08x\n" % zlib.crc32(digits))

    def kill_midway(self) -> list[int]:
        """Let a process take stamps without end, kill it with -9, and tell which it got."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                home = maia.open(self.world.command.home).home
                while True:
                    os.write(writer, b"%d\n" % home.next_stamp())
            finally:
                os._exit(1)
        os.close(writer)
        with os.fdopen(reader) as pipe:
            lines = [pipe.readline() for _ in range(3)]
            os.kill(child, signal.SIGKILL)
            lines += pipe.readlines()
        os.waitpid(child, 0)
        return [int(line) for line in lines if line.endswith("\n")]


@pytest.mark.threat("T45")
@pytest.mark.requirement("22.22")
def test_stamps_grow_over_kills_restarts_and_a_clock_that_goes_back(spark: Any, tmp_path: Path) -> None:
    """Killed three times, opened anew each time, the clock 20 s behind the last stamp: no stamp and no key twice."""
    home = Stamping(tmp_path / "pito")
    stamps = [home.publish()]
    for _ in range(3):
        stamps += home.kill_midway()
        stamps.append(home.publish())
    ahead = int(datetime.now(UTC).timestamp() * 1000) + 20_000
    home.set_mark(ahead)
    stamps += [ahead, home.publish(), home.publish()]
    assert all(later > sooner for sooner, later in pairwise(stamps))
    assert stamps[-2:] == [ahead + 1, ahead + 2]
    parcels = home.world.parcels()
    assert len(set(used(parcels))) == len(parcels) == 6


@pytest.mark.threat("T45")
@pytest.mark.requirement("22.22")
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        pytest.param(lambda home: home.mark.write_bytes(b"17 00000000\n"), "STAMPS_DAMAGED", id="damaged"),
        pytest.param(
            lambda home: home.set_mark(int(datetime.now(UTC).timestamp() * 1000) + 3_600_000), "STAMPS_AHEAD",
            id="an hour ahead",
        ),
    ],
)  # fmt: skip
def test_without_a_mark_to_trust_nothing_is_sealed(spark: Any, tmp_path: Path, spoil: Any, code: str) -> None:
    """A mark that is damaged, or that no reader would follow: the publication is refused, and no parcel is made."""
    home = Stamping(tmp_path / "pito")
    home.publish()
    spoil(home)
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"plate": "BX51 ABC"}\n', "utf-8")
    ran = Command(home.world.command.home)("publish", str(rows), "--type", "Sighting", "--as", "camera", "--json")
    assert ran.code != 0
    assert code in ran.out + ran.err
    assert len(home.world.parcels()) == 1
