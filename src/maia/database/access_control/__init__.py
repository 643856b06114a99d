"""Tables and records of the access control service."""

from maia.database.access_control.bars import right_digest
from maia.database.access_control.certificates import CertificateRecord
from maia.database.access_control.members import InvitationRecord, MemberRecord
from maia.database.access_control.outbox import JournalRecord
from maia.database.access_control.records import AccessControlRecords
from maia.database.access_control.roles import RoleRows

__all__ = [
    "AccessControlRecords",
    "CertificateRecord",
    "InvitationRecord",
    "JournalRecord",
    "MemberRecord",
    "RoleRows",
    "right_digest",
]
