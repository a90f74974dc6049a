"""People are told of runs where they choose."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    body = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    op.create_table(
        "notice_places",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("events", body, nullable=False),
        sa.Column("runs", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notice_places"),
    )
    op.create_index("ix_notice_places_person_id", "notice_places", ["person_id"])
    op.create_table(
        "watched_runs",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("told", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_watched_runs_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", "person_id", name="pk_watched_runs"),
    )


def downgrade() -> None:
    op.drop_table("watched_runs")
    op.drop_table("notice_places")
