"""The log of a domain: commits and segments, notices, the outbox and the audit, kept as files."""

from __future__ import annotations

from maia.log.audit import AUDIT_SCHEMA, AuditRow, RefusedRows, chain_hash, write_audit, write_refused
from maia.log.audit_rows import read_audit
from maia.log.columns import COUNT, EVENT, REFUSED, STAMP, SUBSCRIPTION
from maia.log.commits import Commit, LogFile
from maia.log.directory import LogDirectory
from maia.log.lane import (
    START,
    LaneHead,
    LaneId,
    LaneRead,
    LaneReader,
    LaneRecord,
    Place,
    find_lanes,
)
from maia.log.lane_writer import LaneWriter
from maia.log.notices import Notice, NoticeKind, NoticeLog
from maia.log.numbered import named_errors, write_once
from maia.log.outbox import DeadLetter, Outbox, OutboxCommit, OutboxFile, OutboxWriter, outbox_secret
from maia.log.parcel_files import PARCEL_SCHEMA
from maia.log.repeats import Repeats, deliver_once
from maia.log.statements import StatementPublisher, StatementSubscription, tidy_statements
from maia.log.store import DirectoryStore, Store
from maia.log.upkeep import Expired, compact, expire

__all__ = [
    "AUDIT_SCHEMA",
    "COUNT",
    "EVENT",
    "PARCEL_SCHEMA",
    "REFUSED",
    "STAMP",
    "START",
    "SUBSCRIPTION",
    "AuditRow",
    "Commit",
    "DeadLetter",
    "DirectoryStore",
    "Expired",
    "LaneHead",
    "LaneId",
    "LaneRead",
    "LaneReader",
    "LaneRecord",
    "LaneWriter",
    "LogDirectory",
    "LogFile",
    "Notice",
    "NoticeKind",
    "NoticeLog",
    "Outbox",
    "OutboxCommit",
    "OutboxFile",
    "OutboxWriter",
    "Place",
    "RefusedRows",
    "Repeats",
    "StatementPublisher",
    "StatementSubscription",
    "Store",
    "chain_hash",
    "compact",
    "deliver_once",
    "expire",
    "find_lanes",
    "named_errors",
    "outbox_secret",
    "read_audit",
    "tidy_statements",
    "write_audit",
    "write_once",
    "write_refused",
]
