"""A node says how far its clock is ahead of the database's."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("ahead", sa.Double()))


def downgrade() -> None:
    op.drop_column("nodes", "ahead")
