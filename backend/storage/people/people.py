"""People in SQL."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.errors import InvalidInput, NotFound, listed
from backend.people.person import LastAdministrator, Person
from backend.people.rights import Role
from backend.storage.database import Database
from backend.storage.look_up import look_up, value_of
from backend.storage.tables.people_tables import FailureRow, IdentityRow, PersonRow, SessionRow

FORGOTTEN = timedelta(days=1)
"""Failures are forgotten after so long, so that the table does not grow with every guess."""


class SqlPeople:
    """Names are told apart without regard to case."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, role: Role) -> Person:
        """Raises `InvalidInput` where somebody has the name."""
        row = PersonRow(name=name, key=name.casefold(), role=role, created_at=datetime.now(UTC))
        try:
            with self._database.write() as session:
                session.add(row)
                session.flush()
                session.refresh(row)
                return person_of(row)
        except IntegrityError:
            raise InvalidInput(
                f"the name {name!r} is already taken", "Choose another name."
            ) from None

    def get(self, person_id: int) -> Person:
        """Raises `NotFound`."""
        return person_of(self._database.get(PersonRow, person_id))

    def find(self, name: str) -> tuple[Person, str | None] | None:
        """The person of this name with the hash of the password."""
        query = select(PersonRow).where(PersonRow.key == name.strip().casefold())
        row = self._database.first(query)
        return None if row is None else (person_of(row), row.password)

    def named(self, name: str) -> Person:
        """Raises `NotFound`."""
        found = self.find(name)
        if found is None:
            raise NotFound(f"nobody is called {name!r}", listed("People", "user list"))
        return found[0]

    def list(self) -> Sequence[Person]:
        """By name."""
        return [
            person_of(row) for row in self._database.rows(select(PersonRow).order_by(PersonRow.key))
        ]

    def of_identity(self, issuer: str, subject: str) -> Person | None:
        """Whom a provider's subject has been tied to."""
        query = (
            select(PersonRow)
            .join(IdentityRow, IdentityRow.person_id == PersonRow.id)
            .where(IdentityRow.issuer == issuer, IdentityRow.subject == subject)
        )
        row = self._database.first(query)
        return None if row is None else person_of(row)

    def tie(self, person_id: int, issuer: str, subject: str) -> None:
        """From now on that subject is this person. Raises `InvalidInput` where it is another."""
        row = IdentityRow(issuer=issuer, subject=subject, person_id=person_id)
        try:
            with self._database.write() as session:
                look_up(session, PersonRow, person_id).joined = True
                session.add(row)
        except IntegrityError:
            raise InvalidInput(f"{subject} of {issuer} already belongs to another person") from None

    def set_password(self, person_id: int, password: str) -> None:
        """Keep the hash `password`, and end every session of theirs."""
        with self._database.write() as session:
            row = look_up(session, PersonRow, person_id)
            row.password, row.joined = password, True
            _end_sessions(session, person_id)

    def change(self, person_id: int, role: Role | None, disabled: bool | None) -> None:
        """None leaves a thing as it is. Whoever is disabled loses every session. Raises
        `LastAdministrator` where nobody would be left who manages."""
        with self._database.write() as session:
            everybody = session.scalars(select(PersonRow).with_for_update()).all()
            row = look_up(session, PersonRow, person_id)
            managed = _manages(row)
            row.role = role or row.role
            row.disabled = row.disabled if disabled is None else disabled
            if managed and not any(_manages(each) for each in everybody):
                raise LastAdministrator(f"account {row.name} is the last administrator's")
            if row.disabled:
                _end_sessions(session, person_id)

    def failed(self, tries: str, now: datetime) -> int:
        """Count one more failure to sign in under `tries`; how many there are in a row."""
        with self._database.write() as session:
            session.execute(delete(FailureRow).where(FailureRow.failed_at < now - FORGOTTEN))
            row = session.get(FailureRow, tries, with_for_update=True)
            row = row or FailureRow(key=tries, failures=0)
            row.failures += 1
            row.failed_at = now
            session.add(row)
            return row.failures

    def lock(self, tries: str, until: datetime) -> None:
        with self._database.write() as session:
            row = session.get(FailureRow, tries)
            if row is not None:
                row.locked_until = until

    def locked_until(self, tries: str) -> datetime | None:
        with self._database.read() as session:
            row = session.get(FailureRow, tries)
            return row.locked_until if row else None

    def unlock(self, tries: str) -> None:
        """Forget the failures."""
        with self._database.write() as session:
            session.execute(delete(FailureRow).where(FailureRow.key == tries))


def person_of(row: PersonRow) -> Person:
    """Without the password's hash, which leaves the store for a comparison alone."""
    return value_of(Person, row, projects={m.project_id: m.role for m in row.memberships})


def _manages(row: PersonRow) -> bool:
    return row.role is Role.ADMIN and not row.disabled and row.joined


def _end_sessions(session: Session, person_id: int) -> None:
    session.execute(delete(SessionRow).where(SessionRow.person_id == person_id))
