"""Kept views of the list of runs in SQL."""

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from backend.codec import to_plain
from backend.errors import InvalidInput, NotFound
from backend.runs.history.views import MAX_VIEWS, ListView, SavedView, ViewNameTaken
from backend.storage.database import Database
from backend.storage.look_up import VIEWS, look_up, value_of
from backend.storage.quotas import admit
from backend.storage.tables.team_tables import ViewRow
from backend.storage.tables.values import DatabaseMoment


class SqlViews:
    """An owner has one of each name in a project, told apart without regard to case."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, name: str, view: ListView, project_id: int, owner: str) -> SavedView:
        """Keep a view, for its owner or, with "", for the project. Raises `ViewNameTaken`, and
        `InvalidInput` where there are very many."""
        mine = (ViewRow.project_id == project_id, ViewRow.owner == owner)
        try:
            with self._database.write() as session:
                admit(session.connection(), project_id)
                if (session.scalar(select(func.count()).where(*mine)) or 0) >= MAX_VIEWS:
                    raise InvalidInput(f"{MAX_VIEWS} views are kept", "Delete some first.")
                row = ViewRow(
                    project_id=project_id,
                    owner=owner,
                    name=name,
                    key=name.casefold(),
                    view=to_plain(ListView, view),
                    created_at=session.scalar(select(DatabaseMoment())),
                )
                session.add(row)
                session.flush()
                session.refresh(row)
                return value_of(SavedView, row)
        except IntegrityError:
            raise ViewNameTaken(
                f"there is a view {name!r}", "Choose another name, or delete that one first."
            ) from None

    def get(self, view_id: int, owner: str) -> SavedView:
        """One that is shared or this owner's. Raises `NotFound`."""
        found = value_of(SavedView, self._database.get(ViewRow, view_id))
        if found.owner not in ("", owner):
            raise NotFound(f"no view {view_id}", VIEWS)
        return found

    def list(self, owner: str) -> Sequence[SavedView]:
        """Those that are shared and this owner's, by name."""
        seen = ViewRow.owner.in_(("", owner))
        query = select(ViewRow).where(seen).order_by(ViewRow.key, ViewRow.id)
        return [value_of(SavedView, row) for row in self._database.rows(query)]

    def delete(self, view_id: int) -> None:
        """Raises `NotFound`."""
        with self._database.write() as session:
            session.delete(look_up(session, ViewRow, view_id))
