"""Somebody asks for the stacks of a run's ranks."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    asked = sa.Column("stacks_asked", sa.Integer(), nullable=False, server_default=sa.text("0"))
    op.add_column("runs", asked)


def downgrade() -> None:
    op.drop_column("runs", "stacks_asked")
