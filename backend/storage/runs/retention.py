"""Which ended runs a rule of retention takes from, and the taking, in SQL."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.orm import Session

from backend.people.project import Retention
from backend.runs.states import FINAL
from backend.storage.database import Database
from backend.storage.tables.tables import CheckpointRow, LogRow, RunRow, SpanBatchRow
from backend.storage.tables.use_tables import RunUseRow


class SqlClearing:
    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, project_id: int, rule: Retention, before: datetime) -> Sequence[int]:
        """Ended runs that are still whole, ended `before`, and are not kept by the rule nor
        needed by a run that waits or is live; the oldest first."""
        of_project = RunRow.project_id == project_id
        newest = select(RunRow.id).where(of_project).order_by(RunRow.id.desc()).limit(rule.last)
        old: list[ColumnElement[bool]] = [
            of_project,
            RunRow.cleared_at.is_(None),
            RunRow.state.in_(FINAL),
            RunRow.finished_at < before,
        ]
        if rule.starred:
            old.append(RunRow.starred.is_(False))
        with self._database.read() as session:
            kept = {*session.scalars(newest), *_needed(session)}
            found = session.scalars(select(RunRow.id).where(*old).order_by(RunRow.id))
            return [run_id for run_id in found if run_id not in kept]

    def clear(self, run_id: int) -> bool:
        """Take the rows of log, timelines, use and checkpoints away, once: False where somebody
        else did, or the run has not ended."""
        whole = update(RunRow).where(
            RunRow.id == run_id, RunRow.cleared_at.is_(None), RunRow.state.in_(FINAL)
        )
        with self._database.write() as session:
            done = whole.values(cleared_at=datetime.now(UTC)).returning(RunRow.id)
            if not session.scalars(done.execution_options(synchronize_session=False)).all():
                return False
            for table in (LogRow, SpanBatchRow, CheckpointRow, RunUseRow):
                session.execute(
                    delete(table).where(table.run_id == run_id),
                    execution_options={"synchronize_session": False},
                )
            return True


def _needed(session: Session) -> set[int]:
    """The runs from whose checkpoints a run that has not ended begins."""
    specs = session.scalars(select(RunRow.spec).where(RunRow.state.not_in(FINAL)))
    numbers = {spec["checkpoint_id"] for spec in specs if spec.get("checkpoint_id")}
    made = select(CheckpointRow.run_id).where(CheckpointRow.id.in_(numbers))
    return set(session.scalars(made))
