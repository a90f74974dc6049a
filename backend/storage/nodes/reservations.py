"""Reserved nodes in SQL: a node is one row, so nobody can hold it twice."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, text, update

from backend.errors import StageflowError
from backend.runs.attempts.fence import Fence
from backend.runs.dispatch.reservations import Summons
from backend.runs.states import LIVE
from backend.storage.database import Database
from backend.storage.fence import held
from backend.storage.look_up import value_of
from backend.storage.tables.node_tables import ReservationRow
from backend.storage.tables.tables import RunRow
from backend.storage.tables.values import Few


class NodesTaken(StageflowError):
    """One of the nodes that a run needs is held by another run."""


def alone(connection: Connection) -> None:
    """Let nobody claim a run up to the end of the transaction, of which this is the beginning:
    so that nodes that are free stay so. On SQLite a writer is alone anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE"))


def reserve(
    connection: Connection, run_id: int, attempt: int, node: str, others: Sequence[str]
) -> None:
    """Let a run that `node` carries hold `others` too, all of them or none: raises `NodesTaken`,
    upon which the whole transaction is to be undone. What ended runs held is free."""
    wanted = (node, *others)
    live = select(RunRow.id).where(
        Few(RunRow.state.in_(LIVE)), RunRow.id != run_id, RunRow.node.in_(wanted)
    )
    held = of_live_runs(ReservationRow.node).where(
        ReservationRow.node.in_(wanted), ReservationRow.run_id != run_id
    )
    if connection.execute(live).first() or connection.execute(held).first():
        raise NodesTaken(f"run {run_id} needs {', '.join(wanted)}, which are not all free")
    connection.execute(delete(ReservationRow).where(ReservationRow.node.in_(wanted)))
    rows = [
        {"node": other, "run_id": run_id, "attempt": attempt, "answered": False} for other in others
    ]
    connection.execute(insert(ReservationRow), rows)


class SqlReservations:
    """A claim reserves all nodes of a run or none (`SqlRuns.claim`)."""

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

    def held(self) -> Sequence[tuple[str, int]]:
        """(node, run) of the reserved nodes of live runs."""
        return [(row.node, row.run_id) for row in self._database.rows(of_live_runs(ReservationRow))]

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
