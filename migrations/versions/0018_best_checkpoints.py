"""The checkpoint of a run's best evaluation stays beside the newest."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    best = sa.Column("best", sa.Boolean(), server_default=sa.false(), nullable=False)
    op.add_column("checkpoints", best)


def downgrade() -> None:
    op.drop_column("checkpoints", "best")
