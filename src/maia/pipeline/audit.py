"""The audit: who sent, saw or was refused what, in counts and hashes, never in values.

One row per task and outcome, as Parquet files that Spark reads as a table. A retried task writes its rows again under
the same ``task`` name, so counting distinct (``kind``, ``source``, ``subject``, ``code``) counts each outcome once.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.pipeline.numbered import named_errors, sync_folder

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One outcome.

    Attributes:
        at: When.
        kind: ``publish``, ``deliver`` or ``refuse``.
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
        UnavailableError: The system refused.
    """
    found = list(rows)
    if not found:
        return None
    day = found[0].at.date().isoformat()
    path = folder / f"date={day}" / f"{secrets.token_hex(12)}.parquet"
    table = pa.Table.from_pylist(
        [{name: getattr(row, name) for name in AUDIT_SCHEMA.names} for row in found], schema=AUDIT_SCHEMA
    )
    with named_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        sync_folder(path.parent)
    return path


def chain_hash(chain: Iterable[bytes]) -> str:
    """Name a chain by one hash over its certificates' identities."""
    return hashlib.sha256(b"".join(chain)).hexdigest()[:32]
