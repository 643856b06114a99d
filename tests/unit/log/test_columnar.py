"""Columnar segments: a reader reads and compares what it needs, and knows whose fault it is when something differs."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maia.encryption import Compression, Parcel, ParcelHeader, open_parcel, seal, verify_parcel
from maia.errors import DamagedError, EncodingError, MaiaError, MalformedError, UnavailableError
from maia.events import AttributeType, EncryptionMode, TypeId
from maia.kernel import LoggedParcel
from maia.log import (
    DirectoryStore,
    EventLane,
    LaneId,
    LogFile,
    Store,
    columnar,
    directory_store,
    open_store,
    read_segment,
)
from maia.log.commits import Moved
from maia.log.segment_writer import PartitionWriter
from maia.log.segments import newest_parcel
from maia.principals import KeySigner
from s3 import S3Server

BROKER = KeySigner(b"o" * 32)
KEY = bytes(32)
COUNT = 4000
LABELS = (b"1", b"2", b"3")


def parcel(number: int, labels: tuple[bytes, ...] = LABELS, *, count: int = COUNT) -> Parcel:
    """Seal a parcel of distinct numbers."""
    header = ParcelHeader(
        type_id=TypeId(b"t" * 32), origin=BROKER.public_key.key_id, parcel_id=number.to_bytes(16, "big"),
        event_base=number.to_bytes(16, "big"), stamp=100 + number, count=count, epoch=100,
        mode=EncryptionMode.ATTRIBUTE, evidence=bytes(32), labels=labels,
    )  # fmt: skip
    values = pa.array([(number + 7919 * row) % 1_000_003 for row in range(count)])
    columns = dict.fromkeys(labels, (AttributeType.INTEGER, values))
    return seal(columns, header, BROKER, lambda _: KEY, compression=Compression.ZSTD)


class Segment:
    """A columnar segment of two parcels in a folder."""

    def __init__(self, root: Path, *parcels: Parcel) -> None:
        """Write it."""
        self.parcels = parcels or (parcel(1), parcel(2))
        self.path, self.store = root / "x.parquet", DirectoryStore(root)
        with PartitionWriter(self.store, "x.parquet") as writer:
            for one in self.parcels:
                writer.add(one)
            made = writer.close()
        assert made is not None
        self.file: LogFile = made

    def flip(self, at: int) -> None:
        """Change an octet."""
        data = bytearray(self.path.read_bytes())
        data[at] ^= 1
        self.path.write_bytes(data)

    def place(self, block: bytes | memoryview) -> int:
        """Tell where the middle of a block lies."""
        return self.path.read_bytes().index(bytes(block)) + len(block) // 2

    def read(self, *labels: bytes) -> list[list[bytes]]:
        """Open some blocks of all parcels; give their labels."""
        return [
            list(open_parcel(verify_parcel(logged.parse()), lambda _: KEY, labels=labels or None))
            for logged in read_segment(self.store, self.file)
        ]

    def described(self) -> None:
        """Let the commit say of the file what it is by now."""
        data = self.path.read_bytes()
        tail = int.from_bytes(data[-8:-4], "little") + 8
        self.file = replace(
            self.file, size=len(data), digest=hashlib.sha256(data).hexdigest(), tail=tail,
            tail_digest=hashlib.sha256(data[-tail:]).hexdigest(),
        )  # fmt: skip


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """Give a segment."""
    return Segment(tmp_path)


def test_any_reader_of_parquet_sees_a_column_for_each_block(segment: Segment) -> None:
    """Sealed, under the uids, beside what the header tells; nothing lies there twice."""
    table = pq.read_table(segment.path)
    assert table.schema.names[-3:] == ["1", "2", "3"]
    assert table.column("events").to_pylist() == [COUNT, COUNT]
    for row, made in zip(table.to_pylist(), segment.parcels, strict=True):
        assert [row[label.decode()] for label in LABELS] == [bytes(block) for block in made.blocks]
        assert row["head"] == made.head()
        assert row["parcel"] is None
    assert segment.file.size < sum(made.octets for made in segment.parcels) + (8 << 10)


def test_what_is_not_needed_is_not_read(segment: Segment, monkeypatch: pytest.MonkeyPatch) -> None:
    """One block of three: the end of the file, two heads and two blocks, and nothing else."""
    seen: list[int] = []
    real = os.pread
    monkeypatch.setattr(directory_store.os, "pread", lambda fd, size, at: seen.append(size) or real(fd, size, at))
    assert segment.read(b"2") == [[b"2"], [b"2"]]
    blocks = [len(made.blocks[1]) for made in segment.parcels]
    heads = [len(made.head()) for made in segment.parcels]
    assert sorted(seen) == sorted([segment.file.tail, *heads, *blocks])


@pytest.mark.threat("T27")
def test_a_block_that_is_read_is_compared_and_one_that_is_not_stops_nobody(segment: Segment) -> None:
    """Somebody changed one block of one parcel in the shared log."""
    segment.flip(segment.place(segment.parcels[1].blocks[1]))
    assert segment.read(b"1", b"3") == [[b"1", b"3"]] * 2
    with pytest.raises(DamagedError, match="BLOCK_DAMAGED"):
        segment.read(b"2")


@pytest.mark.threat("T27")
def test_blame_is_the_log_s_when_the_file_is_not_what_was_committed(segment: Segment) -> None:
    """Then nobody knows what it held. When it is, its origin committed a block that its own head denies."""
    segment.flip(segment.place(segment.parcels[1].blocks[1]))

    def last() -> LoggedParcel:
        *_, found = read_segment(segment.store, segment.file)
        return found

    blame = last().blame
    assert blame is not None
    with pytest.raises(EncodingError, match="LOG_FILE_DAMAGED"):
        blame()
    segment.described()
    blame = last().blame
    assert blame is not None
    blame()


@pytest.mark.threat("T27")
@pytest.mark.parametrize("where", ["end", "head"])
def test_an_end_or_a_head_that_was_changed_is_damage(segment: Segment, where: str) -> None:
    """Nothing of it is believed, and Parquet's reader never sees it."""
    segment.flip(-20 if where == "end" else segment.place(segment.parcels[0].head()))
    with pytest.raises(EncodingError, match="LOG_FILE_DAMAGED"):
        segment.read(b"1")


