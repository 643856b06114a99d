"""What the audit tells, row by row: who wanted, sent, saw or was refused what; counts and hashes, never values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

AUDIT_KINDS = (
    "publish", "deliver", "withhold", "refuse", "notice", "alarm", "expire", "intent", "result",
    "advertise", "unadvertise", "subscribe", "unsubscribe", "release", "login", "revoke",
)  # fmt: skip
"""What can be told of events: published, delivered, kept from a client, refused, noticed, alarming, forgotten; of an
operation: what somebody set out to do, and what became of it; of a session: what a client began and ended; that rows
left for another domain or a study; and who logged in to the console and revoked something there."""
OK = "OK"
STOPPED = "STOPPED"
"""The result of a read that its reader left before the end."""
FAILED = "FAILED"
"""The result of what ended by an error that is not Maia's."""
UNFINISHED = "UNFINISHED"
"""What is said of an intent that has no result, and whose process is gone."""
RUNNING = "RUNNING"
"""What is said of an intent that has no result yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One thing that the audit tells.

    Attributes:
        at: When.
        kind: One of `AUDIT_KINDS`.
        principal: Fingerprint of whoever acted: for a client, of the key that was proven.
        type_id: Which type.
        source: The publication, the log file that was read, the part of the log that was asked for, for whom a
            release was, or which certificate was revoked.
        subject: The client or the subscription, by name.
        code: ``OK`` or the code of the refusal; of what is to be done: ``READ``, ``PUBLISH``, ``DELIVER``, ``REVOKE``.
        events: How many events.
        clauses: The chains that opened them, by hash.
        certificates: Of an intent, or of what a session begins, the certificates behind the right, by id.
        attributes: Of an intent, what was asked for, by name; of a release, what left.
        closed: Of these, those that no right opens: null in every row.
        filter: Of an intent, the client's own filter, with a mark in place of each value.
        plan: Of an intent, the digest of the plan.
        operation: The number of the intent that it belongs to.
        decision: What was decided, by what, in a form that can be decided again; see `maia.domain.decisions`.
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
    certificates: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    filter: str = ""
    plan: str = ""
    operation: int | None = None
    decision: str = ""


def chain_hash(chain: Iterable[bytes]) -> str:
    """Name a chain by one hash over its certificates' identities."""
    return hashlib.sha256(b"".join(chain)).hexdigest()[:32]
