"""What the audit tells, row by row: who wanted, sent, saw or was refused what; counts and hashes, never values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

AUDIT_KINDS = ("publish", "deliver", "withhold", "refuse", "notice", "alarm", "expire", "intent", "result")
"""What can be told of events: published, delivered, kept from a client, refused, noticed, alarming, forgotten; and of
an operation: what somebody set out to do, and what became of it."""
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
        source: The publication, the log file that was read, or the part of the log that was asked for.
        subject: The client or the subscription, by name.
        code: ``OK`` or the code of the refusal; of an intent, what is to be done: ``READ``, ``PUBLISH``, ``DELIVER``.
        events: How many events.
        clauses: The chains that opened them, by hash.
        certificates: Of an intent, the certificates behind the right, by id.
        attributes: Of an intent, what was asked for, by name.
        closed: Of an intent, those of them that no right opens: null in every row.
        filter: Of an intent, the client's own filter, with a mark in place of each value.
        plan: Of an intent, the digest of the plan.
        operation: The number of the intent that it belongs to.
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


def chain_hash(chain: Iterable[bytes]) -> str:
    """Name a chain by one hash over its certificates' identities."""
    return hashlib.sha256(b"".join(chain)).hexdigest()[:32]
