"""Runs are followed in experiment trackers."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

STATES = ("on", "done", "failed", "off")


def upgrade() -> None:
    body = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.create_table(
        "followed_runs",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("tracker", sa.String(40), nullable=False),
        sa.Column("state", sa.Enum(*STATES, native_enum=False, length=16), nullable=False),
        sa.Column("due", sa.Double(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("body", body, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_followed_runs_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", "tracker", name="pk_followed_runs"),
    )
    columns = ["tracker", "state", "due"]
    op.create_index("ix_followed_runs_tracker_state_due", "followed_runs", columns)


def downgrade() -> None:
    op.drop_table("followed_runs")
