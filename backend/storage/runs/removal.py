"""Taking a run away: its rows in every table that knows of runs."""

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from backend.runs.states import FINAL
from backend.storage.tables.tables import Base, RunRow


def remove_run(session: Session, run_id: int) -> bool:
    """Delete the run if it has ended, with all that is its own; what only points to it (a
    profile that it measured, a run made from it) stays and points nowhere."""
    ended = select(RunRow.id).where(RunRow.id == run_id, RunRow.state.in_(FINAL))
    if session.scalar(ended.with_for_update()) is None:
        return False
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
    return True
