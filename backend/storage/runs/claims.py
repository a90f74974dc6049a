"""Taking a queued run: one UPDATE that compares and sets, and the row of the attempt."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, func, insert, select, update

from backend.codec import to_plain
from backend.people.project import QuotaReached
from backend.planning.plan import Plan
from backend.prediction.fallback import Fallback
from backend.runs.dispatch.placement import Share
from backend.runs.states import RunState, move
from backend.storage.database import Database
from backend.storage.nodes.holdings import Claimant, DevicesRaced, DevicesTaken, take
from backend.storage.nodes.reservations import reserve
from backend.storage.quotas import check_running
from backend.storage.tables.base import Base
from backend.storage.tables.tables import ProjectRow, TagRow
from backend.storage.tables.values import DatabaseClock, DatabaseMoment

RUNS, ATTEMPTS = Base.metadata.tables["runs"], Base.metadata.tables["attempts"]
SEPARATOR = "\x1f"

_TAGS = select(func.aggregate_strings(TagRow.tag, SEPARATOR)).where(TagRow.run_id == RUNS.c.id)
_QUOTA = select(ProjectRow.quota).where(ProjectRow.id == RUNS.c.project_id)
CLAIM = (
    update(RUNS)
    .where(RUNS.c.id == bindparam("run"), RUNS.c.state == RunState.QUEUED)
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
"""Built once."""
RACES = 50
"""Times that others may take the same devices in the same moment: each time one of them gets on."""
ATTEMPT = insert(ATTEMPTS).values(started_at=DatabaseMoment())
ASKED = select(RUNS.c.spec).where(RUNS.c.id == bindparam("run"), RUNS.c.state == RunState.QUEUED)


def asked(database: Database, run_id: int) -> Any:
    """The spec of a run that waits, as it is stored; None where it does not wait."""
    with database.plain(reading=True) as connection:
        return connection.scalar(ASKED, {"run": run_id})


@dataclass(frozen=True, slots=True)
class Claim:
    """What an agent asks for: a queued run, with devices of every share, of which the first is its
    own node's; `whole` nodes where the run shall be alone there. `lease` in seconds. `fallback`:
    the plan by which it goes on with fewer nodes."""

    run_id: int
    token: str
    lease: float
    shares: tuple[Share, ...]
    whole: bool = False
    fallback: Fallback | None = None


def claim(database: Database, asked: Claim) -> tuple[Row[Any], tuple[Share, ...]] | None:
    """The run's row as it is now, with its tags in `tagged`, and its devices; see
    `SqlRuns.claim`."""
    for _ in range(RACES):
        with suppress(DevicesRaced):
            return _claimed(database, asked)
    return None


def _claimed(database: Database, asked: Claim) -> tuple[Row[Any], tuple[Share, ...]] | None:
    """Raises `DevicesRaced`."""
    node = asked.shares[0].node
    values = {"run": asked.run_id, "by": node, "secret": asked.token, "term": asked.lease}
    try:
        with database.plain() as connection:
            row = connection.execute(CLAIM, values).one_or_none()
            if row is None:
                return None
            by = Claimant(row.id, row.attempt, asked.whole)
            shares = take(connection, by, asked.shares)
            reserve(connection, row.id, row.attempt, [share.node for share in shares[1:]])
            check_running(connection, row.project_id, row.quota)
            attempt = {
                "run_id": row.id,
                "number": row.attempt,
                "node": node,
                "first_seq": row.last_seq + 1,
                **_planned(asked.fallback),
            }
            connection.execute(ATTEMPT, attempt)
            return row, shares
    except DevicesRaced:
        raise
    except (DevicesTaken, QuotaReached):
        return None


def _planned(fallback: Fallback | None) -> dict[str, Any]:
    if fallback is None:
        return {"plan": None, "factor": None}
    return {"plan": to_plain(Plan, fallback.plan), "factor": fallback.factor}


def tags(row: Row[Any]) -> tuple[str, ...]:
    """The tags of a row that `claim` gave."""
    return tuple(sorted(row.tagged.split(SEPARATOR))) if row.tagged else ()
