"""Rows that a publisher was refused: a dead letter each, which says where the row stood and why it went no further.

One file per publication, which a retry replaces; the rows themselves are the publisher's and not kept. The audit counts
them; these files, 0600 in a folder of 0700, are for whoever wants to put the rows right.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from maia.log.audit.files import PRIVATE_FOLDER, open_private
from maia.log.numbered import named_errors, sync_folder

REFUSED_SCHEMA = pa.schema(
    [
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("principal", pa.string(), nullable=False),
        pa.field("type_id", pa.string(), nullable=False),
        pa.field("publication", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("row", pa.int64(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("column", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class RefusedRows:
    """The rows of one partition that were refused for one reason, by their positions (8 octets each, little-endian)."""

    partition: int
    code: str
    rows: bytes
    column: str = ""

    @classmethod
    def of(cls, partition: int, code: str, rows: Sequence[int], *, column: str = "") -> RefusedRows:
        """Pack positions for their way to the driver."""
        return cls(partition, code, np.asarray(rows, dtype="<i8").tobytes(), column)

    @property
    def count(self) -> int:
        """Count the rows."""
        return len(self.rows) // 8

    def positions(self) -> npt.NDArray[np.int64]:
        """Unpack the positions."""
        return np.frombuffer(self.rows, dtype="<i8")


def write_refused(
    folder: Path, refused: Iterable[RefusedRows], *, at: datetime, principal: str, type_id: str, publication: str
) -> Path | None:
    """Write a dead letter for each refused row of a publication, in place of what an earlier attempt wrote.

    Raises:
        UnavailableError: The system refused.
    """
    parts = [item for item in refused if item.rows]
    if not parts:
        return None
    sizes = [len(item.positions()) for item in parts]
    columns = [
        pa.repeat(pa.scalar(value, type=REFUSED_SCHEMA.field(name).type), sum(sizes))
        for name, value in (("at", at), ("principal", principal), ("type_id", type_id), ("publication", publication))
    ]
    columns += [
        pa.array(np.repeat([item.partition for item in parts], sizes), type=pa.int32()),
        pa.array(np.concatenate([item.positions() for item in parts])),
        pa.concat_arrays([pa.repeat(item.code, size) for item, size in zip(parts, sizes, strict=True)]),
        pa.concat_arrays([pa.repeat(item.column, size) for item, size in zip(parts, sizes, strict=True)]),
    ]
    # A name never becomes a path.
    name = hashlib.sha256(publication.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    path = folder / f"{name}.parquet"
    part = folder / f".{name}.{secrets.token_hex(6)}.part"
    with named_errors(path):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        folder.chmod(PRIVATE_FOLDER)
        with os.fdopen(open_private(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            pq.write_table(pa.Table.from_arrays(columns, schema=REFUSED_SCHEMA), file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(folder)
    return path
