"""People may come in by an identity provider."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

PERSON = "person_id"


def upgrade() -> None:
    op.add_column(
        "people", sa.Column("joined", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.execute("UPDATE people SET joined = (password IS NOT NULL)")
    op.create_table(
        "identities",
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column(PERSON, sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("issuer", "subject", name="pk_identities"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name="fk_identities_person_id_people"
        ),
    )
    op.create_index("ix_identities_person_id", "identities", [PERSON])


def downgrade() -> None:
    op.drop_table("identities")
    with op.batch_alter_table("people") as table:
        table.drop_column("joined")
