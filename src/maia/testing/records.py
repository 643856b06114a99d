"""Records in an audit that no decision made: of a broker that lies, or of a Maia that wrote no decisions down."""

from __future__ import annotations

from maia.domain import audit_of
from maia.home import Home, now
from maia.log import OK, AuditRow


def record_here(home: Home, *, subject: str, decision: str) -> int:
    """Tell the audit of a home that somebody reads, whatever decided it; return the number of the entry."""
    row = AuditRow(
        at=now(), kind="intent", principal=home.key(subject).fingerprint, type_id="", source="", subject=subject,
        code="READ", events=0, decision=decision,
    )  # fmt: skip
    audit = audit_of(home)
    number = audit.begin(row)
    audit.end(number, AuditRow(
        at=row.at, kind="result", principal=row.principal, type_id="", source="", subject=subject, code=OK, events=0
    ))  # fmt: skip
    return number
