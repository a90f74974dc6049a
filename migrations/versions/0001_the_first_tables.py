"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
UTC = sa.DateTime(timezone=True)
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INDEXES = {
    "runs": (("definition_id",), ("state", "created_at")),
    "profiles": (("definition_id",), ("run_id",)),
    "plans": (("profile_id",),),
    "metrics": (("run_id", "name", "step"),),
    "span_batches": (("run_id", "kind", "segment"),),
}


def upgrade() -> None:
    for make in (definitions, runs, profiles, plans, traces, artifacts, nodes):
        make()
    for table, indexes in INDEXES.items():
        for columns in indexes:
            op.create_index("_".join(("ix", table, *columns)), table, list(columns))


def downgrade() -> None:
    tables = "nodes artifacts span_batches log_lines metrics plans profiles runs definitions"
    for table in (*tables.split(), "contents"):
        op.drop_table(table)


def definitions() -> None:
    op.create_table(
        "contents",
        column("digest", sa.String(64)),
        column("data", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("digest", name="pk_contents"),
    )
    op.create_table(
        "definitions",
        column("id", sa.Integer()),
        column("name", sa.Text()),
        column("version", sa.Integer()),
        column("filename", sa.Text()),
        column("digest", sa.String(64)),
        column("size", sa.Integer()),
        column("source", sa.String(16)),
        column("created_at", UTC),
        foreign_key("definitions", "digest", "contents.digest"),
        sa.PrimaryKeyConstraint("id", name="pk_definitions"),
        sa.UniqueConstraint("name", "version", name="uq_definitions_name_version"),
        sa.UniqueConstraint("name", "digest", name="uq_definitions_name_digest"),
    )


def runs() -> None:
    states = ("queued", "starting", "running", "succeeded", "failed", "cancelled")
    op.create_table(
        "runs",
        column("id", sa.Integer()),
        column("name", sa.Text()),
        column("kind", sa.String(16)),
        column("definition_id", sa.Integer()),
        column("spec", JSON),
        column("state", sa.Enum(*states, name="runstate", native_enum=False, length=16)),
        column("attempt", sa.Integer(), server_default=sa.text("0")),
        column("node", sa.Text(), nullable=True),
        column("token", sa.String(32), nullable=True),
        column("lease_until", sa.Double(), nullable=True),
        column("cancel_requested", sa.Boolean()),
        column("last_seq", sa.Integer(), server_default=sa.text("0")),
        column("progress", JSON, nullable=True),
        column("summary", JSON),
        column("error", JSON, nullable=True),
        column("created_at", UTC),
        column("started_at", UTC, nullable=True),
        column("finished_at", UTC, nullable=True),
        foreign_key("runs", "definition_id", "definitions.id"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )


def profiles() -> None:
    op.create_table(
        "profiles",
        column("id", sa.Integer()),
        column("definition_id", sa.Integer()),
        column("run_id", sa.Integer(), nullable=True),
        column("body", JSON),
        column("created_at", UTC),
        foreign_key("profiles", "definition_id", "definitions.id"),
        foreign_key("profiles", "run_id", "runs.id"),
        sa.PrimaryKeyConstraint("id", name="pk_profiles"),
    )


def plans() -> None:
    op.create_table(
        "plans",
        column("id", sa.Integer()),
        column("name", sa.Text()),
        column("profile_id", sa.Integer()),
        column("cluster", JSON),
        column("prediction", JSON),
        column("created_at", UTC),
        foreign_key("plans", "profile_id", "profiles.id"),
        sa.PrimaryKeyConstraint("id", name="pk_plans"),
    )


def traces() -> None:
    op.create_table(
        "metrics",
        column("id", BIG),
        column("run_id", sa.Integer()),
        column("name", sa.Text()),
        column("step", sa.Integer()),
        column("epoch", sa.Integer()),
        column("value", sa.Double(), nullable=True),
        column("time", sa.Double()),
        foreign_key("metrics", "run_id", "runs.id"),
        sa.PrimaryKeyConstraint("id", name="pk_metrics"),
    )
    op.create_table(
        "log_lines",
        column("run_id", sa.Integer()),
        column("seq", sa.Integer(), autoincrement=False),
        column("time", sa.Double()),
        column("rank", sa.Integer(), nullable=True),
        column("text", sa.Text()),
        foreign_key("log_lines", "run_id", "runs.id"),
        sa.PrimaryKeyConstraint("run_id", "seq", name="pk_log_lines"),
    )
    op.create_table(
        "span_batches",
        column("id", sa.Integer()),
        column("run_id", sa.Integer()),
        column("kind", sa.String(16)),
        column("segment", sa.Integer()),
        column("rank", sa.Integer()),
        column("num_spans", sa.Integer()),
        column("data", sa.LargeBinary()),
        foreign_key("span_batches", "run_id", "runs.id"),
        sa.PrimaryKeyConstraint("id", name="pk_span_batches"),
    )


def artifacts() -> None:
    op.create_table(
        "artifacts",
        column("id", sa.Integer()),
        column("run_id", sa.Integer()),
        column("name", sa.Text()),
        column("size", sa.BigInteger()),
        column("digest", sa.String(64)),
        foreign_key("artifacts", "run_id", "runs.id"),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
        sa.UniqueConstraint("run_id", "name", name="uq_artifacts_run_id_name"),
    )


def nodes() -> None:
    op.create_table(
        "nodes",
        column("name", sa.String(255)),
        column("devices", JSON),
        column("versions", JSON),
        column("heartbeat", sa.Double()),
        sa.PrimaryKeyConstraint("name", name="pk_nodes"),
    )


def column(name, kind, nullable=False, **options) -> sa.Column:
    return sa.Column(name, kind, nullable=nullable, **options)


def foreign_key(table, name, target) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [name], [target], name=f"fk_{table}_{name}_{target.split('.')[0]}"
    )
