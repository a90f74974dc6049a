"""Stars, tags, notes and names of runs in SQL."""

from collections.abc import Sequence

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from backend.runs.history.labels import Change
from backend.storage.database import Database
from backend.storage.tables.tables import RunRow, TagRow


class SqlLabels:
    def __init__(self, database: Database) -> None:
        self._database = database

    def projects(self, run_ids: Sequence[int]) -> Sequence[int]:
        """Those that the runs belong to, ascending. Unknown ids are left out."""
        query = select(RunRow.project_id).where(RunRow.id.in_(run_ids)).distinct()
        return self._database.rows(query.order_by(RunRow.project_id))

    def change(self, run_ids: Sequence[int], change: Change) -> int:
        """Change these runs in one transaction; how many there are. Unknown ids are left out."""
        plain = {"starred": change.starred, "note": change.note, "name": change.name}
        values = {name: value for name, value in plain.items() if value is not None}
        query = select(RunRow.id).where(RunRow.id.in_(run_ids)).order_by(RunRow.id)
        with self._database.write() as session:
            ids = session.scalars(query.with_for_update()).all()
            if ids and values:
                session.execute(
                    update(RunRow).where(RunRow.id.in_(ids)).values(**values),
                    execution_options={"synchronize_session": False},
                )
            _change_tags(session, ids, change)
            return len(ids)

    def tags(self) -> Sequence[str]:
        """Every tag that some run has, by name."""
        return self._database.rows(select(TagRow.tag).distinct().order_by(TagRow.tag))

    def owners(self) -> Sequence[str]:
        """Everybody who asked for a run, by name."""
        query = select(RunRow.owner).distinct().where(RunRow.owner != "").order_by(RunRow.owner)
        return self._database.rows(query)


def _change_tags(session: Session, ids: Sequence[int], change: Change) -> None:
    """`tags` replaces all; `add` and `remove` change some."""
    mine = TagRow.run_id.in_(ids)
    if change.tags is not None:
        session.execute(delete(TagRow).where(mine))
    gone = (*change.remove, *change.add)
    if gone:
        session.execute(delete(TagRow).where(mine, TagRow.tag.in_(gone)))
    new = dict.fromkeys((*(change.tags or ()), *change.add))
    rows = [{"run_id": id_, "tag": tag} for id_ in ids for tag in new]
    if rows:
        session.execute(insert(TagRow), rows)
