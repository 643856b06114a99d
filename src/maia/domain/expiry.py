"""Letting a home's log expire: what its own deliveries still need is said before, what went is in the audit after."""

from __future__ import annotations

from datetime import datetime

from maia.home import Home
from maia.log import AuditRow, Expired, LogDirectory, Outbox, expire, write_audit


def expire_log(home: Home, *, before: datetime, at: datetime, dry_run: bool = False) -> Expired:
    """Remove the events of commits before an instant, and remember it; with ``dry_run`` only tell what would go."""
    found = expire(LogDirectory(home.log_path), before=before, now=at, dry_run=dry_run)
    if found.commits and not dry_run:
        row = AuditRow(
            at=at, kind="expire", principal=home.broker.public_key.fingerprint, type_id="",
            source=f"up to {found.upto}", subject="log", code="OK", events=found.events,
        )  # fmt: skip
        write_audit(home.audit_path, [row])
    return found


def undelivered(home: Home, upto: int) -> int | None:
    """Tell the commit up to which the home's outbox has read, when that is before another; else nothing."""
    head = Outbox(home.path / "outbox").head()
    return head.upto if head is not None and head.upto < upto else None
