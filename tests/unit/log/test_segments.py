"""Segments: what is compared is what is read, whoever writes to the file meanwhile."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maia.encryption import ParcelHeader, sign_parcel
from maia.errors import EncodingError
from maia.events import EncryptionMode, TypeId
from maia.log import PARCEL_SCHEMA, DirectoryStore, read_segment, segments
from maia.log.commits import LogFile
from maia.principals import KeySigner

BROKER = KeySigner(b"o" * 32)
HEADER = ParcelHeader(
    type_id=TypeId(b"t" * 32), origin=BROKER.public_key.key_id, parcel_id=bytes(16), event_base=bytes(16), stamp=1,
    count=1, epoch=0, mode=EncryptionMode.PLAIN, evidence=bytes(32), labels=(),
)  # fmt: skip
PARCEL = sign_parcel(HEADER, (), BROKER)
ROW = {"type_id": b"t", "origin": b"o", "stamp": 1, "events": 1, "evidence": b"e", "parcel": PARCEL.to_bytes()}


def segment(root: Path) -> LogFile:
    """Write a segment of two parcels."""
    with pq.ParquetWriter(root / "x.parquet", PARCEL_SCHEMA, compression="none", use_dictionary=False) as writer:
        for _ in range(2):
            writer.write_batch(pa.RecordBatch.from_pylist([ROW], schema=PARCEL_SCHEMA))
    data = (root / "x.parquet").read_bytes()
    return LogFile("x.parquet", len(data), hashlib.sha256(data).hexdigest(), 2, 2, 1, 1)


@pytest.mark.threat("T27")
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_segment_that_is_written_to_while_it_is_read_gives_what_was_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_memory: bool
) -> None:
    """Its octets are exchanged after its digest was compared; in memory and in a file, what was compared is read."""
    file, store = segment(tmp_path), DirectoryStore(tmp_path)
    check = segments._check_shape

    def exchange(parquet: pq.ParquetFile, of: LogFile) -> None:
        check(parquet, of)
        with (tmp_path / "x.parquet").open("r+b") as shared:
            shared.write(bytes(file.size - 64))

    monkeypatch.setattr(segments, "_check_shape", exchange)
    if not in_memory:
        monkeypatch.setattr(segments, "_IN_MEMORY", 0)
    assert [logged.parse() for logged in read_segment(store, file)] == [PARCEL, PARCEL]
    with pytest.raises(EncodingError, match="LOG_FILE_DAMAGED"):
        next(read_segment(store, file))
