"""The decisions of an audit for an auditor: as a table, each with the proof that it is in the audit.

    decisions.jsonl or decisions.parquet    rows, with the number of their entry
    checkpoint                              what the home states of its audit
    proofs/<entry>.tlog-proof               that the entry is in it, with the entry itself
    evidence/<digest>.json                  what decided, if that was asked for: then the auditor can decide it again

Rules kept here:

- nothing is in the table that no proof shows: rows are those of the entries that are proven, against one checkpoint;
- folders are 0700 and files 0600; a folder that holds something is not written to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from maia.domain.audit_proofs import home_checkpoint, prove_entries
from maia.domain.decisions import parse_decision
from maia.domain.replay import decides
from maia.errors import EncodingError, NotFoundError, UsageError
from maia.home import PRIVATE_FILE, Home, make_folder, read_file, write_file
from maia.log import AuditRow, row_to_json, rows_of_body, state_steps, walk_entries

FORMATS = ("jsonl", "parquet")
_FOLDER = 0o700
_MAX_STATE = 1 << 30
_TEXTS = ("kind", "principal", "type_id", "source", "subject", "code", "filter", "plan", "decision")
_LISTS = ("clauses", "certificates", "attributes", "closed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedAudit:
    """What was written for an auditor: how many rows, of how many entries, how many states, of an audit how large."""

    rows: int
    entries: int
    states: int
    size: int


def export_audit(
    home: Home, folder: Path, *, format_: str = "jsonl", since: datetime | None = None, evidence: bool = False
) -> ExportedAudit:
    """Write the decisions of a home's audit for an auditor, with a checkpoint and a proof of each entry.

    Args:
        home: Whose audit.
        folder: Where to; new, or empty.
        format_: One of `FORMATS`.
        since: Only what was decided from this instant on.
        evidence: Whether what decided goes along: certificates, statements, definitions and policy.

    Raises:
        UsageError: Something is in the folder: ``OUTPUT_EXISTS``; or there is no such format: ``EXPORT_FORMAT``.
        NotFoundError: There is no decision to export: ``NO_DECISION``.
        VerificationError: The journal is not the one that the checkpoint states.
    """
    if format_ not in FORMATS:
        raise UsageError(f"there is no format `{format_}`; there are {', '.join(FORMATS)}", code="EXPORT_FORMAT")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"`{folder}` holds something already", code="OUTPUT_EXISTS")
    stated = home_checkpoint(home)
    wanted = [
        entry.number
        for entry in walk_entries(home.audit_path)
        if entry.number < stated.size
        and any(decides(row) and (since is None or row.at >= since) for row in entry.draft.rows)
    ]
    if not wanted:
        raise NotFoundError("the audit holds no decision of then", code="NO_DECISION")
    for place in (folder, folder / "proofs"):
        make_folder(place, mode=_FOLDER)
        place.chmod(_FOLDER)
    rows: list[tuple[int, AuditRow]] = []
    for proof in prove_entries(home, wanted, stated):
        write_file(folder / "proofs" / f"{proof.number:012d}.tlog-proof", proof.text.encode(), mode=PRIVATE_FILE)
        number, told = rows_of_body(proof.entry)
        rows += [(number, row) for row in told if decides(row) and (since is None or row.at >= since)]
    write_file(folder / "checkpoint", stated.text.encode(), mode=PRIVATE_FILE)
    _write_rows(folder, rows, format_)
    states = _copy_states(home, folder, rows) if evidence else 0
    return ExportedAudit(rows=len(rows), entries=len(wanted), states=states, size=stated.size)


def _write_rows(folder: Path, rows: Sequence[tuple[int, AuditRow]], format_: str) -> None:
    if format_ == "jsonl":
        lines = (json.dumps({"entry": number, **row_to_json(row)}, sort_keys=True) for number, row in rows)
        write_file(folder / "decisions.jsonl", "".join(f"{line}\n" for line in lines).encode(), mode=PRIVATE_FILE)
        return
    import pyarrow as pa  # noqa: PLC0415 - lines need no Arrow
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    schema = pa.schema(
        [
            pa.field("entry", pa.int64(), nullable=False),
            pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("events", pa.int64(), nullable=False),
            *(pa.field(name, pa.string(), nullable=False) for name in _TEXTS),
            *(pa.field(name, pa.list_(pa.string()), nullable=False) for name in _LISTS),
        ]
    )
    values = [
        {
            "entry": number, "at": row.at, "events": row.events, **{name: getattr(row, name) for name in _TEXTS},
            **{name: list(getattr(row, name)) for name in _LISTS},
        }
        for number, row in rows
    ]  # fmt: skip
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(values, schema=schema), sink)
    write_file(folder / "decisions.parquet", sink.getvalue().to_pybytes(), mode=PRIVATE_FILE)


def _copy_states(home: Home, folder: Path, rows: Sequence[tuple[int, AuditRow]]) -> int:
    """Copy what decided; what is not there any more is found by whoever decides again."""
    place, done = folder / "evidence", set[str]()
    make_folder(place, mode=_FOLDER)
    place.chmod(_FOLDER)
    for _, row in rows:
        try:
            steps = state_steps(home.audit_path, parse_decision(row.decision).state) if row.decision else ()
        except (NotFoundError, EncodingError):
            continue
        for name in steps:
            if name not in done:
                data = read_file(home.audit_path / "evidence" / f"{name}.json", limit=_MAX_STATE)
                write_file(place / f"{name}.json", data, mode=PRIVATE_FILE)
                done.add(name)
    return len(done)
