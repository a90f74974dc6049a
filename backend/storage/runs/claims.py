"""Taking a queued run: one UPDATE that compares and sets, and the row of the attempt."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Row, bindparam, func, insert, select, update

from backend.people.project import QuotaReached
from backend.runs.states import RunState, move
from backend.storage.database import Database
from backend.storage.nodes.reservations import NodesTaken, alone, of_live_runs, reserve
from backend.storage.quotas import check_running
from backend.storage.tables.node_tables import ReservationRow
from backend.storage.tables.tables import Base, ProjectRow, TagRow
from backend.storage.tables.values import DatabaseClock, DatabaseMoment

RUNS, ATTEMPTS = Base.metadata.tables["runs"], Base.metadata.tables["attempts"]
SEPARATOR = "\x1f"

_TAGS = select(func.aggregate_strings(TagRow.tag, SEPARATOR)).where(TagRow.run_id == RUNS.c.id)
_QUOTA = select(ProjectRow.quota).where(ProjectRow.id == RUNS.c.project_id)
_HELD = of_live_runs(ReservationRow.node).where(
    ReservationRow.node == bindparam("by"), ReservationRow.run_id != bindparam("run")
)
CLAIM = (
    update(RUNS)
    .where(RUNS.c.id == bindparam("run"), RUNS.c.state == RunState.QUEUED, ~_HELD.exists())
    .values(
        state=move(RunState.QUEUED, RunState.STARTING),
        attempt=RUNS.c.attempt + 1,
        node=bindparam("by"),
        token=bindparam("secret"),
        lease_until=DatabaseClock() + bindparam("term"),
        sandbox=None,
        last_batch=0,
        started_at=func.coalesce(RUNS.c.started_at, DatabaseMoment()),
    )
    .returning(
        *RUNS.c, _TAGS.scalar_subquery().label("tagged"), _QUOTA.scalar_subquery().label("quota")
    )
)
"""Built once; the node that claims must not be reserved by another run."""
ATTEMPT = insert(ATTEMPTS).values(started_at=DatabaseMoment())
ASKED = select(RUNS.c.spec).where(RUNS.c.id == bindparam("run"), RUNS.c.state == RunState.QUEUED)


def asked(database: Database, run_id: int) -> Any:
    """The spec of a run that waits, as it is stored; None where it does not wait."""
    with database.plain(reading=True) as connection:
        return connection.scalar(ASKED, {"run": run_id})


def claim(
    database: Database, run_id: int, node: str, token: str, lease: float, others: Sequence[str]
) -> Row[Any] | None:
    """The run's row as it is now, with its tags in `tagged`; see `SqlRuns.claim`."""
    asked = {"run": run_id, "by": node, "secret": token, "term": lease}
    with suppress(NodesTaken, QuotaReached), database.plain() as connection:
        if others:
            alone(connection)
        row = connection.execute(CLAIM, asked).one_or_none()
        if row is None:
            return None
        if others:
            reserve(connection, run_id, row.attempt, node, others)
        check_running(connection, row.project_id, row.quota)
        attempt = {
            "run_id": run_id,
            "number": row.attempt,
            "node": node,
            "first_seq": row.last_seq + 1,
        }
        connection.execute(ATTEMPT, attempt)
        return row
    return None


def tags(row: Row[Any]) -> tuple[str, ...]:
    """The tags of a row that `claim` gave."""
    return tuple(sorted(row.tagged.split(SEPARATOR))) if row.tagged else ()
