"""Lanes as a hostile member of a shared log would write them; for tests of what readers do then."""

from __future__ import annotations

import hashlib
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.log import LogDirectory, LogFile, OwnLanes
from maia.principals import Signer


class LaneOf:
    """A lane of a type that somebody writes into a log, with whatever evidence and whatever segments."""

    def __init__(self, log: Path, type_id: str, signer: Signer, own: Path, *, evidence: tuple[bytes, ...] = ()) -> None:
        """Write to a log; ``own`` is where the writer keeps its own record."""
        self._log = LogDirectory(log)
        self._lanes = OwnLanes(self._log, own, signer)
        self._type_id = type_id
        self._evidence = self._log.put_evidence(evidence).hex()

    @property
    def folder(self) -> Path:
        """Where the lane lies."""
        return self._log.path / self._lanes.writer(self._type_id).lane.folder

    def commit(
        self, publication: str, *, at: datetime, table: pa.Table | None = None, compression: str = "none"
    ) -> None:
        """Commit a table as if it were a segment, or nothing."""
        files: tuple[LogFile, ...] = ()
        if table is not None:
            name = hashlib.sha256(publication.encode()).hexdigest()[:24]
            path = self.folder / "date=2026-01-01" / f"{name}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path, compression=compression)
            data, stamp = path.read_bytes(), int(at.timestamp() * 1000)
            files = (
                LogFile(
                    path.relative_to(self._log.path).as_posix(), len(data), hashlib.sha256(data).hexdigest(),
                    table.num_rows, table.num_rows, stamp, stamp, ("00" * 16,) * table.num_rows,
                ),
            )  # fmt: skip
        self._lanes.commit(publication, self._type_id, files, evidence=self._evidence, at=at)
