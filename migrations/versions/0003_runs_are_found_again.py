"""Runs have an owner, a star, tags, a note and an origin, and are sorted by what they reached."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INDEXES = (
    ("state", "id"),
    ("kind", "id"),
    ("definition_id", "id"),
    ("plan_id", "id"),
    ("owner", "id"),
    ("starred", "id"),
    ("name", "id"),
    ("accuracy", "id"),
    ("seconds", "id"),
    ("created_at",),
    ("origin_id",),
)
COLUMNS = ("owner", "starred", "note", "origin_id", "plan_id", "accuracy", "seconds")
REPLACED = (("state", "created_at"), ("definition_id",))

BACKFILL = {
    "sqlite": """
        UPDATE runs SET
          accuracy = json_extract(summary, '$.accuracy'),
          plan_id = json_extract(spec, '$.plan_id'),
          seconds = (julianday(finished_at) - julianday(started_at)) * 86400.0
    """,
    "postgresql": """
        UPDATE runs SET
          accuracy = (summary ->> 'accuracy')::double precision,
          plan_id = (spec ->> 'plan_id')::integer,
          seconds = EXTRACT(EPOCH FROM finished_at - started_at)
    """,
}


def upgrade() -> None:
    for columns in REPLACED:
        op.drop_index(_name(columns), "runs")
    with op.batch_alter_table("runs") as table:
        table.add_column(
            sa.Column("owner", sa.Text(), nullable=False, server_default=sa.text("''"))
        )
        table.add_column(
            sa.Column("starred", sa.Boolean(), nullable=False, server_default=sa.false())
        )
        table.add_column(sa.Column("note", sa.Text(), nullable=False, server_default=sa.text("''")))
        table.add_column(sa.Column("origin_id", sa.Integer(), nullable=True))
        table.add_column(sa.Column("plan_id", sa.Integer(), nullable=True))
        table.add_column(sa.Column("accuracy", sa.Double(), nullable=True))
        table.add_column(sa.Column("seconds", sa.Double(), nullable=True))
        table.create_foreign_key("fk_runs_origin_id_runs", "runs", ["origin_id"], ["id"])
    op.create_table(
        "run_tags",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_tags_run_id_runs"),
        sa.PrimaryKeyConstraint("run_id", "tag", name="pk_run_tags"),
    )
    op.create_index("ix_run_tags_tag_run_id", "run_tags", ["tag", "run_id"])
    op.execute(BACKFILL[op.get_bind().dialect.name])
    for columns in INDEXES:
        op.create_index(_name(columns), "runs", list(columns))


def downgrade() -> None:
    op.drop_table("run_tags")
    for columns in INDEXES:
        op.drop_index(_name(columns), "runs")
    with op.batch_alter_table("runs") as table:
        table.drop_constraint("fk_runs_origin_id_runs", type_="foreignkey")
        for column in COLUMNS:
            table.drop_column(column)
    for columns in REPLACED:
        op.create_index(_name(columns), "runs", list(columns))


def _name(columns: tuple[str, ...]) -> str:
    return "_".join(("ix", "runs", *columns))
