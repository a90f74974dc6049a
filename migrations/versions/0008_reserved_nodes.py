"""Nodes have an address, and a run on several of them holds them all."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("address", sa.String(255), nullable=True))
    op.create_table(
        "reservations",
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("answered", sa.Boolean(), nullable=False),
        sa.Column("address", sa.String(255), nullable=True),
        sa.Column("port", sa.Integer(), nullable=True),
        sa.Column("secret", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("node", name="pk_reservations"),
    )


def downgrade() -> None:
    op.drop_table("reservations")
    op.drop_column("nodes", "address")
