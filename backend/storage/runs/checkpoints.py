"""Checkpoints: rows that say what is whole, and a folder of files for each."""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import ColumnElement, Select, select, update
from sqlalchemy.orm import Session

from backend.codec import to_plain
from backend.errors import NotFound
from backend.runs.attempts.checkpoints import Checkpoint, CheckpointFile, Mark
from backend.runs.attempts.fence import Fence
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.storage.database import Database
from backend.storage.fence import hold_once
from backend.storage.look_up import value_of
from backend.storage.tables.tables import CheckpointRow

Files = tuple[CheckpointFile, ...]


class SqlCheckpoints:
    """`folder` holds one folder per run, and in it one per attempt and step."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database, self._folder = database, folder

    def folder(self, run_id: int, attempt: int, step: int) -> Path:
        """Where the files of a checkpoint belong; one folder for each."""
        return self._folder / str(run_id) / f"{attempt}-{step}"

    def add(
        self,
        fence: Fence,
        mark: Mark,
        files: Sequence[CheckpointFile],
        keep: int,
        batch: int = 0,
    ) -> None:
        """Commit a checkpoint whose files are in their folder, and let go of all but the
        newest `keep` of the run and its best one. The same one again changes nothing, unless it
        is known to be the best now."""
        with self._database.write() as session:
            hold_once(session, fence, batch)
            if mark.best:
                others = CheckpointRow.run_id == fence.run_id
                session.execute(update(CheckpointRow).where(others).values(best=False))
            if not _has(session, fence, mark):
                session.add(_row(fence, mark, files))
            elif mark.best:
                session.execute(update(CheckpointRow).where(*_same(fence, mark)).values(best=True))
            older = session.scalars(_newest_first(fence.run_id).offset(max(1, keep))).all()
            left = [row for row in older if not row.best]
            for row in left:
                session.delete(row)
            gone = [self._of(row).folder for row in left]
        for folder in gone:  # a row without files would be worse than files without a row
            shutil.rmtree(folder, ignore_errors=True)

    def get(self, checkpoint_id: int) -> Checkpoint:
        """Raises `NotFound`."""
        return self._of(self._database.get(CheckpointRow, checkpoint_id))

    def list(self, run_id: int) -> Sequence[Checkpoint]:
        """The newest first."""
        return [self._of(row) for row in self._database.rows(_newest_first(run_id))]

    def beginnings(self, run: Run) -> Sequence[Checkpoint]:
        """Where the next attempt may begin, the best first: the run's own checkpoints, then the
        one that it was launched from, if it is still there."""
        own = tuple(self.list(run.id))
        if isinstance(run.spec, TrainSpec) and run.spec.checkpoint_id is not None:
            with suppress(NotFound):
                return (*own, self.get(run.spec.checkpoint_id))
        return own

    def newest(self, run: Run) -> Checkpoint | None:
        """The best of the `beginnings`."""
        return next(iter(self.beginnings(run)), None)

    def forget(self, run_id: int) -> None:
        """Remove the files of a run that is no more."""
        shutil.rmtree(self._folder / str(run_id), ignore_errors=True)

    def _of(self, row: CheckpointRow) -> Checkpoint:
        folder = self.folder(row.run_id, row.attempt, row.step)
        return value_of(Checkpoint, row, mark=value_of(Mark, row), folder=folder)


def _newest_first(run_id: int) -> Select[CheckpointRow]:
    return (
        select(CheckpointRow)
        .where(CheckpointRow.run_id == run_id)
        .order_by(CheckpointRow.id.desc())
    )


def _has(session: Session, fence: Fence, mark: Mark) -> bool:
    return session.scalar(select(CheckpointRow.id).where(*_same(fence, mark))) is not None


def _same(fence: Fence, mark: Mark) -> tuple[ColumnElement[bool], ...]:
    return (
        CheckpointRow.run_id == fence.run_id,
        CheckpointRow.attempt == fence.attempt,
        CheckpointRow.step == mark.step,
    )


def _row(fence: Fence, mark: Mark, files: Sequence[CheckpointFile]) -> CheckpointRow:
    return CheckpointRow(
        run_id=fence.run_id,
        attempt=fence.attempt,
        epoch=mark.epoch,
        samples=mark.samples,
        step=mark.step,
        best=mark.best,
        files=to_plain(Files, tuple(files)),
        size=sum(file.size for file in files),
        created_at=datetime.now(UTC),
    )
