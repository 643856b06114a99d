"""The Spark side: sessions, the log, and the kernel run over partitions. Only this package knows pyspark."""

from maia.pipeline.audit import AUDIT_SCHEMA, AuditRow, chain_hash, write_audit
from maia.pipeline.deliver import DeliverPlan, Origin, Outcome, deliver_parcels
from maia.pipeline.java import Java, find_java
from maia.pipeline.log import PARCEL_SCHEMA, Commit, LogDirectory, LogFile, PartitionWriter
from maia.pipeline.publish import PublishPlan, Sealed, event_base, parcel_row, publish_batches
from maia.pipeline.session import SETTINGS, check_session, session

__all__ = [
    "AUDIT_SCHEMA",
    "PARCEL_SCHEMA",
    "SETTINGS",
    "AuditRow",
    "Commit",
    "DeliverPlan",
    "Java",
    "LogDirectory",
    "LogFile",
    "Origin",
    "Outcome",
    "PartitionWriter",
    "PublishPlan",
    "Sealed",
    "chain_hash",
    "check_session",
    "deliver_parcels",
    "event_base",
    "find_java",
    "parcel_row",
    "publish_batches",
    "session",
    "write_audit",
]
