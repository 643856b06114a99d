"""Tables of a key manager: groups with their sealed trees, brokers and their places, messages, and what happened.

No table holds a key in the clear: ``sealed`` is under a key derived from the manager's own, ``welcome`` under a
broker's. Times called ``start`` and ``due`` are milliseconds since 1970, as in messages.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, String, Table

from maia.database.columns import Instant, metadata

key_groups = Table(
    "key_groups",
    metadata,
    Column("type_id", LargeBinary(32), primary_key=True),
    Column("label", LargeBinary(128), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("members", BigInteger, nullable=False),
    Column("due", BigInteger, nullable=True),
    Column("sealed", LargeBinary, nullable=False),
)
"""One row a group: its newest epoch, when the key must change if nothing happens, and its tree and rules, sealed."""

key_brokers = Table(
    "key_brokers",
    metadata,
    Column("type_id", LargeBinary(32), primary_key=True),
    Column("member", LargeBinary(32), primary_key=True),
    Column("key", LargeBinary(32), nullable=False),
    Column("stamp", BigInteger, nullable=False),
    Column("join_key", LargeBinary(32), nullable=False),
    Column("evidence", LargeBinary, nullable=False),
    Column("joined", Instant, nullable=False),
)
"""Brokers that asked for the groups of a type: the stamp of the last request, and the certificates they stand on."""

key_places = Table(
    "key_places",
    metadata,
    Column("type_id", LargeBinary(32), primary_key=True),
    Column("label", LargeBinary(128), primary_key=True),
    Column("member", LargeBinary(32), primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("welcome", LargeBinary, nullable=False),
    Column("uses", BigInteger, nullable=False),
    Column("uses_number", BigInteger, nullable=False),
)
"""Places of brokers in groups: the newest epoch when it was given, the welcome, and the blocks sealed in an epoch."""

key_messages = Table(
    "key_messages",
    metadata,
    Column("type_id", LargeBinary(32), primary_key=True),
    Column("label", LargeBinary(128), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("start", BigInteger, nullable=False),
    Column("at", Instant, nullable=False),
    Column("causes", String(128), nullable=False),
    Column("members", BigInteger, nullable=False),
    Column("keys", BigInteger, nullable=False),
    Column("octets", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("published", Boolean, nullable=False),
    Column("place", BigInteger, nullable=True),
    Column("digest", LargeBinary(32), nullable=True),
    Column("stamp", BigInteger, nullable=True),
    Index("ix_key_messages_published", "published"),
)
"""One row an epoch, written with the tree that made it: its record in the group's lane (``body``), whose place, digest
and stamp stand beside it. Rows of before there were lanes have no place."""

key_changes = Table(
    "key_changes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("type_id", LargeBinary(32), nullable=False),
    Column("label", LargeBinary(128), nullable=False),
    Column("at", Instant, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("member", LargeBinary(32), nullable=False),
    Index("ix_key_changes_type_id_label", "type_id", "label"),
    sqlite_autoincrement=True,
)
"""What happened to the membership of a group."""

key_revoked = Table(
    "key_revoked",
    metadata,
    Column("certificate_id", LargeBinary(32), primary_key=True),
    Column("at", Instant, nullable=False),
)
"""Certificates that admit nobody any more, whatever statements say."""
