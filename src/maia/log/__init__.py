"""The log of a domain: commits and segments, notices, the outbox and the audit, kept as files."""

from __future__ import annotations

from maia.log.audit import (
    AUDIT_KINDS,
    EARLIER_SCHEMA,
    FAILED,
    OK,
    STOPPED,
    Audit,
    AuditRow,
    CheckedAudit,
    chain_hash,
    check_audit,
    process_name,
    read_audit,
    read_waiting,
)
from maia.log.columns import COUNT, EVENT, REFUSED, STAMP, SUBSCRIPTION
from maia.log.commits import Commit, LogFile, read_place
from maia.log.directory import LogDirectory, Places, instant_of
from maia.log.event_lane import BEGINNING, EventLane
from maia.log.lane import LaneRead, LaneReader, find_lanes
from maia.log.lane_objects import (
    START,
    LaneHead,
    LaneId,
    LaneRecord,
    Place,
    parse_record,
    sign_head,
    sign_record,
    stamp_of,
)
from maia.log.lane_search import Admits
from maia.log.lane_writer import LaneWriter, assert_record
from maia.log.migration import Migrated, migrate
from maia.log.notices import MAX_NOTICE, OWN_RHYTHM, NoticeKind, NoticeLog, notice_lane
from maia.log.numbered import named_errors, write_once
from maia.log.outbox import Outbox, OutboxWriter, outbox_secret
from maia.log.outbox_commits import DeadLetter, OutboxCommit, OutboxFile, Waiting, hash_subscription
from maia.log.own_lanes import OwnLanes
from maia.log.refused import RefusedRows, write_refused
from maia.log.segments import PARCEL_SCHEMA, deliver_segment, read_segment
from maia.log.statements import StatementSubscription, publish_statement, said_statements, tidy_statements
from maia.log.store import DirectoryStore, Store
from maia.log.upkeep import Expired, compact, expire, sweep

__all__ = [
    "AUDIT_KINDS",
    "BEGINNING",
    "COUNT",
    "EARLIER_SCHEMA",
    "EVENT",
    "FAILED",
    "MAX_NOTICE",
    "OK",
    "OWN_RHYTHM",
    "PARCEL_SCHEMA",
    "REFUSED",
    "STAMP",
    "START",
    "STOPPED",
    "SUBSCRIPTION",
    "Admits",
    "Audit",
    "AuditRow",
    "CheckedAudit",
    "Commit",
    "DeadLetter",
    "DirectoryStore",
    "EventLane",
    "Expired",
    "LaneHead",
    "LaneId",
    "LaneRead",
    "LaneReader",
    "LaneRecord",
    "LaneWriter",
    "LogDirectory",
    "LogFile",
    "Migrated",
    "NoticeKind",
    "NoticeLog",
    "Outbox",
    "OutboxCommit",
    "OutboxFile",
    "OutboxWriter",
    "OwnLanes",
    "Place",
    "Places",
    "RefusedRows",
    "StatementSubscription",
    "Store",
    "Waiting",
    "assert_record",
    "chain_hash",
    "check_audit",
    "compact",
    "deliver_segment",
    "expire",
    "find_lanes",
    "hash_subscription",
    "instant_of",
    "migrate",
    "named_errors",
    "notice_lane",
    "outbox_secret",
    "parse_record",
    "process_name",
    "publish_statement",
    "read_audit",
    "read_place",
    "read_segment",
    "read_waiting",
    "said_statements",
    "sign_head",
    "sign_record",
    "stamp_of",
    "sweep",
    "tidy_statements",
    "write_once",
    "write_refused",
]
