"""Comments on runs in SQL."""

from collections.abc import Sequence

from sqlalchemy import func, select

from backend.errors import InvalidInput
from backend.runs.history.comments import MAX_COMMENTS, Comment
from backend.storage.database import Database
from backend.storage.look_up import look_up, value_of
from backend.storage.tables.tables import RunRow
from backend.storage.tables.team_tables import CommentRow
from backend.storage.tables.values import DatabaseMoment


class SqlComments:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, run_id: int, author: str, text: str) -> Comment:
        """Raises `NotFound` without such a run, `InvalidInput` where it has very many."""
        said = select(func.count()).where(CommentRow.run_id == run_id)
        with self._database.write() as session:
            look_up(session, RunRow, run_id)
            if (session.scalar(said) or 0) >= MAX_COMMENTS:
                raise InvalidInput(
                    f"run {run_id} has {MAX_COMMENTS:,} comments", "Delete old ones first."
                )
            now = session.scalar(select(DatabaseMoment()))
            row = CommentRow(run_id=run_id, author=author, text=text, created_at=now)
            session.add(row)
            session.flush()
            session.refresh(row)  # as it is stored: without what a database refuses
            return value_of(Comment, row)

    def get(self, comment_id: int) -> Comment:
        """Raises `NotFound`."""
        return value_of(Comment, self._database.get(CommentRow, comment_id))

    def list(self, run_id: int) -> Sequence[Comment]:
        """The oldest first."""
        query = select(CommentRow).where(CommentRow.run_id == run_id).order_by(CommentRow.id)
        return [value_of(Comment, row) for row in self._database.rows(query)]

    def delete(self, comment_id: int) -> None:
        """Raises `NotFound`."""
        with self._database.write() as session:
            session.delete(look_up(session, CommentRow, comment_id))
