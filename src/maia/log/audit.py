"""The audit: who sent, saw or was refused what, in counts and hashes, never in values.

One row per task and outcome, as Parquet files that Spark reads as a table. A retried task writes its rows again under
the same ``task`` name, so counting distinct (``kind``, ``source``, ``subject``, ``code``) counts each outcome once.

Rows that a publisher was refused have a dead letter each, in a table of their own: where the row stood and why it went
no further. One file per publication, which a retry replaces; the rows themselves are the publisher's and not kept.
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

from maia.errors import UnavailableError
from maia.log.numbered import named_errors, sync_folder

AUDIT_SCHEMA = pa.schema(
    [
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("principal", pa.string(), nullable=False),
        pa.field("type_id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("code", pa.string(), nullable=False),
        pa.field("events", pa.int64(), nullable=False),
        pa.field("clauses", pa.list_(pa.string()), nullable=False),
    ]
)


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


AUDIT_KINDS = ("publish", "deliver", "withhold", "refuse", "notice", "alarm", "expire")
"""What can be told of events: published, delivered, kept from a client, refused, noticed, alarming, forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One outcome.

    Attributes:
        at: When.
        kind: One of `AUDIT_KINDS`.
        principal: Fingerprint of whoever acted.
        type_id: Which type.
        source: The publication, or the log file that was read.
        subject: The partition, or the subscription.
        code: ``OK`` or the code of the refusal.
        events: How many events.
        clauses: For deliveries, the chains that opened them, by hash.
    """

    at: datetime
    kind: str
    principal: str
    type_id: str
    source: str
    subject: str
    code: str
    events: int
    clauses: tuple[str, ...] = ()


def write_audit(folder: Path, rows: Iterable[AuditRow]) -> Path | None:
    """Write rows to a new file of the audit, and sync it; ``None`` when there are none.

    Raises:
        UnavailableError: The system refused: ``AUDIT_UNAVAILABLE``. Whatever was to be audited does not happen.
    """
    found = list(rows)
    if not found:
        return None
    day = found[0].at.date().isoformat()
    path = folder / f"date={day}" / f"{secrets.token_hex(12)}.parquet"
    table = pa.Table.from_pylist(
        [{name: getattr(row, name) for name in AUDIT_SCHEMA.names} for row in found], schema=AUDIT_SCHEMA
    )
    try:
        with named_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)
            with path.open("rb") as file:
                os.fsync(file.fileno())
            sync_folder(path.parent)
    except UnavailableError as error:
        # SECURITY: nothing is shown, sent or decided that the audit cannot hold; a full disk stops readers too.
        raise UnavailableError(
            f"the audit cannot be written, so nothing is done: {error.message}", code="AUDIT_UNAVAILABLE"
        ) from error
    return path


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
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_arrays(columns, schema=REFUSED_SCHEMA), part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(folder)
    return path


def chain_hash(chain: Iterable[bytes]) -> str:
    """Name a chain by one hash over its certificates' identities."""
    return hashlib.sha256(b"".join(chain)).hexdigest()[:32]
