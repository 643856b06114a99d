"""Rights of members that were revoked by themselves, and are not issued anew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision: str | None = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "acs_bars",
        sa.Column("holder", sa.String(64), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("privilege", sa.Text(), nullable=True),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("holder", "digest", name="pk_acs_bars"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("acs_bars")
