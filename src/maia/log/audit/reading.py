"""The audit of a home, read without Spark: its journal, and what an audit before it left as Parquet."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.errors import EncodingError, UnavailableError
from maia.log.audit.entries import MAX_LINE, NO_ENTRY, AuditEntry, Open, parse_entry, track, without_result
from maia.log.audit.files import earlier_files, journal_files
from maia.log.audit.processes import is_gone
from maia.log.audit.rows import RUNNING, UNFINISHED, AuditRow
from maia.log.audit.tree import Frontier, leaf_hash, missing_leaf
from maia.principals import PublicKey

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
MAX_LOST = 1 << 20
"""How many entries in a row may be lost, at most, for a tree to be made over the rest."""
_NO_TREE = Frontier()
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


def walk_entries(folder: Path) -> Iterator[AuditEntry]:
    """Go through the entries of a journal, in order; what is none is left out."""
    yield from _entries(folder, None)


def edge_of(entries: Iterable[AuditEntry], edge: Frontier = _NO_TREE, *, size: int) -> Frontier:
    """Make the right edge of the tree over the first ``size`` entries, going on from one; for what is lost a mark.

    Raises:
        UnavailableError: More is lost than a journal can have lost.
    """

    def lost(at: int, end: int) -> Iterator[bytes]:
        if end - at > MAX_LOST:
            raise UnavailableError(f"{end - at} entries are missing from the audit", code="AUDIT_UNAVAILABLE")
        return map(missing_leaf, range(at, end))

    def leaves() -> Iterator[bytes]:
        at = edge.size
        for entry in entries:
            if at <= entry.number < size:
                yield from lost(at, entry.number)
                yield leaf_hash(bytes.fromhex(entry.digest))
                at = entry.number + 1
        yield from lost(at, size)

    return edge.extend(leaves())


def proven_edge(
    entries: Iterable[AuditEntry],
    key: PublicKey,
    *,
    last: tuple[int, str],
    edge: Frontier = _NO_TREE,
    after: str = NO_ENTRY,
    told: Iterable[tuple[str, str]] = (),
) -> tuple[Frontier | None, list[tuple[str, str, int]]]:
    """Make the right edge of the tree over the entries up to the last, if the key signed each and each continues one.

    Args:
        entries: Of the journal.
        key: The broker's.
        last: The number and the digest of the last.
        edge: Where to go on from.
        after: The digest of the entry before.
        told: What is being said of the journal now, by code and place: what is known to be lost may be missing.

    Returns:
        The edge, or none and what is wrong, unless the journal says so already: a code, where, and how much.
    """
    wrong: list[tuple[str, str, int]] = []
    known, at, gaps = set(told), (edge.size - 1, after), list[tuple[int, int]]()

    def signed() -> Iterator[AuditEntry]:
        nonlocal at
        for entry in entries:
            # SECURITY: a checkpoint is signed over what the broker signed, never over what merely lies in the file.
            if not entry.check(key):
                wrong.append(("AUDIT_SIGNATURE", f"entry {entry.number}", 1))
                continue
            alarms = (row for row in entry.draft.rows if (row.kind, row.subject) == ("alarm", "audit"))
            known.update((row.code, row.source) for row in alarms)
            if at[0] < entry.number <= last[0]:
                if entry.number == at[0] + 1 and entry.previous != at[1]:
                    wrong.append(("AUDIT_CHAIN", f"entry {entry.number}", 1))
                gaps.append((at[0] + 1, entry.number))
                at = (entry.number, entry.digest)
                yield entry
        gaps.append((at[0] + 1, last[0] + 1))

    made = edge_of(signed(), edge, size=last[0] + 1)
    for first, end in gaps if not wrong else ():
        where = f"entries {first} to {end - 1}"
        if first < end and ("AUDIT_TRUNCATED", where) not in known:
            wrong.append(("AUDIT_GAP", where, end - first))
    if at[0] == last[0] and at[1] != last[1]:
        wrong.append(("AUDIT_FORKED", f"entry {last[0]}", 1))
    return (None if wrong else made), [item for item in wrong if item[:2] not in known]


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
