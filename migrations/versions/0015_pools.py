"""Pools, their jobs, and nodes whose agents were started for one run alone."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(sa.dialects.postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    op.add_column("nodes", sa.Column("run_id", sa.Integer()))
    op.create_table(
        "pools",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("room", JSON, nullable=False),
        sa.Column("heartbeat", sa.Double(), nullable=False),
        sa.Column("fault", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_pools"),
    )
    op.create_table(
        "jobs",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("pool", sa.String(255), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("engine_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("advice", sa.Text(), nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True)),
        sa.Column("hosts", JSON, nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("output", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_jobs"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_jobs_run_id_runs"),
    )
    op.create_index("ix_jobs_pool", "jobs", ["pool"])


def downgrade() -> None:
    op.drop_index("ix_jobs_pool", "jobs")
    op.drop_table("jobs")
    op.drop_table("pools")
    op.drop_column("nodes", "run_id")
