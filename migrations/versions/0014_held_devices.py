"""Runs hold devices, no longer whole nodes; a node may carry shares of several runs."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

LIVE = ("starting", "running")
RUNS = sa.table("runs", *map(sa.column, ("id", "attempt", "node", "state")))
NODES = sa.table("nodes", sa.column("name"), sa.column("devices", sa.JSON()))


def upgrade() -> None:
    held = op.create_table(
        "held_devices",
        sa.Column("node", sa.String(255), nullable=False),
        sa.Column("device", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("node", "device", name="pk_held_devices"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_held_devices_run_id_runs"),
    )
    op.create_index("ix_held_devices_run_id", "held_devices", ["run_id"])
    if rows := list(_held()):
        op.bulk_insert(held, rows)
    _key("node", "run_id")


def downgrade() -> None:
    op.execute(SHARED)
    _key("node")
    op.drop_index("ix_held_devices_run_id", "held_devices")
    op.drop_table("held_devices")


def _held() -> Iterator[dict[str, Any]]:
    """Whole nodes, for the runs that are live meanwhile."""
    connection = op.get_bind()
    devices = {name: found or () for name, found in connection.execute(sa.select(NODES))}
    live = sa.select(RUNS.c.id, RUNS.c.attempt, RUNS.c.node).where(RUNS.c.state.in_(LIVE))
    pairs = {(node, run): attempt for run, attempt, node in connection.execute(live)}
    for node, run, attempt in connection.execute(sa.text(RESERVED)):
        pairs.setdefault((node, run), attempt)
    taken = set()
    for (node, run), attempt in pairs.items():
        for device in range(max(1, len(devices.get(node, ())))):
            if (node, device) not in taken:
                taken.add((node, device))
                yield {"node": node, "device": device, "run_id": run, "attempt": attempt}


RESERVED = """
    SELECT r.node, r.run_id, r.attempt FROM reservations r
    JOIN runs ON runs.id = r.run_id AND runs.attempt = r.attempt
    WHERE runs.state IN ('starting', 'running')
"""


SHARED = """
    DELETE FROM reservations WHERE EXISTS (
        SELECT 1 FROM reservations AS other
        WHERE other.node = reservations.node AND other.run_id > reservations.run_id
    )
"""
"""What two runs hold is kept for the later one."""


def _key(*columns: str) -> None:
    """Of the table of reservations."""
    with op.batch_alter_table("reservations") as table:
        table.drop_constraint("pk_reservations", type_="primary")
        table.create_primary_key("pk_reservations", list(columns))
