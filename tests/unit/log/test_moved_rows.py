"""Segments that an earlier Maia put together: they read as before, and what was put in their place costs little."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maia.encoding import encode
from maia.encryption import Parcel, ParcelHeader, sign_parcel
from maia.errors import EncodingError
from maia.events import EncryptionMode, TypeId
from maia.log import PARCEL_SCHEMA, LogDirectory, OwnLanes, compact, expire
from maia.principals import KeySigner

AT = datetime(2026, 6, 1, 9, tzinfo=UTC)
TYPE = TypeId(b"t" * 32)
BROKER = KeySigner(b"o" * 32)


def parcel(number: int) -> Parcel:
    """Make a parcel without blocks."""
    header = ParcelHeader(
        type_id=TYPE, origin=BROKER.public_key.key_id, parcel_id=bytes(16), event_base=number.to_bytes(16, "big"),
        stamp=number + 1, count=1, epoch=0, mode=EncryptionMode.PLAIN, evidence=bytes(32), labels=(),
    )  # fmt: skip
    return sign_parcel(header, (), BROKER)


def row_of(parcel: Parcel) -> dict[str, Any]:
    """Write a parcel as a row."""
    header = parcel.header
    return {
        "type_id": header.type_id, "origin": header.origin, "stamp": header.stamp, "events": header.count,
        "evidence": header.evidence, "parcel": parcel.to_bytes(),
    }  # fmt: skip


def digest(row: dict[str, Any]) -> bytes:
    """Name the rows of a segment as the earlier Maia did."""
    found = hashlib.sha256()
    for name in PARCEL_SCHEMA.names:
        cell = row[name]
        data = b"%d" % cell if isinstance(cell, int) else bytes(cell)
        found.update(len(data).to_bytes(8, "big") + data)
    return found.digest()


class Old:
    """A lane of three segments that lie in one Parquet file, a row group each."""

    def __init__(self, root: Path) -> None:
        """Commit, and move as it was done."""
        self.log = LogDirectory(root / "log")
        self.own = OwnLanes(self.log, root / "own", BROKER)
        parcels = [parcel(number) for number in range(3)]
        self.rows = [row_of(one) for one in parcels]
        writer = self.own.writer(TYPE.hex())
        names = []
        for number, one in enumerate(parcels):
            with self.log.writer(f"p{number}", TYPE, 0, BROKER.public_key.key_id, at=AT) as segment:
                segment.add(one)
                made = segment.close()
            assert made is not None
            self.own.commit(f"p{number}", TYPE.hex(), (made,), evidence="00" * 32, at=AT)
            names.append(made.path)
        self.packed = self.log.path / writer.lane.folder / "date=2026-06-01" / f"compact-{'0' * 24}.parquet"
        self.write(self.rows)
        start = len(writer.lane.folder) + 1
        moves = (
            (b"segment", name[start:].encode(), f"date=2026-06-01/{self.packed.name}".encode(), b"%d" % group,
             digest(self.rows[group]))
            for group, name in enumerate(names)
        )  # fmt: skip
        writer.append(encode((b"moved", b"1", *moves)), at=AT)
        for name in names:
            (self.log.path / name).unlink()

    def write(self, rows: list[dict[str, Any]], **options: Any) -> None:
        """Write the file."""
        table = pa.Table.from_pylist(rows, schema=PARCEL_SCHEMA)
        pq.write_table(
            table, self.packed, row_group_size=1, **{"compression": "none", "use_dictionary": False} | options
        )

    def read(self) -> list[dict[str, Any]]:
        """Read all rows that lie in the lane."""
        log = LogDirectory(self.log.path)
        commits = [(commit.lane, file) for commit in log.commits() for file in commit.files]
        return [row_of(one.parse()) for lane, file in commits for one in log.parcels(lane, file)]


@pytest.fixture
def old(tmp_path: Path) -> Old:
    """Give the lane."""
    return Old(tmp_path)


def stamps(rows: list[dict[str, Any]]) -> list[int]:
    """Give the stamps of rows."""
    return [row["stamp"] for row in rows]


def test_what_an_earlier_maia_put_together_reads_and_stays_as_it_is(old: Old) -> None:
    """Nothing can be put together with it, for the octets of its segments are gone; it goes when all of it expired."""
    assert stamps(old.read()) == [1, 2, 3]
    assert compact(old.log, old.own, at=AT).before == 0
    assert stamps(old.read()) == [1, 2, 3]
    assert expire(old.log, old.own, before=datetime(2027, 1, 1, tzinfo=UTC), at=AT).files == 1
    assert not old.packed.exists()


def _large(old: Old) -> None:
    old.write([{**row, "parcel": bytes(1 << 20)} for row in old.rows])


def _compressed(old: Old) -> None:
    old.write([{**row, "parcel": bytes(1 << 20)} for row in old.rows], compression="zstd")


def _shared(old: Old) -> None:
    old.write(old.rows, use_dictionary=True)


def _described(old: Old) -> None:
    with old.packed.open("ab") as file:
        file.write((1 << 30).to_bytes(4, "little") + b"PAR1")


def _sparse(old: Old) -> None:
    with old.packed.open("r+b") as file:
        file.truncate(1 << 36)


def _exchanged(old: Old) -> None:
    old.write(list(reversed(old.rows)))


def _short(old: Old) -> None:
    old.packed.write_bytes(b"PAR1")


@pytest.mark.parametrize("lie", [_large, _compressed, _shared, _described, _sparse, _exchanged, _short])
def test_what_lies_in_its_place_is_damage(old: Old, lie: Callable[[Old], None]) -> None:
    """Larger rows than the committed segment, compressed or shared ones, a description of a gigabyte, other rows."""
    lie(old)
    with pytest.raises(EncodingError) as refused:
        old.read()
    assert refused.value.code == "LOG_FILE_DAMAGED"