@pytest.mark.threat("T53")
def test_what_its_origin_committed_and_is_no_segment_is_malformed(segment: Segment) -> None:
    """Another file, rightly described: no heads, other columns, too few rows, or an end of nothing."""
    row = pq.read_table(segment.path)
    without = row.replace_schema_metadata(None)
    for table in (without, without.select(["type_id"]), without.slice(0, 1)):
        pq.write_table(table, segment.path, compression="zstd", row_group_size=1)
        segment.described()
        with pytest.raises(MalformedError, match="SEGMENT_MALFORMED"):
            segment.read(b"1")
    segment.path.write_bytes(bytes(1000) + (992).to_bytes(4, "little") + b"PAR1")
    segment.described()
    with pytest.raises(MalformedError, match="SEGMENT_MALFORMED"):
        segment.read(b"1")
    segment.file = replace(segment.file, tail=columnar.MAX_TAIL + 1)
    with pytest.raises(MalformedError, match="SEGMENT_MALFORMED"):
        segment.read(b"1")


@pytest.mark.threat("T53")
@pytest.mark.parametrize(
    "shape",
    {"more rows than parcels": (40, 400), "more columns than a type": (columnar._MAX_COLUMNS + 1, 2)}.values(),
)
def test_a_description_of_more_than_was_committed_is_not_read(
    segment: Segment, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few megabytes of it would take a hundred in memory: Parquet's reader never sees it."""
    columns, rows = shape
    schema = pa.schema([pa.field(f"{number}", pa.binary()) for number in range(columns)])
    row = pa.RecordBatch.from_arrays([pa.nulls(1, pa.binary())] * columns, schema=schema)
    with pq.ParquetWriter(segment.path, schema, write_statistics=False, store_schema=False) as writer:
        for _ in range(rows):
            writer.write_batch(row)
    segment.described()
    monkeypatch.setattr(columnar.pq, "ParquetFile", None)
    with pytest.raises(MalformedError, match="SEGMENT_MALFORMED"):
        segment.read(b"1")


@pytest.mark.parametrize("columns", [1, 16, 1024])
def test_the_widest_types_and_the_longest_uids_fit(tmp_path: Path, columns: int) -> None:
    """What Maia writes takes no more room than its reader allows, by far."""
    labels = tuple(f"{number:08x}-0000-4000-8000-000000000000".encode() for number in range(columns))
    made = Segment(tmp_path, *(parcel(number, labels, count=20_000 // columns + 20) for number in range(3)))
    assert made.file.tail > 0
    assert made.file.tail * 10 < 7 * 4 * (columnar._PARCEL_ROOM + (columns + 7) * columnar._CHUNK_ROOM)
    assert [len(found) for found in made.read()] == [columns] * 3


@pytest.mark.threat("T53")
@pytest.mark.parametrize("at", range(40, 1400, 97))
def test_an_end_with_a_changed_octet_that_its_origin_signed_raises_nothing_else(segment: Segment, at: int) -> None:
    """Whatever its origin makes of the description: parcels as they were, or an error of ours."""
    segment.flip(-at)
    segment.described()
    with suppress(MaiaError):
        assert segment.read() == [list(LABELS)] * 2


def test_a_parcel_with_other_blocks_lies_in_one_piece(tmp_path: Path) -> None:
    """It is read as the others are; of small ones all are rows, as before."""
    segment = Segment(tmp_path, parcel(1), parcel(2, (b"1", b"9")))
    assert segment.read() == [[b"1", b"2", b"3"], [b"1", b"9"]]
    (tmp_path / "small").mkdir()
    small = Segment(tmp_path / "small", parcel(1, count=3))
    assert small.file.tail == 0
    assert pq.read_table(small.path).schema.names[-1] == "parcel"
    assert small.read() == [[b"1", b"2", b"3"]]


def test_the_newest_parcel_is_found_after_all_was_compared(segment: Segment) -> None:
    """For whoever has to know its epoch; of a file that was changed anywhere it is not given."""
    assert newest_parcel(segment.store, segment.file).parse().header.stamp == 102
    segment.flip(segment.place(segment.parcels[0].blocks[0]))
    with pytest.raises(EncodingError, match="LOG_FILE_DAMAGED"):
        newest_parcel(segment.store, segment.file)


def test_a_segment_that_was_moved_is_read_where_it_lies(segment: Segment) -> None:
    """Octet for octet behind another: places count from where it begins."""
    data = segment.path.read_bytes()
    segment.path.with_name("packed.segments").write_bytes(bytes(123) + data + bytes(77))
    segment.path.unlink()
    moved = Moved("packed.segments", 123)
    found = [logged.parse().to_bytes() for logged in read_segment(segment.store, segment.file, moved)]
    assert found == [made.to_bytes() for made in segment.parcels]


# -- where its origin moved it

NAME, MOVED = "x.parquet", "y.segments"


@pytest.fixture(params=["directory", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Give a store of each kind, which keeps no small object in memory."""
    monkeypatch.setattr("maia.log.object_parts._WHOLE", 0)
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        return open_store(f"s3://{server.new_bucket()}")
    return open_store(str(tmp_path) if request.param == "directory" else f"memory://{tmp_path.name}")


def _written(store: Store) -> LogFile:
    with PartitionWriter(store, NAME) as writer:
        for number in (1, 2, 3):
            writer.add(parcel(number))
        made = writer.close()
    assert made is not None
    return made


def test_a_segment_that_is_moved_while_it_is_read_gives_each_parcel_once(store: Store) -> None:
    """One parcel was read; then the file is gone, and lies behind another one."""
    file = _written(store)
    lane = EventLane(store, LaneId(kind="events", owner=BROKER.public_key.key_id, topic="ab"))
    found = []
    for logged in lane.parcels(file):
        found.append(logged.parse().header.parcel_id[-1])
        if len(found) == 1:
            store.put(MOVED, b"before it" + store.get(NAME, limit=file.size))
            store.delete(NAME)
            lane._moves[file.path] = 0, Moved(MOVED, len(b"before it"))
    assert found == [1, 2, 3]


def test_a_segment_that_is_gone_is_missing_where_it_was(store: Store) -> None:
    """Nobody said that it was moved: what the store said first is told."""
    file = _written(store)
    lane = EventLane(store, LaneId(kind="events", owner=BROKER.public_key.key_id, topic="ab"))
    store.delete(NAME)
    with pytest.raises(UnavailableError, match="LOG_FILE_MISSING"):
        list(lane.parcels(file))
