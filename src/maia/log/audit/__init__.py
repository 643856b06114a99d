"""The audit of a home: its journal, reading it, and checking it."""

from __future__ import annotations

from maia.log.audit.check import Break, CheckedAudit, check_audit
from maia.log.audit.journal import Audit
from maia.log.audit.processes import process_name
from maia.log.audit.reading import EARLIER_SCHEMA, read_audit, read_waiting
from maia.log.audit.rows import AUDIT_KINDS, FAILED, OK, STOPPED, UNFINISHED, AuditRow, chain_hash

__all__ = [
    "AUDIT_KINDS",
    "EARLIER_SCHEMA",
    "FAILED",
    "OK",
    "STOPPED",
    "UNFINISHED",
    "Audit",
    "AuditRow",
    "Break",
    "CheckedAudit",
    "chain_hash",
    "check_audit",
    "process_name",
    "read_audit",
    "read_waiting",
]
