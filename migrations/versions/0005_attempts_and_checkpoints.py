"""Every attempt at a run is told of, and the checkpoints from which the next one goes on."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "attempts",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(16), nullable=True),
        sa.Column("error", JSON, nullable=True),
        sa.Column("first_seq", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_attempts_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_attempts"),
    )
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("files", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_checkpoints_run_id_runs"),
        sa.PrimaryKeyConstraint("id", name="pk_checkpoints"),
        sa.UniqueConstraint("run_id", "attempt", "step", name="uq_checkpoints_run_id_attempt_step"),
    )
    attempt = sa.Column("attempt", sa.Integer(), server_default=sa.text("1"), nullable=False)
    op.add_column("span_batches", attempt)
    batch = sa.Column("last_batch", sa.Integer(), server_default=sa.text("0"), nullable=False)
    op.add_column("runs", batch)


def downgrade() -> None:
    op.drop_column("runs", "last_batch")
    op.drop_column("span_batches", "attempt")
    op.drop_table("checkpoints")
    op.drop_table("attempts")
