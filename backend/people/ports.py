"""What accounts need from the outside: a store of people and of what lets them in."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from backend.people.person import Invitation, Person, Scope, Session, Token
from backend.people.rights import Role


class PersonStore(Protocol):
    """Names are told apart without regard to case."""

    def add(self, name: str, role: Role) -> Person:
        """Raises `InvalidInput` where somebody has the name."""
        ...

    def get(self, person_id: int) -> Person:
        """Raises `NotFound`."""
        ...

    def find(self, name: str) -> tuple[Person, str | None] | None:
        """The person of this name with the hash of the password."""
        ...

    def list(self) -> Sequence[Person]:
        """By name."""
        ...

    def of_identity(self, issuer: str, subject: str) -> Person | None:
        """Whom a provider's subject has been tied to."""
        ...

    def tie(self, person_id: int, issuer: str, subject: str) -> None:
        """From now on that subject is this person. Raises `InvalidInput` where it is another."""
        ...

    def set_password(self, person_id: int, password: str) -> None:
        """Keep the hash `password`, and end every session of theirs."""
        ...

    def change(self, person_id: int, role: Role | None, disabled: bool | None) -> None:
        """None leaves a thing as it is. Whoever is disabled loses every session. Raises
        `LastAdministrator` where nobody would be left who manages."""
        ...

    def failed(self, name: str, now: datetime) -> int:
        """Count one more failure to sign in under `name`; how many there are in a row."""
        ...

    def lock(self, name: str, until: datetime) -> None: ...

    def locked_until(self, name: str) -> datetime | None: ...

    def unlock(self, name: str) -> None:
        """Forget the failures."""
        ...


class KeyStore(Protocol):
    """Sessions, tokens and invitations, found by the digest of their secret."""

    def add_session(
        self, digest: str, person_id: int, client: str, now: datetime, expires: datetime
    ) -> None: ...

    def session(self, digest: str, now: datetime) -> tuple[Session, Person] | None:
        """A live session of somebody who is not disabled."""
        ...

    def seen(self, session_id: int, now: datetime, expires: datetime) -> None: ...

    def sessions(self, person_id: int, now: datetime) -> Sequence[Session]:
        """The live ones, the newest first."""
        ...

    def end_session(self, person_id: int, session_id: int) -> bool: ...

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
    ) -> Token: ...

    def token(self, digest: str, now: datetime) -> tuple[Token, Person] | None:
        """A live token of somebody who is not disabled; notes that it was used."""
        ...

    def tokens(self, person_id: int) -> Sequence[Token]:
        """The newest first."""
        ...

    def revoke_token(self, person_id: int, token_id: int) -> bool: ...

    def invite(self, digest: str, person_id: int | None, expires: datetime) -> None:
        """Older invitations of the same person end."""
        ...

    def invitation(self, digest: str, now: datetime) -> Invitation | None:
        """One that has neither been used nor run out."""
        ...

    def take_invitation(self, digest: str, now: datetime) -> tuple[int | None] | None:
        """Use it up: (the person's id,), or None where it cannot be used. Of two who try at
        once one succeeds."""
        ...
