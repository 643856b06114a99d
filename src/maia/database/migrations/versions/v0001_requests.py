"""Used nonces, the clock's floor, leaders' terms."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "used_nonces",
        sa.Column("key_id", sa.LargeBinary(32), nullable=False),
        sa.Column("nonce", sa.LargeBinary(64), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "nonce", name="pk_used_nonces"),
    )
    op.create_index("ix_used_nonces_until", "used_nonces", ["until"])
    op.create_table(
        "clock_floors",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("floor", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_clock_floors"),
    )
    op.create_table(
        "leader_terms",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leader_terms"),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("leader_terms")
    op.drop_table("clock_floors")
    op.drop_index("ix_used_nonces_until", "used_nonces")
    op.drop_table("used_nonces")
