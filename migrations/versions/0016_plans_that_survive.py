"""Plans for fewer nodes, made with the run; an attempt notes the one by which it went on."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    fallbacks = sa.Column("fallbacks", JSON, server_default=sa.text("'[]'"), nullable=False)
    op.add_column("runs", fallbacks)
    op.add_column("attempts", sa.Column("plan", JSON))
    op.add_column("attempts", sa.Column("factor", sa.Double()))


def downgrade() -> None:
    op.drop_column("attempts", "factor")
    op.drop_column("attempts", "plan")
    op.drop_column("runs", "fallbacks")
