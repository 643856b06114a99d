"""A log in an object store: the same product, over an emulated S3 that others can write to."""

from __future__ import annotations

import re
import secrets
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from peer_world import Peers

import maia
from maia.errors import MaiaError
from maia.principals import KeySigner
from maia.testing import (
    TYPE_NAME,
    Command,
    LaneOf,
    NumberplateHomes,
    deliver_here,
    numberplate_homes,
    publish_here,
    read_here,
)

MANY = 6000
"""Rows of a segment that lies by column."""


class World:
    """The homes of the number plates; their log lies in a bucket, and nothing of it on this machine."""

    def __init__(self, root: Path, s3: Any) -> None:
        """Make them."""
        self.s3, self.bucket = s3, s3.new_bucket()
        self.place = f"s3://{self.bucket}/met/log"
        self.homes: NumberplateHomes = numberplate_homes(root, since=timedelta(minutes=50))
        shutil.rmtree(root / "log", ignore_errors=True)
        for home in (self.homes.ccs, self.homes.met):
            settings = home / "maia.toml"
            text = settings.read_text("utf-8")
            settings.write_text(text.replace('log = "../log"', f'log = "{self.place}"'), "utf-8")
        self.ago = timedelta(0)
        self.root, self.command = root, Command(self.homes.ccs)
        self.at = datetime.now(UTC)

    def publish(self, *plates: str) -> int:
        """Publish as a camera of the congestion charge service."""
        self.at = max(self.at + timedelta(milliseconds=1), datetime.now(UTC) - self.ago)
        rows = [{"numberplate": plate, "timestamp": self.at, "location": "Victoria"} for plate in plates]
        return publish_here(maia.open(self.homes.ccs).home, TYPE_NAME, rows, as_="CCTV", at=self.at)

    def read(self, *, lenient: bool = False, home: Path | None = None) -> list[str]:
        """Read as the billing office."""
        opened = maia.open(home or self.homes.ccs).home
        rows = read_here(opened, TYPE_NAME, as_="BO", attributes=["numberplate"], lenient=lenient)
        return [str(row["numberplate"]) for row in rows]

    def keys(self, shape: str) -> list[str]:
        """List the keys of the bucket that have a shape, as any other client of the store would."""
        told = self.s3.ask("GET", f"{self.bucket}?list-type=2").decode()
        found = [key.replace("&#x3D;", "=") for key in re.findall("<Key>(.*?)</Key>", told)]
        return [key for key in found if re.search(shape, key)]

    def segments(self) -> list[str]:
        """List the segments."""
        return self.keys(r"/date=.*\.(parquet|segments)$")


@pytest.fixture
def world(tmp_path: Path, s3: Any) -> World:
    """Give an empty log in a bucket."""
    return World(tmp_path, s3)


def test_the_whole_product_works_over_a_bucket(world: World) -> None:
    """Publish, read, deliver, status, compact, expire, sweep and doctor; nothing of the log lies on this machine."""
    world.ago, world.at = timedelta(minutes=45), world.at - timedelta(minutes=45)
    for number in range(3):
        assert world.publish(f"OLD {number}", f"OLD {number}B") == 2
    expected = [f"OLD {number}{letter}" for number in range(3) for letter in ("", "B")]
    assert world.read() == expected
    shown = world.command.do("log", "show")
    assert [item["events"] for item in shown["commits"]] == [2, 2, 2]
    assert world.command.do("status")["log"]["commits"] == 3
    assert len(world.segments()) == 3
    world.command.do("deliver", "add", "billing", "--as", "BO", "--type", TYPE_NAME)
    assert deliver_here(maia.open(world.homes.ccs).home) == 3
    assert world.command.do("log", "compact")["before"] == 3
    assert len(world.segments()) == 1
    assert world.read() == expected
    world.ago = timedelta(0)
    world.publish("NEW")
    assert deliver_here(maia.open(world.homes.ccs).home) == 1
    shown = world.command("deliver", "show", "billing", "--as", "BO", "--json")
    assert [row["numberplate"] for row in shown.lines] == [*expected, "NEW"]
    assert world.command.do("log", "expire", "--older-than", "30m", "--yes")["events"] == 6
    assert world.read() == ["NEW"]
    assert len(world.segments()) == 1
    assert world.command.do("log", "sweep", "--older-than", "0s", "--yes")["files"] == []
    assert world.command.do("log", "reassert")["put"] == 0
    findings = {item["name"]: item["status"] for item in world.command("doctor", "--json").data["findings"]}
    assert findings["store"] == "ok"
    assert "log" not in findings
    assert not (world.root / "log").exists()
    assert not [path for path in world.root.rglob("*.parquet") if "outbox" not in path.parts]
    assert world.keys("_probe") == []


