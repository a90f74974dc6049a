"""What the agents of several hosts are asked to carry, in SQL."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from backend.runs.attempts.fence import Fence
from backend.runs.dispatch.reservations import Summons
from backend.runs.states import LIVE
from backend.storage.database import Database
from backend.storage.fence import held
from backend.storage.look_up import value_of
from backend.storage.tables.node_tables import ReservationRow
from backend.storage.tables.tables import RunRow


def reserve(connection: Connection, run_id: int, attempt: int, nodes: Sequence[str]) -> None:
    """Let the agents of these nodes carry shares of a run; what they were asked before for that
    run counts no longer."""
    if not nodes:
        return
    connection.execute(delete(ReservationRow).where(ReservationRow.run_id == run_id))
    rows = [
        {"node": node, "run_id": run_id, "attempt": attempt, "answered": False} for node in nodes
    ]
    connection.execute(insert(ReservationRow), rows)


class SqlReservations:
    """A claim asks all nodes of a run (`SqlRuns.claim`)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def summon(self, fence: Fence, address: str, port: int, secret: str) -> None:
        """Tell the reserved nodes where to report. Raises `LeaseLost`."""
        query = update(ReservationRow).where(
            ReservationRow.run_id == fence.run_id, ReservationRow.attempt == fence.attempt
        )
        with held(self._database, fence) as session:
            session.execute(query.values(address=address, port=port, secret=secret))

    def summons(self, node: str) -> Summons | None:
        """What `node` is asked to, while the run is live."""
        query = of_live_runs(ReservationRow).where(
            ReservationRow.node == node,
            ReservationRow.port.is_not(None),
            ReservationRow.answered.is_(False),
        )
        row = self._database.first(query)
        return None if row is None else value_of(Summons, row)

    def answered(self, summons: Summons, node: str) -> bool:
        """`node` takes its share; False where it did before."""
        query = update(ReservationRow).where(
            ReservationRow.node == node,
            ReservationRow.run_id == summons.run_id,
            ReservationRow.attempt == summons.attempt,
            ReservationRow.answered.is_(False),
        )
        with self._database.write() as session:
            done = session.scalars(query.values(answered=True).returning(ReservationRow.node))
            return len(done.all()) == 1


def of_live_runs(*wanted: Any) -> Select[Any]:
    """What is `wanted` of the reservations that count."""
    live = (RunRow.id == ReservationRow.run_id) & (RunRow.attempt == ReservationRow.attempt)
    found = select(*wanted).select_from(ReservationRow).join(RunRow, live)
    return found.where(RunRow.state.in_(LIVE))
