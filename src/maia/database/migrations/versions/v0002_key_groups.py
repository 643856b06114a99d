"""Groups, brokers, places, messages, changes and revoked certificates of a key manager."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"
branch_labels = None
depends_on = None

_HASH = sa.LargeBinary(32)
_LABEL = sa.LargeBinary(128)
_INSTANT = sa.BigInteger()


def upgrade() -> None:
    """Make the tables."""
    _make_groups()
    _make_records()


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("key_revoked")
    op.drop_index("ix_key_changes_type_id_label", "key_changes")
    op.drop_table("key_changes")
    op.drop_index("ix_key_messages_published", "key_messages")
    for table in ("key_messages", "key_places", "key_brokers", "key_groups"):
        op.drop_table(table)


def _make_groups() -> None:
    op.create_table(
        "key_groups",
        sa.Column("type_id", _HASH, nullable=False),
        sa.Column("label", _LABEL, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("members", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("type_id", "label", name="pk_key_groups"),
    )
    op.create_table(
        "key_brokers",
        sa.Column("type_id", _HASH, nullable=False),
        sa.Column("member", _HASH, nullable=False),
        sa.Column("key", _HASH, nullable=False),
        sa.Column("stamp", sa.BigInteger(), nullable=False),
        sa.Column("join_key", _HASH, nullable=False),
        sa.Column("evidence", sa.LargeBinary(), nullable=False),
        sa.Column("joined", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("type_id", "member", name="pk_key_brokers"),
    )
    op.create_table(
        "key_places",
        sa.Column("type_id", _HASH, nullable=False),
        sa.Column("label", _LABEL, nullable=False),
        sa.Column("member", _HASH, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("welcome", sa.LargeBinary(), nullable=False),
        sa.Column("uses", sa.BigInteger(), nullable=False),
        sa.Column("uses_number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("type_id", "label", "member", name="pk_key_places"),
    )


def _make_records() -> None:
    op.create_table(
        "key_messages",
        sa.Column("type_id", _HASH, nullable=False),
        sa.Column("label", _LABEL, nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("causes", sa.String(128), nullable=False),
        sa.Column("members", sa.BigInteger(), nullable=False),
        sa.Column("keys", sa.BigInteger(), nullable=False),
        sa.Column("octets", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("type_id", "label", "number", name="pk_key_messages"),
    )
    op.create_index("ix_key_messages_published", "key_messages", ["published"])
    op.create_table(
        "key_changes",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("type_id", _HASH, nullable=False),
        sa.Column("label", _LABEL, nullable=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("member", _HASH, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_key_changes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_key_changes_type_id_label", "key_changes", ["type_id", "label"])
    op.create_table(
        "key_revoked",
        sa.Column("certificate_id", _HASH, nullable=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("certificate_id", name="pk_key_revoked"),
    )
