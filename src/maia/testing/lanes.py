"""Lanes as a hostile member of a shared log would write them; for tests of what readers do then."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.log import PARCEL_SCHEMA, Commit, LogDirectory, LogFile, OwnLanes, write_commit
from maia.principals import Signer

_NAME = "00" * 16


def rows_of(commit: Commit, *parcels: bytes) -> pa.Table:
    """Make rows with the columns of a segment, by what a commit says, around parcels."""
    row = {
        "type_id": bytes.fromhex(commit.type_id), "origin": bytes.fromhex(commit.origin), "stamp": commit.stamp,
        "events": 1, "evidence": bytes.fromhex(commit.evidence),
    }  # fmt: skip
    return pa.Table.from_pylist([{**row, "parcel": parcel} for parcel in parcels], schema=PARCEL_SCHEMA)


class LaneOf:
    """A lane of a type that somebody writes into a log, with whatever evidence and whatever segments."""

    def __init__(
        self, log: Path | str, type_id: str, signer: Signer, own: Path, *, evidence: tuple[bytes, ...] = ()
    ) -> None:
        """Write to a log; ``own`` is where the writer keeps its own record."""
        self._log = LogDirectory(log)
        self._lanes = OwnLanes(self._log, own, signer)
        self._type_id = type_id
        self._evidence = self._log.put_evidence(evidence).hex()

    @property
    def evidence(self) -> str:
        """What the lane's commits rest on, by its hash in hex."""
        return self._evidence

    @property
    def folder(self) -> Path:
        """Where the lane lies."""
        return self._log.path / self._lanes.writer(self._type_id).lane.folder

    def commit(
        self, publication: str, *, at: datetime, table: pa.Table | None = None, compression: str = "none"
    ) -> None:
        """Commit a table as if it were a segment, or nothing."""
        files = () if table is None else (self.segment(publication, table, at=at, compression=compression),)
        self._lanes.commit(publication, self._type_id, files, evidence=self._evidence, at=at)

    def segment(self, name: str, table: pa.Table | None = None, *, at: datetime, **options: str | bool) -> LogFile:
        """Write a table (else one without a parcel) where segments of the lane lie, as pyarrow is told to.

        Gives what a commit would say of it.
        """
        table = PARCEL_SCHEMA.empty_table() if table is None else table
        path = self.folder / "date=2026-01-01" / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **options)
        stamp, count = int(at.timestamp() * 1000), table.num_rows
        said = LogFile(path.relative_to(self._log.path).as_posix(), 0, "", count, count, stamp, stamp, (_NAME,) * count)
        return self.described(said)

    def described(self, file: LogFile) -> LogFile:
        """Give what a commit would say of a segment that lies there now."""
        data = (self._log.path / file.path).read_bytes()
        tail = hashlib.sha256(data[-file.tail :]).hexdigest() if file.tail else ""
        return replace(file, size=len(data), digest=hashlib.sha256(data).hexdigest(), tail_digest=tail)

    def say(self, publication: str, *files: LogFile, at: datetime) -> None:
        """Sign a commit of segments, whatever is said of them, as a broker would that keeps to no rule."""
        made = Commit(0, publication, self._type_id, "", self._evidence, files)
        writer = self._lanes.writer(self._type_id)
        writer.append(write_commit(made, writer.lane.folder), at=at)

    def assert_end(self, *, at: datetime) -> None:
        """Say where the lane ends."""
        self._lanes.reassert(at=at, rhythm=timedelta(days=1))
