"""Tables of the access control service: members, facts, active roles, policies, the register, statements, the outbox.

Rules kept here:

- an invitation is known by the hash of its code alone, and is used once;
- a certificate stands in the register before it is handed out, and a withdrawal before it is acknowledged: both are
  written by the transaction that decides them;
- what others must hear of is put into the outbox by the same transaction, and leaves it after they heard;
- every writing transaction raises the revision, so that a process sees that another one wrote.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text

from maia.database.columns import Instant, metadata

_ID = LargeBinary(32)

acs_state = Table(
    "acs_state",
    metadata,
    Column("domain", _ID, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("policy", BigInteger, nullable=False),
)
"""One row a domain: how often it was written to, and which policy is in force (0: none yet)."""

acs_members = Table(
    "acs_members",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("key", LargeBinary(32), nullable=False, unique=True),
    Column("kind", String(16), nullable=False),
    Column("joined", Instant, nullable=False),
    Column("gone", Instant),
)
"""The members of the domain; a name is given once, also after its member has left."""

acs_invitations = Table(
    "acs_invitations",
    metadata,
    Column("digest", _ID, primary_key=True),
    Column("name", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("until", Instant, nullable=False),
    Column("appointments", Text, nullable=False),
    Index("ix_acs_invitations_until", "until"),
)
"""Open invitations by the hash of their code; a used one is deleted by the transaction that uses it."""

acs_facts = Table(
    "acs_facts",
    metadata,
    Column("digest", _ID, primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("fact", LargeBinary, nullable=False),
    Column("until", Instant),
    Index("ix_acs_facts_until", "until"),
)
"""Appointments and recorded environment facts; ``until`` is the last instant at which one holds."""

acs_roles = Table(
    "acs_roles",
    metadata,
    Column("digest", _ID, primary_key=True),
    Column("number", BigInteger, nullable=False, unique=True),
    Column("state", LargeBinary, nullable=False),
    Column("anonymous", Boolean, nullable=False),
)
"""Active roles with what they stand on, in the order of their activation."""

acs_policies = Table(
    "acs_policies",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("applied", Instant, nullable=False),
)
"""Every policy that was ever in force, oldest first."""

acs_certificates = Table(
    "acs_certificates",
    metadata,
    Column("certificate_id", _ID, primary_key=True),
    Column("raw", LargeBinary, nullable=False),
    Column("holder", String(64)),
    Column("privilege", Text),
    Column("right", LargeBinary),
    Column("parent", _ID, ForeignKey("acs_certificates.certificate_id", ondelete="CASCADE")),
    Column("issued", Instant, nullable=False),
    Column("until", Instant),
    Column("withdrawn", Instant),
    Index("ix_acs_certificates_holder", "holder"),
    Index("ix_acs_certificates_until", "until"),
    Index("ix_acs_certificates_parent", "parent"),
    Index("ix_acs_certificates_withdrawn", "withdrawn"),
)
"""The register of live certificates: those that the domain issued, and those that a delegate reported (``parent``).

What was revoked by its id alone, by hand or by a list that the register took over, stands here without its octets.
"""

acs_bars = Table(
    "acs_bars",
    metadata,
    Column("holder", String(64), primary_key=True),
    Column("digest", _ID, primary_key=True),
    Column("privilege", Text),
    Column("since", Instant, nullable=False),
)
"""Rights of members that were revoked by themselves: none is issued anew before somebody lifts that."""

acs_statements = Table(
    "acs_statements",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("starts", Instant),
    Column("ends", Instant),
    Column("raw", LargeBinary, nullable=False),
)
"""The validity lists that the domain signed."""

acs_outbox = Table(
    "acs_outbox",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("kind", String(16), nullable=False),
    Column("topic", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    sqlite_autoincrement=True,
)
"""What is decided and not yet told."""

acs_journal = Table(
    "acs_journal",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("action", String(32), nullable=False),
    Column("who", String(64)),
    Column("what", Text, nullable=False),
    Index("ix_acs_journal_at", "at"),
    sqlite_autoincrement=True,
)
"""What the service did, with whom only where the role is used under a name."""
