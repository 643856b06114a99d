"""Segments by column: who needs one attribute reads one, and nothing is believed that was not compared."""

from __future__ import annotations

import shutil
import tarfile
from base64 import b64decode, b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import maia
from maia.encryption import open_parcel, parse_parcel, sign_parcel, verify_parcel
from maia.testing import TYPE_NAME, Command, LaneOf, numberplate_homes, publish_here, read_here, rows_of

EVENTS = 6000
PLATE, PLACE = "3265", "3467"
GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "logs").glob("*.tar.xz"))
MILLISECOND = timedelta(milliseconds=1)


class World:
    """The homes of the number plates; the camera published one large parcel, which lies by column."""

    def __init__(self, root: Path) -> None:
        """Publish."""
        self.root = root
        homes = numberplate_homes(root)
        self.home = maia.open(homes.ccs).home
        self.command, self.at = Command(homes.ccs), datetime.now(UTC)
        self.rows = [
            {"numberplate": f"P{number * 7919 % 100_003}", "timestamp": self.at, "location": "Victoria"}
            for number in range(EVENTS)
        ]
        publish_here(self.home, TYPE_NAME, self.rows, as_="CCTV", at=self.at)
        self.log = maia.open(homes.ccs).log
        [self.commit] = self.log.commits()
        [self.file] = self.commit.files
        self.path = self.log.path / self.file.path

    def flip(self, column: str, name: str = "") -> None:
        """Change an octet in the middle of a block."""
        path = self.log.path / name if name else self.path
        block = pq.read_table(path, partitioning=None).column(column)[0].as_py()
        data = bytearray(path.read_bytes())
        data[data.index(block) + len(block) // 2] ^= 1
        path.write_bytes(data)

    def read(self, *attributes: str, lenient: bool = True) -> int:
        """Count what the billing office reads of these attributes, or of all."""
        return len(read_here(self.home, TYPE_NAME, as_="BO", attributes=attributes or None, lenient=lenient))

    def told(self, kind: str) -> dict[str, int]:
        """Give the codes of a kind of audit rows, with their events."""
        rows = self.command.do("audit", "--kind", kind)["rows"]
        return {row["reason"]: row["events"] for row in rows}

    def own(self) -> LaneOf:
        """Give the lane of the service's own broker, which keeps to no rule from now on."""
        evidence = self.log.evidence(bytes.fromhex(self.commit.evidence))
        return LaneOf(self.log.path, self.commit.type_id, self.home.broker, self.home.path / "lanes", evidence=evidence)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Give a log with one columnar segment."""
    return World(tmp_path)


def test_a_reader_of_some_attributes_needs_no_other_block(world: World) -> None:
    """The block of the place is damaged: who reads plates reads on, and nobody learns what the block held."""
    assert world.read() == world.read("numberplate") == EVENTS
    world.flip(PLACE)
    assert world.read("numberplate") == EVENTS
    [row] = {tuple(row) for row in read_here(world.home, TYPE_NAME, as_="BO", attributes=["numberplate"], lenient=True)}
    assert row == ("numberplate",)
    assert world.told("alarm") == {}


@pytest.mark.threat("T27")
def test_a_block_that_somebody_changed_is_told_and_comes_when_it_is_there_again(world: World) -> None:
    """Whoever needs it passes the segment by with an alarm; a reader with an offset waits; nothing is refused."""
    kept = world.root / "kept"
    shutil.copy(world.path, kept)
    world.flip(PLATE)
    assert world.read("numberplate") == 0
    assert world.told("alarm") == {"LOG_FILE_DAMAGED": EVENTS}
    assert world.read(lenient=False) == 0
    assert world.told("refuse") == {}
    shutil.copy(kept, world.path)
    assert world.read("numberplate") == EVENTS


@pytest.mark.threat("T53")
def test_a_block_that_its_origin_s_own_head_denies_is_a_dead_letter(world: World) -> None:
    """The file is what was committed, so nobody waits for another: it is refused, with its events counted."""
    ccs = world.home.path
    elsewhere = shutil.copytree(ccs.parent, world.root / "elsewhere")
    at = world.at + MILLISECOND * 5
    later = maia.open(elsewhere / ccs.name)
    publish_here(later.home, TYPE_NAME, world.rows, as_="CCTV", at=at)
    *_, commit = later.log.commits()
    [file] = commit.files
    shutil.copy(later.log.path / file.path, world.log.path / file.path)
    world.flip(PLATE, file.path)
    lane = world.own()
    lane.say("denied", lane.described(file), at=at)
    assert world.read("numberplate") == EVENTS
    assert world.told("refuse") == {"BLOCK_DAMAGED": EVENTS}
    assert world.read(lenient=False) == EVENTS
    assert world.told("alarm") == {}


@pytest.mark.threat("T27")
def test_an_end_that_somebody_changed_is_never_read(world: World) -> None:
    """It tells where all the rest lies, and how many events there are; a well-made one is told from the true one."""
    data = bytearray(world.path.read_bytes())
    start = data.index(b"maia.heads") + len(b"maia.heads")
    start = next(at for at in range(start, len(data)) if data[at : at + 4] == b"AAAA")
    entry = bytearray(b64decode(data[start : start + 8]))
    entry[4] ^= 1  # the number of events
    data[start : start + 8] = b64encode(entry)
    world.path.write_bytes(data)
    assert world.read("numberplate") == 0
    assert world.told("alarm") == {"LOG_FILE_DAMAGED": EVENTS}


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name.partition(".")[0])
def test_a_golden_log_is_read_as_it_was_written(golden: Path, tmp_path: Path) -> None:
    """One of each format of segments, as the code of then wrote it (`scripts/golden.py`): every value is there."""
    with tarfile.open(golden) as archive:
        archive.extractall(tmp_path, filter="data")
    for key in (tmp_path / "home" / "keys").glob("*.key"):
        key.chmod(0o600)
    with maia.open(tmp_path / "home") as domain:
        ring = domain.home.keyring()
        keys = {group.label: ring.key(group, ring.epochs(group)[-1]) for group in ring.groups()}
        found = [
            open_parcel(verify_parcel(logged.parse()), keys.get)
            for commit in domain.log.commits()
            for file in commit.files
            for logged in domain.log.parcels(commit.lane, file)
        ]
        assert [file.tail > 0 for commit in domain.log.commits() for file in commit.files] == [False, True]
    assert [len(columns[b"1"]) for columns in found] == [1, 8000]
    for columns in found:
        count = len(columns[b"1"])
        assert columns[b"1"].to_pylist() == [f"p{row % 7}" for row in range(count)]
        assert columns[b"2"].to_pylist() == [(row * 7919 % 1_000_003) / 8 for row in range(count)]


def plain_world(command: Command) -> None:
    """Make a home with a type that travels in the clear, so that anybody can write its blocks by hand."""
    command.do("domain", "init", str(command.home), "--name", "clinic")
    for name in ("domain", "lab", "doctor"):
        command.do("key", "new", name, "--no-passphrase")
    kind = "domain/clinic.Note@1"
    command.do("type", "define", kind, "--attribute", "note:string:1", "--encryption", "plain")
    command.do("name", "add", "brokers", "--from", "domain", "--to", "broker")
    for who, action in (("broker", "publish"), ("broker", "subscribe"), ("lab", "publish"), ("doctor", "subscribe")):
        command.do("grant", "--from", "domain", "--to", who, "--type", kind, "--action", action)


@pytest.mark.threat("T53")
def test_a_small_block_that_says_one_long_text_a_thousand_times_is_refused(maia_command: Command) -> None:
    """Some hundred octets that would be 128 MiB: refused before they are unpacked; what is honest comes."""
    plain_world(maia_command)
    with maia.open(maia_command.home) as domain:
        at = datetime.now(UTC)
        publish_here(domain.home, "clinic.Note", [{"note": "honest"}], as_="lab", at=at)
        [first] = domain.log.commits()
        [logged] = domain.log.parcels(first.lane, first.files[0])
        honest = parse_parcel(logged.parse().to_bytes())
    count = 4096
    bits = np.packbits(np.ones(count, dtype=np.uint8), bitorder="little").tobytes()
    text = bytes(1 << 15)
    body = bits + (1).to_bytes(4, "big") + bytes(count) + np.array([0, len(text)], np.int32).tobytes() + text
    packed = pa.compress(body, codec="zstd", asbytes=True)
    block = bytes((68, 2)) + b"".join(n.to_bytes(4, "big") for n in (count, len(body), len(packed))) + packed
    assert len(block) < 1 << 10
    at += MILLISECOND * 5
    header = replace(
        honest.header, count=count, parcel_id=bytes(16), event_base=bytes(16), stamp=int(at.timestamp() * 1000)
    )
    parcel = sign_parcel(header, (block,), domain.home.broker).to_bytes()
    evidence = domain.log.evidence(bytes.fromhex(first.evidence))
    home = domain.home
    lane = LaneOf(domain.log.path, first.type_id, home.broker, home.path / "lanes", evidence=evidence)
    made = lane.segment("bomb", rows_of(first, parcel), at=at, compression="none", use_dictionary=False)
    lane.say("bomb", made, at=at)
    before = pa.total_allocated_bytes()
    assert read_here(home, "clinic.Note", as_="doctor") == [{"note": "honest"}]
    assert pa.total_allocated_bytes() - before < 64 << 20
    reasons = {row["reason"] for row in maia_command.do("audit", "--kind", "refuse")["rows"]}
    assert reasons == {"SEAL"}


def test_a_type_can_leave_compression_off(maia_command: Command) -> None:
    """Then lengths tell no more of values than without it; a type that says nothing has it on, and both are shown."""
    plain_world(maia_command)
    maia_command.do(
        "type", "define", "domain/clinic.Long@1", "--attribute", "note:string:1", "--encryption", "plain",
        "--no-compression",
    )  # fmt: skip
    sizes = {}
    with maia.open(maia_command.home) as domain:
        for name in ("clinic.Note", "clinic.Long"):
            if name == "clinic.Long":
                for who, action in (("broker", "publish"), ("lab", "publish")):
                    kind = "domain/clinic.Long@1"
                    maia_command.do("grant", "--from", "domain", "--to", who, "--type", kind, "--action", action)
            publish_here(domain.home, name, [{"note": "same"}] * 1000, as_="lab", at=datetime.now(UTC))
            *_, commit = domain.log.commits()
            [logged] = domain.log.parcels(commit.lane, commit.files[0])
            sizes[name] = logged.parse().octets
            shown = maia_command.do("type", "show", name)["options"]["compression"]
            assert shown is (name == "clinic.Note")
    assert sizes["clinic.Note"] < 100
    assert sizes["clinic.Long"] > 4000
