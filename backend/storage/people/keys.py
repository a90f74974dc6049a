"""Sessions, tokens and invitations in SQL, found by the digest of their secret."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import ColumnElement, delete, or_, select, update

from backend.people.person import Invitation, Person, Scope, Session, Token
from backend.storage.database import Database
from backend.storage.look_up import value_of
from backend.storage.people.people import person_of
from backend.storage.tables.people_tables import InvitationRow, PersonRow, SessionRow, TokenRow

STILL_USED = timedelta(minutes=1)
"""The use of a token is written down once in so long, not at every request."""
Key = TypeVar("Key", SessionRow, TokenRow)


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
        found = self._with_person(SessionRow, digest, SessionRow.expires_at > now)
        return (value_of(Session, found[0]), person_of(found[1])) if found else None

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
        return [value_of(Session, row) for row in self._database.rows(query)]

    def end_session(self, person_id: int, session_id: int) -> bool:
        return self._ended(SessionRow, person_id, session_id)

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
        is_live = or_(TokenRow.expires_at.is_(None), TokenRow.expires_at > now)
        found = self._with_person(TokenRow, digest, is_live)
        if found is None:
            return None
        used_at = found[0].used_at
        if used_at is None or now - used_at > STILL_USED:
            with self._database.write() as session:
                used = update(TokenRow).where(TokenRow.digest == digest)
                session.execute(used.values(used_at=now))
        return _token(found[0]), person_of(found[1])

    def tokens(self, person_id: int) -> Sequence[Token]:
        """The newest first."""
        query = select(TokenRow).where(TokenRow.person_id == person_id).order_by(TokenRow.id.desc())
        return [_token(row) for row in self._database.rows(query)]

    def revoke_token(self, person_id: int, token_id: int) -> bool:
        return self._ended(TokenRow, person_id, token_id)

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

    def _with_person(
        self, kind: type[Key], digest: str, is_live: ColumnElement[bool]
    ) -> tuple[Key, PersonRow] | None:
        """The key of this digest and its owner, who is not disabled."""
        query = select(kind, PersonRow).join(PersonRow, PersonRow.id == kind.person_id)
        query = query.where(kind.digest == digest, is_live, PersonRow.disabled.is_(False))
        with self._database.read() as session:
            found = session.execute(query).first()
            return (found[0], found[1]) if found else None

    def _ended(self, kind: type[Key], person_id: int, key_id: int) -> bool:
        """Delete a person's own key; False where there is no such key."""
        ending = delete(kind).where(kind.id == key_id, kind.person_id == person_id)
        with self._database.write() as session:
            return bool(session.execute(ending.returning(kind.id)).first())


def _token(row: TokenRow) -> Token:
    return value_of(Token, row, project=row.project_id)
