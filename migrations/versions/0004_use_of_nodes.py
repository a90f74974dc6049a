"""Nodes tell how much of them is in use; runs with a note are found without reading all."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.add_column("nodes", sa.Column("use", JSON, nullable=True))
    noted = sa.text("note <> ''")
    op.create_index("ix_runs_noted", "runs", ["id"], sqlite_where=noted, postgresql_where=noted)


def downgrade() -> None:
    op.drop_index("ix_runs_noted", "runs")
    op.drop_column("nodes", "use")
