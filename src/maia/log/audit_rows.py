"""The audit of a home, read without Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from maia.log.audit import AUDIT_SCHEMA, AuditRow

_log = logging.getLogger(__name__)


def read_audit(folder: Path, *, since: datetime | None = None, source: str | None = None) -> Iterator[AuditRow]:
    """Read the rows of an audit, day by day.

    Args:
        folder: The audit's folder.
        since: Only rows from this instant on; earlier days are not opened.
        source: Only rows about this publication or file.

    A file that cannot be read, as a killed task leaves it, is named in the program's log and left out.
    """
    first = "" if since is None else f"date={since.astimezone(UTC).date().isoformat()}"
    for day in sorted(folder.glob("date=*")):
        if day.name < first:
            continue
        for path in sorted(day.glob("*.parquet")):
            for row in _rows(path):
                if (since is None or row.at >= since) and (source is None or row.source == source):
                    yield row


def _rows(path: Path) -> Iterator[AuditRow]:
    try:
        # One file, not a data set: the day in its path is no column of it.
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            values = file.read(columns=AUDIT_SCHEMA.names).to_pylist()
        yield from [AuditRow(**{**value, "clauses": tuple(value["clauses"] or ())}) for value in values]
    except FileNotFoundError:
        return
    except (pa.ArrowException, TypeError, OSError):
        _log.warning("warning: the audit file `%s/%s` cannot be read and is left out", path.parent.name, path.name)
