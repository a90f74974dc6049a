"""Projects and their members in SQL."""

from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from backend.codec import to_plain
from backend.errors import InvalidInput
from backend.people.project import DEFAULT_PROJECT, Member, Project, Quota, Retention
from backend.people.rights import Role
from backend.storage.database import Database
from backend.storage.look_up import look_up, value_of
from backend.storage.tables.people_tables import MemberRow, PersonRow
from backend.storage.tables.tables import ProjectRow


class SqlProjects:
    """Names are told apart without regard to case."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str) -> Project:
        """Raises `InvalidInput` where a project has the name."""
        row = ProjectRow(name=name, key=name.casefold(), archived=False, quota={}, retention={})
        row.created_at = datetime.now(UTC)
        try:
            with self._database.write() as session:
                session.add(row)
                session.flush()
                return value_of(Project, row)
        except IntegrityError:
            raise _taken(name) from None

    def get(self, project_id: int) -> Project:
        """Raises `NotFound`."""
        return value_of(Project, self._database.get(ProjectRow, project_id))

    def find(self, name: str) -> Project | None:
        query = select(ProjectRow).where(ProjectRow.key == name.strip().casefold())
        row = self._database.first(query)
        return None if row is None else value_of(Project, row)

    def list(self) -> Sequence[Project]:
        """The first one first, the others by name."""
        query = select(ProjectRow).order_by(ProjectRow.id != DEFAULT_PROJECT, ProjectRow.key)
        return [value_of(Project, row) for row in self._database.rows(query)]

    def keep(self, project: Project) -> None:
        """Write down what has changed. Raises `InvalidInput` where another has the name."""
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
        """By name."""
        query = (
            select(PersonRow.name, MemberRow.role)
            .join(MemberRow, MemberRow.person_id == PersonRow.id)
            .where(MemberRow.project_id == project_id)
            .order_by(PersonRow.key)
        )
        with self._database.read() as session:
            return [Member(name, role) for name, role in session.execute(query)]

    def set_role(self, project_id: int, person_id: int, role: Role | None) -> None:
        """Give a person a role in a project; None takes it away."""
        theirs = (MemberRow.project_id == project_id, MemberRow.person_id == person_id)
        with self._database.write() as session:
            session.execute(delete(MemberRow).where(*theirs))
            if role is not None:
                session.add(MemberRow(project_id=project_id, person_id=person_id, role=role))


def _taken(name: str) -> InvalidInput:
    return InvalidInput(f"the project name {name!r} is already taken", "Choose another name.")
