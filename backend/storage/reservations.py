"""Reserved nodes in SQL: a node is one row, so nobody can hold it twice."""

from collections.abc import Sequence

from sqlalchemy import Select, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.errors import StageflowError
from backend.runs.fence import Fence
from backend.runs.reservations import Summons
from backend.storage.database import Database
from backend.storage.fence import LIVE, hold
from backend.storage.tables import NodeRow, ReservationRow, RunRow


class NodesTaken(StageflowError):
    """One of the nodes that a run needs is held by another run."""


def reserve(session: Session, run: RunRow, others: Sequence[str]) -> None:
    """Let `run` hold its own node and `others`, all of them or none: raises `NodesTaken`, upon
    which the whole transaction is to be undone. What ended runs held is free."""
    wanted = (str(run.node), *others)
    if session.get_bind().dialect.name != "sqlite":  # where a writer is alone anyway
        locked = select(NodeRow.name).where(NodeRow.name.in_(wanted)).order_by(NodeRow.name)
        session.execute(locked.with_for_update())
    live = select(RunRow.id).where(RunRow.state.in_(LIVE), RunRow.id != run.id)
    taken = NodesTaken(f"run {run.id} needs {', '.join(wanted)}, which are not all free")
    if others and session.scalars(live.where(RunRow.node.in_(wanted))).first():
        raise taken
    for held in session.scalars(select(ReservationRow).where(ReservationRow.node.in_(wanted))):
        if session.scalars(live.where(RunRow.id == held.run_id)).first():
            raise taken
        session.delete(held)
    session.flush()
    for node in others:
        session.add(ReservationRow(node=node, run_id=run.id, attempt=run.attempt, answered=False))
    try:
        session.flush()
    except IntegrityError as fault:
        raise NodesTaken(f"run {run.id} came too late for {', '.join(wanted)}") from fault


class SqlReservations:
    def __init__(self, database: Database) -> None:
        self._database = database

    def summon(self, fence: Fence, address: str, port: int, secret: str) -> None:
        query = update(ReservationRow).where(
            ReservationRow.run_id == fence.run_id, ReservationRow.attempt == fence.attempt
        )
        with self._database.write() as session:
            hold(session, fence)
            session.execute(query.values(address=address, port=port, secret=secret))

    def summons(self, node: str) -> Summons | None:
        query = _of_live_runs().where(
            ReservationRow.node == node,
            ReservationRow.port.is_not(None),
            ReservationRow.answered.is_(False),
        )
        with self._database.read() as session:
            row = session.scalar(query)
            if row is None:
                return None
            place = (row.address or "", row.port or 0, row.secret or "")
            return Summons(row.run_id, row.attempt, *place)

    def held(self) -> Sequence[tuple[str, int]]:
        with self._database.read() as session:
            return [(row.node, row.run_id) for row in session.scalars(_of_live_runs())]

    def answered(self, summons: Summons, node: str) -> bool:
        query = update(ReservationRow).where(
            ReservationRow.node == node,
            ReservationRow.run_id == summons.run_id,
            ReservationRow.attempt == summons.attempt,
            ReservationRow.answered.is_(False),
        )
        with self._database.write() as session:
            done = session.scalars(query.values(answered=True).returning(ReservationRow.node))
            return len(done.all()) == 1


def _of_live_runs() -> Select[ReservationRow]:
    live = (RunRow.id == ReservationRow.run_id) & (RunRow.attempt == ReservationRow.attempt)
    return select(ReservationRow).join(RunRow, live).where(RunRow.state.in_(LIVE))
