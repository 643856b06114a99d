"""The Spark side: sessions, the log, and the kernel run over partitions. Only this package knows pyspark."""

from maia.pipeline.audit import (
    AUDIT_SCHEMA,
    REFUSED_SCHEMA,
    AuditRow,
    RefusedRows,
    chain_hash,
    write_audit,
    write_refused,
)
from maia.pipeline.columns import COUNT, EVENT, REFUSED, STAMP, SUBSCRIPTION
from maia.pipeline.deliver import DeliverPlan, Origin, Outcome, deliver_parcels
from maia.pipeline.guard import check_log, check_start
from maia.pipeline.java import Java, find_java
from maia.pipeline.jobs import DeliveryJob
from maia.pipeline.log import PARCEL_SCHEMA, Commit, LogDirectory, LogFile, PartitionWriter
from maia.pipeline.notices import Notice, NoticeKind, NoticeLog
from maia.pipeline.outbox import DeadLetter, Outbox, OutboxCommit, OutboxFile, outbox_secret
from maia.pipeline.publish import PublishPlan, Sealed, event_base, parcel_row, publish_batches
from maia.pipeline.repeats import Repeats, deliver_once
from maia.pipeline.session import SETTINGS, check_session, session
from maia.pipeline.stages import deliver, history, publish
from maia.pipeline.upkeep import TARGET_SIZE, Compacted, Expired, compact, expire

__all__ = [
    "AUDIT_SCHEMA",
    "COUNT",
    "EVENT",
    "PARCEL_SCHEMA",
    "REFUSED",
    "REFUSED_SCHEMA",
    "SETTINGS",
    "STAMP",
    "SUBSCRIPTION",
    "TARGET_SIZE",
    "AuditRow",
    "Commit",
    "Compacted",
    "DeadLetter",
    "DeliverPlan",
    "DeliveryJob",
    "Expired",
    "Java",
    "LogDirectory",
    "LogFile",
    "Notice",
    "NoticeKind",
    "NoticeLog",
    "Origin",
    "Outbox",
    "OutboxCommit",
    "OutboxFile",
    "Outcome",
    "PartitionWriter",
    "PublishPlan",
    "RefusedRows",
    "Repeats",
    "Sealed",
    "chain_hash",
    "check_log",
    "check_session",
    "check_start",
    "compact",
    "deliver",
    "deliver_once",
    "deliver_parcels",
    "event_base",
    "expire",
    "find_java",
    "history",
    "outbox_secret",
    "parcel_row",
    "publish",
    "publish_batches",
    "session",
    "write_audit",
    "write_refused",
]
