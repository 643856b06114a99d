"""Rekey messages are records of lanes: their places, digests and stamps stand beside them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; what was said before has no place in a lane."""
    op.add_column("key_messages", sa.Column("place", sa.BigInteger(), nullable=True))
    op.add_column("key_messages", sa.Column("digest", sa.LargeBinary(32), nullable=True))
    op.add_column("key_messages", sa.Column("stamp", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    with op.batch_alter_table("key_messages") as table:
        for name in ("place", "digest", "stamp"):
            table.drop_column(name)
