"""Projects and their members in SQL."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from backend.codec import from_plain, to_plain
from backend.errors import InvalidInput
from backend.people.accounts import utc_now
from backend.people.project import DEFAULT_PROJECT, Member, Project, Quota, Retention
from backend.people.rights import Role
from backend.storage.database import Database
from backend.storage.look_up import look_up
from backend.storage.tables.people_tables import MemberRow, PersonRow
from backend.storage.tables.tables import ProjectRow


class SqlProjects:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str) -> Project:
        row = ProjectRow(name=name, key=name.casefold(), archived=False, quota={}, retention={})
        row.created_at = utc_now()
        try:
            with self._database.write() as session:
                session.add(row)
                session.flush()
                return project_of(row)
        except IntegrityError:
            raise _taken(name) from None

    def get(self, project_id: int) -> Project:
        with self._database.read() as session:
            return project_of(look_up(session, ProjectRow, project_id))

    def find(self, name: str) -> Project | None:
        query = select(ProjectRow).where(ProjectRow.key == name.strip().casefold())
        with self._database.read() as session:
            row = session.scalar(query)
            return None if row is None else project_of(row)

    def list(self) -> Sequence[Project]:
        query = select(ProjectRow).order_by(ProjectRow.id != DEFAULT_PROJECT, ProjectRow.key)
        with self._database.read() as session:
            return [project_of(row) for row in session.scalars(query)]

    def keep(self, project: Project) -> None:
        try:
            with self._database.write() as session:
                row = look_up(session, ProjectRow, project.id)
                row.name, row.key = project.name, project.name.casefold()
                row.archived = project.archived
                row.quota = to_plain(Quota, project.quota)
                row.retention = to_plain(Retention, project.retention)
        except IntegrityError:
            raise _taken(project.name) from None

    def members(self, project_id: int) -> Sequence[Member]:
        query = (
            select(PersonRow.name, MemberRow.role)
            .join(MemberRow, MemberRow.person_id == PersonRow.id)
            .where(MemberRow.project_id == project_id)
            .order_by(PersonRow.key)
        )
        with self._database.read() as session:
            return [Member(name, role) for name, role in session.execute(query)]

    def set_role(self, project_id: int, person_id: int, role: Role | None) -> None:
        theirs = (MemberRow.project_id == project_id, MemberRow.person_id == person_id)
        with self._database.write() as session:
            session.execute(delete(MemberRow).where(*theirs))
            if role is not None:
                session.add(MemberRow(project_id=project_id, person_id=person_id, role=role))


def project_of(row: Any) -> Project:
    """The row, as an object or as columns."""
    return Project(
        id=row.id,
        name=row.name,
        archived=row.archived,
        created_at=row.created_at,
        quota=from_plain(Quota, row.quota),
        retention=from_plain(Retention, row.retention),
    )


def _taken(name: str) -> InvalidInput:
    return InvalidInput(f"a project is called {name!r} already", "Choose another name.")
