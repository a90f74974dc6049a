"""Runs that are followed in experiment trackers, in SQL."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import uuid4

from sqlalchemy import select, update

from backend.codec import from_plain, to_plain
from backend.errors import StageflowError
from backend.runs.history.followed import Followed, Following
from backend.storage.database import Database
from backend.storage.tables.tracker_tables import FollowedRow


class NotFollowed(StageflowError):
    """A run is in no such tracker."""


class SqlFollowed:
    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, run_id: int, trackers: Iterable[str]) -> None:
        """Follow the run in these, each under a key that no other run ever has."""
        with self._database.write() as session:
            for tracker in trackers:
                if session.get(FollowedRow, (run_id, tracker)) is None:
                    session.add(_row(Followed(run_id, tracker, uuid4().hex)))

    def list(self, run_id: int) -> Sequence[Followed]:
        """Of one run, by tracker."""
        query = select(FollowedRow).where(FollowedRow.run_id == run_id)
        rows = self._database.rows(query.order_by(FollowedRow.tracker))
        return [_followed(row) for row in rows]

    def get(self, run_id: int, tracker: str) -> Followed:
        """Raises `NotFollowed`."""
        for each in self.list(run_id):
            if each.tracker == tracker:
                return each
        raise NotFollowed(f"run {run_id} is not followed in {tracker[:100]}")

    def due(self, tracker: str, now: float, limit: int = 100) -> Sequence[Followed]:
        """Those in a tracker that are to be looked after, who waits longest first."""
        here = (FollowedRow.tracker == tracker, FollowedRow.state == Following.ON)
        query = select(FollowedRow).where(*here, FollowedRow.due <= now)
        query = query.order_by(FollowedRow.due, FollowedRow.run_id).limit(limit)
        return [_followed(row) for row in self._database.rows(query)]

    def change(self, before: Followed, after: Followed) -> bool:
        """Compare-and-set; False where meanwhile somebody else has changed its state, points were
        taken back, or the run is deleted."""
        row = _row(after)
        mine = update(FollowedRow).where(
            FollowedRow.run_id == before.run_id,
            FollowedRow.tracker == before.tracker,
            FollowedRow.state == before.state,
            FollowedRow.position == before.position,
        )
        values = {"position": row.position, "body": row.body}
        changed = mine.values(state=row.state, due=row.due, **values)
        with self._database.write() as session:
            done = session.scalars(changed.returning(FollowedRow.run_id))
            return len(done.all()) == 1


def _row(followed: Followed) -> FollowedRow:
    return FollowedRow(
        run_id=followed.run_id,
        tracker=followed.tracker,
        state=followed.state,
        due=followed.due,
        position=followed.position,
        body=to_plain(Followed, followed),
    )


def _followed(row: FollowedRow) -> Followed:
    found: Followed = from_plain(Followed, row.body)
    return replace(found, position=row.position)
