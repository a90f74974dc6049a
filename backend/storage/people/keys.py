"""Sessions, tokens and invitations in SQL, found by the digest of their secret."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, or_, select, update

from backend.people.person import Invitation, Person, Scope, Session, Token
from backend.storage.database import Database
from backend.storage.people.people import person_of
from backend.storage.tables.people_tables import InvitationRow, PersonRow, SessionRow, TokenRow


class SqlKeys:
    """Sessions, tokens and invitations, found by the digest of their secret."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_session(
        self, digest: str, person_id: int, client: str, now: datetime, expires: datetime
    ) -> None:
        row = SessionRow(digest=digest, person_id=person_id, client=client)
        row.created_at = row.seen_at = now
        row.expires_at = expires
        with self._database.write() as session:
            session.execute(delete(SessionRow).where(SessionRow.expires_at <= now))
            session.add(row)

    def session(self, digest: str, now: datetime) -> tuple[Session, Person] | None:
        """A live session of somebody who is not disabled."""
        query = (
            select(SessionRow, PersonRow)
            .join(PersonRow, PersonRow.id == SessionRow.person_id)
            .where(SessionRow.digest == digest, SessionRow.expires_at > now)
            .where(PersonRow.disabled.is_(False))
        )
        with self._database.read() as session:
            found = session.execute(query).first()
            return (_session(found[0]), person_of(found[1])) if found else None

    def seen(self, session_id: int, now: datetime, expires: datetime) -> None:
        change = update(SessionRow).where(SessionRow.id == session_id)
        with self._database.write() as session:
            session.execute(change.values(seen_at=now, expires_at=expires))

    def sessions(self, person_id: int, now: datetime) -> Sequence[Session]:
        """The live ones, the newest first."""
        query = (
            select(SessionRow)
            .where(SessionRow.person_id == person_id, SessionRow.expires_at > now)
            .order_by(SessionRow.id.desc())
        )
        with self._database.read() as session:
            return [_session(row) for row in session.scalars(query)]

    def end_session(self, person_id: int, session_id: int) -> bool:
        ending = delete(SessionRow).where(
            SessionRow.id == session_id, SessionRow.person_id == person_id
        )
        with self._database.write() as session:
            return bool(session.execute(ending.returning(SessionRow.id)).first())

    def add_token(
        self,
        digest: str,
        person_id: int,
        name: str,
        hint: str,
        scope: Scope,
        now: datetime,
        expires: datetime | None,
        project: int | None,
    ) -> Token:
        row = TokenRow(digest=digest, person_id=person_id, name=name, hint=hint, scope=scope)
        row.created_at, row.expires_at, row.project_id = now, expires, project
        with self._database.write() as session:
            session.add(row)
            session.flush()
            return _token(row)

    def token(self, digest: str, now: datetime) -> tuple[Token, Person] | None:
        """A live token of somebody who is not disabled; notes that it was used."""
        query = (
            select(TokenRow, PersonRow)
            .join(PersonRow, PersonRow.id == TokenRow.person_id)
            .where(TokenRow.digest == digest, PersonRow.disabled.is_(False))
            .where(or_(TokenRow.expires_at.is_(None), TokenRow.expires_at > now))
        )
        with self._database.read() as session:
            found = session.execute(query).first()
            result = (_token(found[0]), person_of(found[1])) if found else None
        if result is not None and _stale(result[0].used_at, now):
            with self._database.write() as session:
                used = update(TokenRow).where(TokenRow.digest == digest)
                session.execute(used.values(used_at=now))
        return result

    def tokens(self, person_id: int) -> Sequence[Token]:
        """The newest first."""
        query = select(TokenRow).where(TokenRow.person_id == person_id).order_by(TokenRow.id.desc())
        with self._database.read() as session:
            return [_token(row) for row in session.scalars(query)]

    def revoke_token(self, person_id: int, token_id: int) -> bool:
        ending = delete(TokenRow).where(TokenRow.id == token_id, TokenRow.person_id == person_id)
        with self._database.write() as session:
            return bool(session.execute(ending.returning(TokenRow.id)).first())

    def invite(self, digest: str, person_id: int | None, expires: datetime) -> None:
        """Older invitations of the same person end."""
        older = delete(InvitationRow).where(
            InvitationRow.person_id.is_(None)
            if person_id is None
            else InvitationRow.person_id == person_id
        )
        with self._database.write() as session:
            session.execute(older)
            session.add(InvitationRow(digest=digest, person_id=person_id, expires_at=expires))

    def invitation(self, digest: str, now: datetime) -> Invitation | None:
        """One that has neither been used nor run out."""
        query = (
            select(InvitationRow, PersonRow.name)
            .outerjoin(PersonRow, PersonRow.id == InvitationRow.person_id)
            .where(InvitationRow.digest == digest, InvitationRow.expires_at > now)
        )
        with self._database.read() as session:
            found = session.execute(query).first()
            return Invitation(found[1], found[0].expires_at) if found else None

    def take_invitation(self, digest: str, now: datetime) -> tuple[int | None] | None:
        """Use it up: (the person's id,), or None where it cannot be used. Of two who try at
        once one succeeds."""
        taking = delete(InvitationRow).where(
            InvitationRow.digest == digest, InvitationRow.expires_at > now
        )
        with self._database.write() as session:
            found = session.execute(taking.returning(InvitationRow.person_id)).first()
            return (found[0],) if found else None


def _stale(used_at: datetime | None, now: datetime) -> bool:
    """The use of a token is written down once a minute, not at every request."""
    return used_at is None or (now - used_at).total_seconds() > 60


def _session(row: SessionRow) -> Session:
    return Session(
        id=row.id,
        person_id=row.person_id,
        client=row.client,
        created_at=row.created_at,
        seen_at=row.seen_at,
        expires_at=row.expires_at,
    )


def _token(row: TokenRow) -> Token:
    return Token(
        id=row.id,
        person_id=row.person_id,
        name=row.name,
        hint=row.hint,
        scope=row.scope,
        created_at=row.created_at,
        expires_at=row.expires_at,
        used_at=row.used_at,
        project=row.project_id,
    )
