"""Taking a run away: its rows in every table that knows of runs."""

from itertools import repeat

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from backend.runs.states import FINAL
from backend.storage.database import Database
from backend.storage.portions import ROWS, in_turns
from backend.storage.tables.base import Base
from backend.storage.tables.tables import RunRow

POINTS = Base.metadata.tables["metrics"]


def remove_run(database: Database, run_id: int) -> bool:
    """Delete the run if it has ended, with all that is its own; what only points to it (a
    profile that it measured, a run made from it) stays and points nowhere. Its points, which may
    be millions, go first: where this ends in between, the run has lost some of them."""
    some = select(POINTS.c.id).where(POINTS.c.run_id == run_id).limit(ROWS)
    for _ in in_turns(repeat(None)):
        with database.write() as session:
            if not _has_ended(session, run_id):
                break
            gone = session.execute(
                delete(POINTS).where(POINTS.c.id.in_(some)).returning(POINTS.c.id)
            )
            if len(gone.all()) < ROWS:
                _remove_rest(session, run_id)
                return True
    return False


def _has_ended(session: Session, run_id: int) -> bool:
    """There is such a run; it stays as it is up to the end of the transaction."""
    ended = select(RunRow.id).where(RunRow.id == run_id, RunRow.state.in_(FINAL))
    return session.scalar(ended.with_for_update()) is not None


def _remove_rest(session: Session, run_id: int) -> None:
    for table in Base.metadata.tables.values():
        for key in table.foreign_keys:
            if key.column is not RunRow.__table__.c.id:
                continue
            pointing = key.parent == run_id
            if key.parent.nullable:
                session.execute(update(table).where(pointing).values({key.parent: None}))
            else:
                session.execute(delete(table).where(pointing))
    session.execute(
        delete(RunRow).where(RunRow.id == run_id),
        execution_options={"synchronize_session": False},
    )
