"""Everything belongs to a project. What was there belongs to the first one."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

PROJECT = "project_id"
WHEN = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(JSONB(), "postgresql")
FIRST = sa.text("1")


def upgrade() -> None:
    projects = op.create_table(
        "projects",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("archived", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("quota", JSON, nullable=False),
        sa.Column("retention", JSON, nullable=False),
        sa.Column("created_at", WHEN, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
        sa.UniqueConstraint("key", name="uq_projects_key"),
    )
    first = {"name": "General", "key": "general", "quota": {}, "retention": {}}
    op.bulk_insert(projects, [first | {"created_at": datetime.now(UTC)}])  # its number is 1
    op.create_table(
        "members",
        sa.Column(PROJECT, sa.Integer(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint(PROJECT, "person_id", name="pk_members"),
        sa.ForeignKeyConstraint([PROJECT], ["projects.id"], name=_key("members")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_members_person_id_people"),
    )
    op.create_index("ix_members_person_id", "members", ["person_id"])
    _definitions()
    _runs()
    with op.batch_alter_table("tokens") as table:
        table.add_column(sa.Column(PROJECT, sa.Integer(), nullable=True))
        table.create_foreign_key(_key("tokens"), "projects", [PROJECT], ["id"])


def _definitions() -> None:
    """A name is one in its project."""
    with op.batch_alter_table("definitions") as table:
        table.add_column(sa.Column(PROJECT, sa.Integer(), server_default=FIRST, nullable=False))
        table.create_foreign_key(_key("definitions"), "projects", [PROJECT], ["id"])
        for column in ("version", "digest"):
            table.drop_constraint(f"uq_definitions_name_{column}", type_="unique")
            name = f"uq_definitions_{PROJECT}_name_{column}"
            table.create_unique_constraint(name, [PROJECT, "name", column])


def _runs() -> None:
    with op.batch_alter_table("runs", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.add_column(sa.Column(PROJECT, sa.Integer(), server_default=FIRST, nullable=False))
        table.add_column(sa.Column("cleared_at", WHEN, nullable=True))
        table.create_foreign_key(_key("runs"), "projects", [PROJECT], ["id"])
    op.create_index("ix_runs_project_id_id", "runs", [PROJECT, "id"])


def _key(table: str) -> str:
    return f"fk_{table}_{PROJECT}_projects"


def downgrade() -> None:
    with op.batch_alter_table("tokens") as table:
        table.drop_constraint(_key("tokens"), type_="foreignkey")
        table.drop_column(PROJECT)
    op.drop_index("ix_runs_project_id_id", "runs")
    with op.batch_alter_table("runs", table_kwargs={"sqlite_autoincrement": True}) as table:
        table.drop_constraint(_key("runs"), type_="foreignkey")
        table.drop_column("cleared_at")
        table.drop_column(PROJECT)
    with op.batch_alter_table("definitions") as table:
        table.drop_constraint(_key("definitions"), type_="foreignkey")
        for column in ("version", "digest"):
            table.drop_constraint(f"uq_definitions_{PROJECT}_name_{column}", type_="unique")
            table.create_unique_constraint(f"uq_definitions_name_{column}", ["name", column])
        table.drop_column(PROJECT)
    op.drop_table("members")
    op.drop_table("projects")
