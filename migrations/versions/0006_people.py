"""People, what lets them in, and the log of who did what, which nobody can change. The number
of a deleted run is not given again on SQLite either."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

WHEN = sa.DateTime(timezone=True)
ENTRY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PERSON = "people.id"
SQLITE = """
CREATE TRIGGER audit_log_no_{verb} BEFORE {verb} ON audit_log
BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END
"""
POSTGRESQL = (
    """
CREATE FUNCTION audit_log_only_grows() RETURNS trigger AS
'BEGIN RAISE EXCEPTION ''the audit log only grows''; END' LANGUAGE plpgsql
""",
    """
CREATE TRIGGER audit_log_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
FOR EACH STATEMENT EXECUTE FUNCTION audit_log_only_grows()
""",
)
TABLES = ("audit_log", "invitations", "tokens", "sessions", "sign_in_failures", "people")


def upgrade() -> None:
    _people()
    _keys()
    _audit_log()
    _number_runs(once=True)


def _number_runs(once: bool) -> None:
    if op.get_bind().dialect.name != "sqlite":  # a sequence never goes back
        return
    options = {"sqlite_autoincrement": once}
    with op.batch_alter_table("runs", recreate="always", table_kwargs=options):
        pass


def _audit_log() -> None:
    op.create_table(
        "audit_log",
        sa.Column("id", ENTRY, nullable=False),
        sa.Column("time", WHEN, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
    )
    op.create_index("ix_audit_log_actor_id", "audit_log", ["actor", "id"])
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(SQLITE.format(verb=verb))
    else:
        for statement in POSTGRESQL:
            op.execute(statement)


def _people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("password", sa.Text(), nullable=True),
        sa.Column("disabled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", WHEN, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_people"),
        sa.UniqueConstraint("key", name="uq_people_key"),
    )
    op.create_table(
        "sign_in_failures",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed_at", WHEN, nullable=False),
        sa.Column("locked_until", WHEN, nullable=True),
        sa.PrimaryKeyConstraint("key", name="pk_sign_in_failures"),
    )
    op.create_index("ix_sign_in_failures_failed_at", "sign_in_failures", ["failed_at"])


def _keys() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("client", sa.Text(), nullable=False),
        sa.Column("created_at", WHEN, nullable=False),
        sa.Column("seen_at", WHEN, nullable=False),
        sa.Column("expires_at", WHEN, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.UniqueConstraint("digest", name="uq_sessions_digest"),
        sa.ForeignKeyConstraint(["person_id"], [PERSON], name="fk_sessions_person_id_people"),
    )
    op.create_index("ix_sessions_person_id", "sessions", ["person_id"])
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("created_at", WHEN, nullable=False),
        sa.Column("expires_at", WHEN, nullable=True),
        sa.Column("used_at", WHEN, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("digest", name="uq_tokens_digest"),
        sa.ForeignKeyConstraint(["person_id"], [PERSON], name="fk_tokens_person_id_people"),
    )
    op.create_index("ix_tokens_person_id", "tokens", ["person_id"])
    op.create_table(
        "invitations",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=True),
        sa.Column("expires_at", WHEN, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_invitations"),
        sa.ForeignKeyConstraint(["person_id"], [PERSON], name="fk_invitations_person_id_people"),
    )
    op.create_index("ix_invitations_person_id", "invitations", ["person_id"])


def downgrade() -> None:
    _number_runs(once=False)
    for table in TABLES:
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_log_only_grows()")
