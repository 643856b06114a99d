"""A lane under random hands: junk, removals, replays. Never loss, repetition, another order, or a wrong record."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maia.errors import MaiaError
from maia.log import START, DirectoryStore, LaneId, LaneReader, LaneWriter
from maia.log.lane_objects import parse_head, parse_record
from maia.principals import KeySigner

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OWNER, EVE = KeySigner(bytes([1]) * 32), KeySigner(bytes([2]) * 32)
LANE = LaneId(kind="statement", owner=OWNER.public_key.key_id, topic="t")
NUMBERS = st.integers(0, 12)
ATTACKS = st.one_of(
    st.tuples(st.just("say"), st.integers(1, 3)),
    st.tuples(st.just("read"), NUMBERS),
    st.tuples(st.just("junk"), NUMBERS),
    st.tuples(st.just("pipe"), NUMBERS),
    st.tuples(st.just("folder"), NUMBERS),
    st.tuples(st.just("remove"), NUMBERS),
    st.tuples(st.just("swap"), NUMBERS),
    st.tuples(st.just("forge"), NUMBERS),
    st.tuples(st.just("old head"), NUMBERS),
)


def attack(folder: Path, kind: str, number: int, heads: list[bytes]) -> None:
    """Do something to the store that its owner would not."""
    path = folder / f"{number:012d}.record"
    whole = path.read_bytes() if path.is_file() else b""
    if kind == "old head" and heads:
        (folder / "head").write_bytes(heads[number % len(heads)])
    elif kind == "swap":
        other = folder / f"{number + 1:012d}.record"
        if other.is_file() and not path.is_dir():
            path.unlink(missing_ok=True)
            shutil.copyfile(other, path)
    elif kind in {"junk", "pipe", "folder", "remove", "forge"}:
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
        if kind == "junk":
            path.write_bytes(b"junk")
        elif kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "forge" and whole:
            path.write_bytes(whole.replace(OWNER.public_key.raw, EVE.public_key.raw))


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(ATTACKS, max_size=25))
def test_a_reader_gets_what_was_signed_in_order_and_once(steps: list[tuple[str, int]]) -> None:
    """At every moment what was read is a beginning of what was signed; after the owner asserted it, all of it."""
    with TemporaryDirectory() as name:
        root = Path(name)
        store, own = DirectoryStore(root / "log"), DirectoryStore(root / "home", private=True)
        reader, folder = LaneReader(store, LANE), root / "log" / LANE.folder
        folder.mkdir(parents=True)
        said: list[bytes] = []
        seen: list[bytes] = []
        heads: list[bytes] = []
        place, stamp = START, -1

        def read_on() -> None:
            nonlocal place, stamp
            found = reader.since(place, stamp=stamp, limit=3)
            seen.extend(record.body for record in found.records)
            place = found.place
            stamp = found.records[-1].stamp if found.records else stamp
            assert seen == said[: len(seen)]

        for kind, number in steps:
            if kind == "say":
                writer = LaneWriter(store, LANE, OWNER, own)
                for _ in range(number):
                    said.append(b"%d" % len(said))
                    writer.append(said[-1], at=NOW)
                writer.assert_head(at=NOW)
                heads.append((folder / "head").read_bytes())
            elif kind == "read":
                read_on()
            else:
                attack(folder, kind, number, heads)
        LaneWriter(store, LANE, OWNER, own).reassert(at=NOW, depth=None)
        while len(seen) < len(said):
            before = len(seen)
            read_on()
            assert len(seen) > before
        assert seen == said


@given(raw=st.binary(max_size=400))
def test_no_octets_make_the_readers_raise_anything_else(raw: bytes) -> None:
    """Records and heads are refused by name."""
    with pytest.raises(MaiaError):
        parse_record(LANE, 0, raw)
    with pytest.raises(MaiaError):
        parse_head(LANE, raw)
