"""What nodes and runs use, over time."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def _points() -> list[sa.Column]:
    body = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    return [
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("time", sa.Double(), nullable=False),
        sa.Column("use", body, nullable=False),
    ]


def upgrade() -> None:
    op.create_table(
        "node_use",
        sa.Column("node", sa.String(255), nullable=False),
        *_points(),
        sa.PrimaryKeyConstraint("node", "level", "slot", name="pk_node_use"),
    )
    op.create_table(
        "run_use",
        sa.Column("run_id", sa.Integer(), nullable=False),
        *_points(),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_use_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", "level", "slot", name="pk_run_use"),
    )


def downgrade() -> None:
    op.drop_table("run_use")
    op.drop_table("node_use")
