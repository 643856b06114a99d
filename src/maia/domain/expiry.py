"""Letting a home's log expire, and sweeping what nothing names.

What the home's own deliveries still need is said before its log expires, and what went is in the audit after.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from maia.domain.key_times import forget_look
from maia.domain.operations import audit_of
from maia.domain.publication import own_lanes
from maia.home import Home
from maia.log import AuditRow, Expired, LogDirectory, Outbox, expire, read_place, sweep

if TYPE_CHECKING:
    from maia.domain.domain import Domain


def expire_log(home: Home, *, before: datetime, at: datetime, dry_run: bool = False) -> Expired:
    """Remove the events of commits before an instant, and remember it; with ``dry_run`` only tell what would go."""
    log = LogDirectory(home.log_store)
    found = expire(log, own_lanes(home, log), before=before, at=at, dry_run=dry_run)
    if found.commits and not dry_run:
        forget_look(home)
        row = AuditRow(
            at=at, kind="expire", principal=home.broker.public_key.fingerprint, type_id="",
            source="own lanes", subject="log", code="OK", events=found.events,
        )  # fmt: skip
        audit_of(home).note([row])
    return found


def undelivered(home: Home, found: Expired) -> int:
    """Tell how many of the commits that expire the home's outbox has not read yet; none without an outbox."""
    head = Outbox(home.path / "outbox").head()
    if head is None:
        return 0
    read = {lane: read_place(place)[0].number for lane, place in head.upto.items()}
    return sum(max(0, number - read.get(lane, -1)) for lane, number in found.upto.items())


def sweep_home(domain: Domain, *, keep_newer_than: datetime, dry_run: bool = False) -> list[str]:
    """Remove files of a home's own lanes and of its outbox that nothing names, older than an instant; name them."""
    found = sweep(domain.log, domain.lanes, keep_newer_than=keep_newer_than, dry_run=dry_run)
    outbox = Outbox(domain.path / "outbox").sweep(keep_newer_than=keep_newer_than, dry_run=dry_run)
    return found + [f"outbox/{name}" for name in outbox]
