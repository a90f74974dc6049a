"""Runs are asked for together, as sweeps."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    body = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.create_table(
        "sweeps",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("spec", body, nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_sweeps_project_id_projects"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_sweeps"),
    )
    op.create_index("ix_sweeps_project_id", "sweeps", ["project_id"])
    op.create_table(
        "sweep_runs",
        sa.Column("sweep_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("values", body, nullable=False),
        sa.Column("ended", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweeps.id"], name="fk_sweep_runs_sweep_id_sweeps"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_sweep_runs_run_id_runs"),
        sa.PrimaryKeyConstraint("sweep_id", "number", name="pk_sweep_runs"),
    )
    op.create_index("ix_sweep_runs_run_id", "sweep_runs", ["run_id"])


def downgrade() -> None:
    op.drop_table("sweep_runs")
    op.drop_table("sweeps")
