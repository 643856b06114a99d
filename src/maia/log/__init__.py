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
    parse_record,
    sign_head,
    sign_record,
    stamp_of,
)
from maia.log.lane_writer import LaneWriter, assert_record
from maia.log.notices import MAX_NOTICE, OWN_RHYTHM, NoticeKind, NoticeLog, notice_lane
from maia.log.numbered import named_errors, write_once
from maia.log.outbox import DeadLetter, Outbox, OutboxCommit, OutboxFile, OutboxWriter, outbox_secret
from maia.log.parcel_files import PARCEL_SCHEMA
from maia.log.repeats import Repeats, deliver_once
from maia.log.statements import StatementPublisher, StatementSubscription, publish_statement, tidy_statements
from maia.log.store import DirectoryStore, Store
from maia.log.upkeep import Expired, compact, expire

__all__ = [
    "AUDIT_SCHEMA",
    "COUNT",
    "EVENT",
    "MAX_NOTICE",
    "OWN_RHYTHM",
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
    "assert_record",
    "chain_hash",
    "compact",
    "deliver_once",
    "expire",
    "find_lanes",
    "named_errors",
    "notice_lane",
    "outbox_secret",
    "parse_record",
    "publish_statement",
    "read_audit",
    "sign_head",
    "sign_record",
    "stamp_of",
    "tidy_statements",
    "write_audit",
    "write_once",
    "write_refused",
]
