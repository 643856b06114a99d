"""The audit, searched: who wanted, published, saw or was refused what; counts and codes, never values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import chain

from maia.domain import Domain
from maia.errors import UsageError
from maia.log import AUDIT_KINDS, AuditRow, read_audit, read_waiting

MOST = 200
"""Rows that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One row of the audit, with the names that the home has."""

    row: AuditRow
    who: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSearch:
    """What is looked for; what is empty does not matter."""

    kind: str = ""
    who: str = ""
    code: str = ""
    since: datetime | None = None


def search_audit(domain: Domain, search: AuditSearch, *, at: datetime) -> tuple[tuple[Told, ...], bool]:
    """Find the newest rows that fit, the newest first, and say whether there are more.

    Raises:
        UsageError: There is no such kind: ``AUDIT_KIND``.
        NotFoundError: There is no such key.
    """
    if search.kind and search.kind not in AUDIT_KINDS:
        raise UsageError(f"the audit has no kind `{search.kind}`", code="AUDIT_KIND")
    folder, path = domain.home.folder, domain.home.audit_path
    first = at - timedelta(days=30) if search.since is None else search.since
    wanted = {folder.key(search.who).fingerprint, search.who} if search.who else None
    waiting = (row for row in read_waiting(path, at=at) if row.at >= first)
    rows = nlargest(
        MOST + 1,
        (
            row
            for row in chain(read_audit(path, since=first), waiting)
            if (not search.kind or row.kind == search.kind)
            and (not search.code or row.code == search.code)
            and (wanted is None or row.principal in wanted)
        ),
        key=lambda row: (row.at, row.operation or -1, row.kind, row.source, row.subject, row.code),
    )
    names = {key.fingerprint: name for name, key in folder.keys.items()}
    types = {name.type_id.hex(): name.name for name in domain.home.types.names()}
    told = tuple(
        Told(row=row, who=names.get(row.principal) or row.principal or row.subject, type=types.get(row.type_id, ""))
        for row in rows[:MOST]
    )
    return told, len(rows) > MOST
