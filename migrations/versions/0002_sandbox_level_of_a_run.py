"""Each run keeps the sandbox level that its ranks had."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("sandbox", sa.String(16), nullable=True))


def downgrade() -> None:
    op.drop_column("runs", "sandbox")
