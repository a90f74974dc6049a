"""A checkpoint says how many bytes it has, so that a project's bytes can be added up."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

BACKFILL = {
    "sqlite": """
        UPDATE checkpoints SET size =
          (SELECT coalesce(sum(json_extract(value, '$.size')), 0) FROM json_each(files))
    """,
    "postgresql": """
        UPDATE checkpoints SET size =
          (SELECT coalesce(sum((file ->> 'size')::bigint), 0) FROM jsonb_array_elements(files) file)
    """,
}


def upgrade() -> None:
    size = sa.Column("size", sa.BigInteger(), server_default=sa.text("0"), nullable=False)
    op.add_column("checkpoints", size)
    op.execute(BACKFILL[op.get_bind().dialect.name])


def downgrade() -> None:
    op.drop_column("checkpoints", "size")