def test_who_needs_one_attribute_reads_its_blocks_and_no_more(world: World) -> None:
    """The store is asked for the end of the file, the heads and one column; not for the others."""
    plates = [secrets.token_hex(200) for _ in range(MANY)]
    assert world.publish(*plates) == MANY
    [segment] = world.segments()
    size = len(world.s3.ask("GET", f"{world.bucket}/{segment}"))
    home = maia.open(world.homes.ccs).home
    world.s3.ranges.clear()
    rows = read_here(home, TYPE_NAME, as_="BO", attributes=["timestamp"], lenient=True)
    assert {row["timestamp"] for row in rows} == {world.at}
    assert len(rows) == MANY
    read = sum(length for path, length in world.s3.ranges if segment in path)
    assert 0 < read < size // 4, (read, size)


@pytest.mark.fault("F08")
def test_what_somebody_exchanges_in_the_bucket_is_never_opened(world: World) -> None:
    """A segment is damaged, missing, somebody else's: readers wait, are told, and get it when it is there again."""
    world.publish("ONE")
    [first] = world.segments()
    world.publish("TWO")
    path = f"{world.bucket}/{first}"
    kept = world.s3.ask("GET", path)
    flipped = bytearray(kept)
    flipped[len(flipped) // 2] ^= 1
    for data in (bytes(flipped), kept[:-1], kept + b"x", b""):
        world.s3.ask("PUT", path, data)
        assert world.read(lenient=True) == ["TWO"]
    world.s3.ask("DELETE", path)
    assert world.read(lenient=True) == ["TWO"]
    told = {row["reason"] for row in world.command.do("audit", "--kind", "alarm")["rows"]}
    assert told == {"LOG_FILE_DAMAGED", "LOG_FILE_MISSING"}
    world.s3.ask("PUT", path, kept)
    assert world.read() == ["ONE", "TWO"]


def test_what_somebody_plants_in_the_bucket_stops_nobody(world: World, tmp_path: Path) -> None:
    """Keys that cannot be listed, records of strangers, an object in the place of a record, a lane of a stranger."""
    world.publish("ONE")
    [record] = world.keys(r"type=.*0\.record$")
    lane = record.rpartition("/")[0]
    kind = lane.rpartition("/")[0]
    for key in (
        f"{kind}/../x", f"{kind}//x", f"{kind}/origin=\x01/x", f"{lane}/../x", f"{lane}//x", f"{kind}/origin=junk/x",
        "met/log/type=junk/x", "met/log/../x", "met/log//x", f"{lane}/000000000001.record",
        f"{lane}/999999999999.record", f"{lane}/date=2026-01-01/x.parquet/../y",
    ):  # fmt: skip
        world.s3.ask("PUT", f"{world.bucket}/{key}", b"junk")
    type_id = world.homes.event_type.type_id.hex()
    LaneOf(world.place, type_id, KeySigner.generate(), tmp_path / "eve").commit("eve's", at=datetime.now(UTC))
    assert world.read() == ["ONE"]
    world.publish("TWO")
    assert world.read() == ["ONE", "TWO"]
    assert world.read(home=world.homes.ccs) == ["ONE", "TWO"]


@pytest.mark.fault("F06")
def test_a_store_that_is_away_for_a_moment_loses_and_doubles_nothing(world: World) -> None:
    """What was not acknowledged may be there once; what was acknowledged is there once."""
    world.publish("ONE")
    for holds in (".parquet", ".record", "_evidence"):
        world.s3.fail("PUT", 403, holds=holds, times=99)
        with pytest.raises(MaiaError):
            world.publish(f"LOST {holds}")
        world.s3.faults.clear()
    for status in (403, 503):
        for method in ("GET", "HEAD", "LIST"):
            world.s3.fail(method, status, times=9999)
        with pytest.raises(MaiaError):
            world.read()
        if status == 403:
            with pytest.raises(MaiaError):
                world.publish("LOST")  # nobody signs on without having seen where the lane ends
        world.s3.faults.clear()
    world.publish("TWO")
    read = world.read()
    assert [plate for plate in read if not plate.startswith("LOST")] == ["ONE", "TWO"]
    assert len(read) == len(set(read))


@pytest.mark.fault("F06")
def test_an_answer_that_gets_lost_costs_nothing(world: World) -> None:
    """The store did what it was asked and said that it failed: the client asks again, and everything is there once."""
    plates = {"_evidence": "ONE", ".parquet": "TWO", ".record": "THREE"}
    for holds, plate in plates.items():
        world.s3.fail("PUT", 500, after=True, holds=holds)
        assert world.publish(plate) == 1
        assert world.s3.faults == []
    assert world.read() == list(plates.values())


def test_a_bucket_that_an_invitation_names_is_asked_after_the_yes(tmp_path: Path, s3: Any) -> None:
    """Mary's credentials are shown to no place that somebody else named before she agreed; then, before she signs."""
    peers = Peers(tmp_path, place=f"s3://{s3.new_bucket()}/shared")
    file = peers.invite()
    before = len(s3.seen)
    assert peers.mary("domain", "connect", str(file), "--json").code != 0
    assert len(s3.seen) == before, "nobody asked the bucket"
    s3.fail("LIST", 403)
    assert peers.mary("domain", "connect", str(file), "--yes", "--json").code != 0
    assert s3.faults == []
    assert not list((peers.mary.home / "policy").glob("agreements/*")), "nothing was signed"


def test_two_organisations_meet_over_a_bucket(tmp_path: Path, s3: Any) -> None:
    """An invitation names the bucket; rights, keys, notices and their end go through it."""
    peers = Peers(tmp_path, place=f"s3://{s3.new_bucket()}/shared")
    peers.connect()
    assert peers.members("ward") == 2
    mary = maia.open(peers.mary.home)
    assert mary.home.log_place == peers.place
    rows = [{"patient": "Ann", "ward": "A", "value": 1.5}]
    publish_here(maia.open(peers.clinic.home).home, "Result", rows, as_="lab", at=datetime.now(UTC))
    assert read_here(mary.home, "Result", as_="ann") == [{"patient": None, "ward": "A", "value": 1.5}]
    peers.clinic.do("domain", "disconnect", "st-marys", "--yes")
    with pytest.raises(MaiaError):
        read_here(maia.open(peers.mary.home).home, "Result", as_="ann")


SETTINGS = {
    "credentials in the address": ("s3://key:secret@bucket/log", "credentials come from the environment"),
    "credentials as options": ("s3://bucket/log?aws_secret_access_key=secret", "credentials come from the environment"),
    "a kind that is none": ("s4://bucket/log", "no store of the kind `s4`"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_a_home_says_where_its_log_is_and_nothing_else(world: World, case: str) -> None:
    """An address with more in it is refused when the home is opened, and a secret is not repeated."""
    address, words = SETTINGS[case]
    settings = world.homes.ccs / "maia.toml"
    settings.write_text(settings.read_text("utf-8").replace(world.place, address), "utf-8")
    ran = world.command("status", "--json")
    assert (ran.code, ran.data["error"]) == (1, "HOMECONFIG_FILE")
    assert words in ran.out + ran.err
    assert "secret" not in (ran.out + ran.err).replace("aws_secret_access_key", "")


def test_a_home_is_made_with_a_log_in_a_bucket(tmp_path: Path, s3: Any) -> None:
    """`maia domain init --log s3://…`; an address that is none is refused, and no home is made."""
    command = Command(tmp_path / "clinic")
    assert command.refused("domain", "init", str(command.home), "--log", "s3://a:b@c/d") == (2, "STORE_ADDRESS")
    assert command.refused("domain", "init", str(command.home), "--log", "memory://log") == (2, "STORE_ADDRESS")
    assert not command.home.exists()
    place = f"s3://{s3.new_bucket()}"
    command.do("domain", "init", str(command.home), "--log", f"{place}/")
    assert maia.open(command.home).log.place == place


def test_doctor_tells_a_store_that_cannot_be_used(world: World) -> None:
    """A server that ignores conditions, a bucket that is not there, credentials that open nothing, another time."""

    def stores() -> list[tuple[str, str]]:
        found = world.command("doctor", "--json").data["findings"]
        return [(item["status"], item["detail"]) for item in found if item["name"] == "store"]

    assert [status for status, _ in stores()] == ["ok"]
    world.s3.careless = True
    [(status, detail)] = stores()
    assert status == "problem"
    assert "two writers" in detail
    world.s3.careless = False
    for method in ("PUT", "GET", "LIST", "HEAD"):
        world.s3.fail(method, 403, times=99)
    [(status, detail)] = stores()
    assert status == "problem"
    assert "permission denied" in detail
    world.s3.faults.clear()
    settings = world.homes.ccs / "maia.toml"
    settings.write_text(settings.read_text("utf-8").replace(world.bucket, "there-is-none"), "utf-8")
    [(status, detail)] = stores()
    assert status == "problem"
    assert "no such bucket" in detail
