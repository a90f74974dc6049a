"""What projects hold and what waits, in SQL: of all of them, whoever asks."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, func, select

from backend.people.project import Project
from backend.runs.dispatch.fairness import ProjectLoad, Waiting
from backend.runs.states import RunState
from backend.storage.database import Database
from backend.storage.look_up import value_of
from backend.storage.nodes.holdings import of_live_runs
from backend.storage.tables.base import Base
from backend.storage.tables.node_tables import HeldDeviceRow
from backend.storage.tables.tables import RunRow
from backend.storage.tables.values import Few

RUNS = Base.metadata.tables["runs"]
PROJECTS = Base.metadata.tables["projects"]
QUEUED = Few(RUNS.c.state == RunState.QUEUED)


class SqlLoads:
    """Of every project, whoever asks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def loads(self) -> Mapping[int, ProjectLoad]:
        """By project."""
        queued = select(RUNS.c.project_id, func.count()).where(QUEUED)
        with self._database.plain(reading=True) as connection:
            waiting: dict[int, int] = dict(
                connection.execute(queued.group_by(RUNS.c.project_id)).all()
            )
            holdings = held(connection)
            return {
                row.id: ProjectLoad(
                    value_of(Project, row),
                    len({run for run, _ in holdings.get(row.id, ())}),
                    len(holdings.get(row.id, ())),
                    waiting.get(row.id, 0),
                    _served(connection, row.id) if row.id in waiting else None,
                )
                for row in connection.execute(select(PROJECTS))
            }

    def waiting(self, each: int) -> Sequence[Waiting]:
        """The oldest queued runs, up to `each` of every project, by their number."""
        place = func.row_number().over(partition_by=RUNS.c.project_id, order_by=RUNS.c.id)
        queued = select(RUNS.c.id, RUNS.c.project_id, place.label("place")).where(QUEUED).subquery()
        query = select(queued.c.id, queued.c.project_id).where(queued.c.place <= each)
        with self._database.plain(reading=True) as connection:
            return [Waiting(*row) for row in connection.execute(query.order_by(queued.c.id))]


def _served(connection: Connection, project_id: int) -> datetime | None:
    """In a project runs are started in their order, so its newest that was started was last."""
    started = select(RUNS.c.started_at).where(
        RUNS.c.project_id == project_id, RUNS.c.started_at.is_not(None)
    )
    return connection.scalar(started.order_by(RUNS.c.id.desc()).limit(1))


def held(connection: Connection) -> dict[int, list[tuple[int, str]]]:
    """By project, (run, node) of every device that live runs hold."""
    query = of_live_runs(RunRow.project_id, HeldDeviceRow.run_id, HeldDeviceRow.node)
    found: dict[int, list[tuple[int, str]]] = {}
    for project, run, node in connection.execute(query):
        found.setdefault(project, []).append((run, node))
    return found
