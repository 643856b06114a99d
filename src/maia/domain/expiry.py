"""Letting a home's log expire: what its own deliveries still need is said before, what went is in the audit after."""

from __future__ import annotations

from datetime import datetime

from maia.domain.publication import own_lanes
from maia.home import Home
from maia.log import AuditRow, Expired, LogDirectory, Outbox, expire, read_place, write_audit


def expire_log(home: Home, *, before: datetime, at: datetime, dry_run: bool = False) -> Expired:
    """Remove the events of commits before an instant, and remember it; with ``dry_run`` only tell what would go."""
    log = LogDirectory(home.log_path)
    found = expire(log, own_lanes(home, log), before=before, at=at, dry_run=dry_run)
    if found.commits and not dry_run:
        row = AuditRow(
            at=at, kind="expire", principal=home.broker.public_key.fingerprint, type_id="",
            source="own lanes", subject="log", code="OK", events=found.events,
        )  # fmt: skip
        write_audit(home.audit_path, [row])
    return found


def undelivered(home: Home, found: Expired) -> int:
    """Tell how many of the commits that expire the home's outbox has not read yet; none without an outbox."""
    head = Outbox(home.path / "outbox").head()
    if head is None:
        return 0
    read = {lane: read_place(place)[0].number for lane, place in head.upto.items()}
    return sum(max(0, number - read.get(lane, -1)) for lane, number in found.upto.items())
