"""Plans, profiles and clusters have notes and tags, profiles also names."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

TABLES = ("plans", "profiles", "clusters")


def upgrade() -> None:
    body = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    empty, none = sa.text("''"), sa.text("'[]'")
    for table in TABLES:
        op.add_column(table, sa.Column("note", sa.Text(), server_default=empty, nullable=False))
        op.add_column(table, sa.Column("tags", body, server_default=none, nullable=False))
    op.add_column("profiles", sa.Column("name", sa.Text(), server_default=empty, nullable=False))


def downgrade() -> None:
    op.drop_column("profiles", "name")
    for table in TABLES:
        op.drop_column(table, "tags")
        op.drop_column(table, "note")
