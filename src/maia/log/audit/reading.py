"""The audit of a home, read without Spark: its journal, and what an audit before it left as Parquet."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.errors import EncodingError, UnavailableError
from maia.log.audit.entries import MAX_LINE, AuditEntry, Open, parse_entry, track, without_result
from maia.log.audit.files import earlier_files, journal_files
from maia.log.audit.processes import is_gone
from maia.log.audit.rows import RUNNING, UNFINISHED, AuditRow

EARLIER_SCHEMA = pa.schema(
    [
        pa.field("at", pa.timestamp("us", tz="UTC"), nullable=False),
        *(
            pa.field(name, pa.string(), nullable=False)
            for name in ("kind", "principal", "type_id", "source", "subject", "code")
        ),
        pa.field("events", pa.int64(), nullable=False),
        pa.field("clauses", pa.list_(pa.string()), nullable=False),
    ]
)
"""The rows of a former audit: those fields of `AuditRow` that it had."""
_log = logging.getLogger(__name__)


def read_audit(folder: Path, *, since: datetime | None = None, source: str | None = None) -> Iterator[AuditRow]:
    """Read the rows of an audit, those of a former one first.

    Args:
        folder: The audit's folder.
        since: Only rows from this instant on; earlier files are not opened.
        source: Only rows about this publication or file.

    What cannot be read is named in the program's log and left out; `check_audit` says what that means.
    """
    for row in _all_rows(folder, since):
        if (since is None or row.at >= since) and (source is None or row.source == source):
            yield row


def read_waiting(folder: Path, *, at: datetime) -> Iterator[AuditRow]:
    """Say of each intent that has no result whether it may still run, or is unfinished; nothing is written."""
    waiting: dict[int, Open] = {}
    for entry in _entries(folder, None):
        track(waiting, entry)
    for number, item in waiting.items():
        gone = is_gone(item.process, age=at - item.row.at)
        yield without_result(item.row, at=item.row.at, operation=number, code=UNFINISHED if gone else RUNNING)


def walk_lines(path: Path, size: int | None = None) -> Iterator[bytes]:
    """Read the lines of a file of the journal up to a size, each with its end; what is too long comes in pieces."""
    left = path.stat().st_size if size is None else size
    with path.open("rb") as file:
        while left > 0 and (line := file.readline(min(left, MAX_LINE))):
            left -= len(line)
            yield line


def _all_rows(folder: Path, since: datetime | None) -> Iterator[AuditRow]:
    first = "" if since is None else f"date={since.astimezone(UTC).date().isoformat()}"
    for path in earlier_files(folder):
        if path.parent.name >= first:
            yield from _earlier_rows(path)
    for entry in _entries(folder, since):
        yield from entry.rows()


def _entries(folder: Path, since: datetime | None) -> Iterator[AuditEntry]:
    files = journal_files(folder)
    if since is not None:
        while len(files) > 1 and _begins(files[1]) < since:
            files.pop(0)
    for path in files:
        for number, line in enumerate(walk_lines(path), start=1):
            if line.endswith(b"\n"):  # what has no end is being written, or torn
                try:
                    yield parse_entry(line[:-1])
                except (EncodingError, UnavailableError):
                    _log.warning("warning: line %d of the audit's `%s` is no entry and is left out", number, path.name)


def _begins(path: Path) -> datetime:
    """Tell from when the first entry of a file is; one that cannot be read may be from any time."""
    try:
        return parse_entry(next(walk_lines(path)).rstrip(b"\n")).draft.at
    except (EncodingError, UnavailableError, StopIteration):
        return datetime.max.replace(tzinfo=UTC)


def _earlier_rows(path: Path) -> Iterator[AuditRow]:
    try:
        # One file, not a data set: the day in its path is no column of it.
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            values = file.read(columns=EARLIER_SCHEMA.names).to_pylist()
        yield from [AuditRow(**{**value, "clauses": tuple(value["clauses"] or ())}) for value in values]
    except FileNotFoundError:
        return
    except (pa.ArrowException, TypeError, OSError):
        _log.warning("warning: the audit file `%s/%s` cannot be read and is left out", path.parent.name, path.name)
