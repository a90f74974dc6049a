"""Where people are told of runs, in SQL. Services keep one person's from another's."""

from collections.abc import Mapping, Sequence

from sqlalchemy import func, select

from backend.errors import InvalidInput, NotFound
from backend.runs.history.notices import MAX_PLACES, NoticePlace, PlaceKind, RunEvent
from backend.storage.database import Database
from backend.storage.look_up import look_up, value_of
from backend.storage.tables.notice_tables import PlaceRow, WatchRow
from backend.storage.tables.tables import RunRow
from backend.storage.tables.values import DatabaseMoment


class SqlNotices:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, person: int, kind: PlaceKind, address: str, events: Sequence[RunEvent], runs: str
    ) -> NoticePlace:
        """Raises `InvalidInput` where the person has many."""
        count = select(func.count()).where(PlaceRow.person_id == person)
        with self._database.write() as session:
            if (session.scalar(count) or 0) >= MAX_PLACES:
                raise InvalidInput(f"{MAX_PLACES} places are kept", "Remove one first.")
            row = PlaceRow(
                person_id=person,
                kind=kind,
                address=address,
                events=[event.value for event in events],
                runs=runs,
                created_at=session.scalar(select(DatabaseMoment())),
            )
            session.add(row)
            session.flush()
            return value_of(NoticePlace, row)

    def list(self, person: int) -> Sequence[NoticePlace]:
        """Of one person, in the order in which they were added."""
        query = select(PlaceRow).where(PlaceRow.person_id == person).order_by(PlaceRow.id)
        return [value_of(NoticePlace, row) for row in self._database.rows(query)]

    def all(self) -> Sequence[NoticePlace]:
        """Of everybody."""
        rows = self._database.rows(select(PlaceRow).order_by(PlaceRow.id))
        return [value_of(NoticePlace, row) for row in rows]

    def remove(self, place_id: int, person: int) -> None:
        """Raises `NotFound`, also of what is another person's."""
        with self._database.write() as session:
            row = session.get(PlaceRow, place_id)
            if row is None or row.person_id != person:
                raise NotFound(f"no place {place_id}")
            session.delete(row)

    def watch(self, run_id: int, person: int, told: bool) -> None:
        """Raises `NotFound` without such a run."""
        with self._database.write() as session:
            look_up(session, RunRow, run_id)
            session.merge(WatchRow(run_id=run_id, person_id=person, told=told))

    def watchers(self, run_id: int) -> Mapping[int, bool]:
        """By person, whether they are told of this run; those who have said nothing are not in
        it."""
        query = select(WatchRow).where(WatchRow.run_id == run_id)
        return {row.person_id: row.told for row in self._database.rows(query)}
