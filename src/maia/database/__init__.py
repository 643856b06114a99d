"""The database behind a domain's services: SQLite in a file by default, PostgreSQL by configuration.

    engine = open_database("store.db")                # or postgresql+psycopg://user@host/name
    migrate(engine)
    with transaction(engine) as connection:
        connection.execute(insert(used_nonces).values(…))

Each service has one module of tables here, on the shared ``metadata``, and one migration in ``migrations/versions``:

    requests.py          v0001_requests.py           used nonces, the clock's floor, leaders' terms
    key_groups.py        v0002_key_groups.py         the key manager's groups
    access_control/      v0003_access_control.py     the access control service's register

A module of tables must be imported by ``tables.py``, so that migrations are compared with all of them.
"""

from maia.database.access_control import (
    AccessControlRecords,
    CertificateRecord,
    InvitationRecord,
    JournalRecord,
    MemberRecord,
    RoleRows,
    right_digest,
)
from maia.database.columns import Instant
from maia.database.engine import OpenDatabase, Transactions, open_database, reading, transaction
from maia.database.key_groups import key_brokers, key_changes, key_groups, key_messages, key_places, key_revoked
from maia.database.leadership import Leadership
from maia.database.memory import RequestMemory
from maia.database.migration import migrate
from maia.database.tables import metadata

__all__ = [
    "AccessControlRecords",
    "CertificateRecord",
    "Instant",
    "InvitationRecord",
    "JournalRecord",
    "Leadership",
    "MemberRecord",
    "OpenDatabase",
    "RequestMemory",
    "RoleRows",
    "Transactions",
    "key_brokers",
    "key_changes",
    "key_groups",
    "key_messages",
    "key_places",
    "key_revoked",
    "metadata",
    "migrate",
    "open_database",
    "reading",
    "right_digest",
    "transaction",
]
