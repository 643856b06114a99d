"""Members, facts, active roles, policies, the register, statements, the outbox and the journal of a domain."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"
branch_labels = None
depends_on = None

_HASH = sa.LargeBinary(32)
_INSTANT = sa.BigInteger()


def upgrade() -> None:
    """Make the tables."""
    _make_people()
    _make_policy()
    _make_register()
    _make_outlets()


def downgrade() -> None:
    """Drop the tables."""
    for table in (
        *("acs_journal", "acs_outbox", "acs_statements", "acs_certificates", "acs_policies", "acs_roles"),
        *("acs_facts", "acs_invitations", "acs_members", "acs_state"),
    ):
        op.drop_table(table)


def _make_people() -> None:
    op.create_table(
        "acs_state",
        sa.Column("domain", _HASH, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("policy", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("domain", name="pk_acs_state"),
    )
    op.create_table(
        "acs_members",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("key", _HASH, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("joined", _INSTANT, nullable=False),
        sa.Column("gone", _INSTANT, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_acs_members"),
        sa.UniqueConstraint("key", name="uq_acs_members_key"),
    )
    op.create_table(
        "acs_invitations",
        sa.Column("digest", _HASH, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("until", _INSTANT, nullable=False),
        sa.Column("appointments", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_acs_invitations"),
    )
    op.create_index("ix_acs_invitations_until", "acs_invitations", ["until"])


def _make_policy() -> None:
    op.create_table(
        "acs_facts",
        sa.Column("digest", _HASH, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("fact", sa.LargeBinary(), nullable=False),
        sa.Column("until", _INSTANT, nullable=True),
        sa.PrimaryKeyConstraint("digest", name="pk_acs_facts"),
    )
    op.create_index("ix_acs_facts_until", "acs_facts", ["until"])
    op.create_table(
        "acs_roles",
        sa.Column("digest", _HASH, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.Column("anonymous", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_acs_roles"),
        sa.UniqueConstraint("number", name="uq_acs_roles_number"),
    )
    op.create_table(
        "acs_policies",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("applied", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_acs_policies"),
    )


def _make_register() -> None:
    op.create_table(
        "acs_certificates",
        sa.Column("certificate_id", _HASH, nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("holder", sa.String(64), nullable=True),
        sa.Column("privilege", sa.Text(), nullable=True),
        sa.Column("right", sa.LargeBinary(), nullable=True),
        sa.Column("parent", _HASH, nullable=True),
        sa.Column("issued", _INSTANT, nullable=False),
        sa.Column("until", _INSTANT, nullable=True),
        sa.Column("withdrawn", _INSTANT, nullable=True),
        sa.ForeignKeyConstraint(
            ["parent"],
            ["acs_certificates.certificate_id"],
            name="fk_acs_certificates_parent_acs_certificates",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("certificate_id", name="pk_acs_certificates"),
    )
    for column in ("holder", "until", "parent", "withdrawn"):
        op.create_index(f"ix_acs_certificates_{column}", "acs_certificates", [column])
    op.create_table(
        "acs_statements",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("starts", _INSTANT, nullable=True),
        sa.Column("ends", _INSTANT, nullable=True),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "sequence", name="pk_acs_statements"),
    )


def _make_outlets() -> None:
    op.create_table(
        "acs_outbox",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("topic", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_acs_outbox"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "acs_journal",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("who", sa.String(64), nullable=True),
        sa.Column("what", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_acs_journal"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_acs_journal_at", "acs_journal", ["at"])
