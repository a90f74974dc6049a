"""Runs are found by any metric that they reached."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

KNOWN = ("accuracy", "loss")
READ = {
    "sqlite": "json_extract(summary, '$.{name}')",
    "postgresql": "(summary ->> '{name}')::double precision",
}


def upgrade() -> None:
    op.create_table(
        "run_metrics",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_metrics_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_run_metrics"),
    )
    op.create_index("ix_run_metrics_name_value_run_id", "run_metrics", ["name", "value", "run_id"])
    for name in KNOWN:
        value = READ[op.get_bind().dialect.name].format(name=name)
        op.execute(
            f"INSERT INTO run_metrics SELECT id, '{name}', {value} FROM runs "
            f"WHERE {value} IS NOT NULL"
        )


def downgrade() -> None:
    op.drop_table("run_metrics")
