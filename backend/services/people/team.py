"""The team: who belongs to it with which role, and the tokens of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from backend.errors import InvalidInput, NotFound
from backend.people.person import Person, Scope, Token
from backend.people.rights import Right, Role
from backend.people.secret import digest, new_secret
from backend.services.people.access import Access, NotAllowed
from backend.services.people.accounts import INVITATION, Clock, proper_name, utc_now
from backend.storage.look_up import PROJECTS
from backend.storage.people.keys import SqlKeys
from backend.storage.people.people import SqlPeople

PREFIX = "sf_"
"""Tokens begin so, for people and for programs that look for leaked secrets."""
HINT = 8
MAX_DAYS = 366


@dataclass(frozen=True)
class TeamService:
    """What administrators decide about people. Every method raises `NotAllowed`."""

    _people: SqlPeople
    _keys: SqlKeys
    _access: Access
    _clock: Clock = utc_now

    def check(self) -> None:
        """Goes on where this actor may decide about people."""
        self._access.check(Right.MANAGE, "list", "people")

    def list(self) -> Sequence[Person]:
        """Everybody, by name."""
        self.check()
        return self._people.list()

    def add(self, name: str, role: Role) -> tuple[Person, str]:
        """Somebody new and the secret of their invitation. Raises `InvalidInput`."""
        name = proper_name(name)
        self._access.require(Right.MANAGE, "invite", f"{name} as {role.value}")
        person = self._people.add(name, role)
        return person, self._invite(person)

    def invite(self, name: str) -> str:
        """The secret of a new link for somebody who is there: their password is forgotten or
        they never joined. Raises `NotFound`."""
        person = self._people.named(name)
        self._access.require(Right.MANAGE, "invite", person.name)
        return self._invite(person)

    def change(self, name: str, role: Role | None = None, disabled: bool | None = None) -> Person:
        """Another role, or in or out. Raises `NotFound`, `LastAdministrator`."""
        person = self._people.named(name)
        words = [role.value] if role else []
        words += [] if disabled is None else ["disabled" if disabled else "enabled"]
        self._access.require(Right.MANAGE, "change", f"{person.name}: {' and '.join(words)}")
        self._people.change(person.id, role, disabled)
        return self._people.get(person.id)

    def _invite(self, person: Person) -> str:
        secret = new_secret()
        self._keys.invite(digest(secret), person.id, self._clock() + INVITATION)
        return secret


@dataclass(frozen=True)
class TokenService:
    """One person's tokens, made and ended by that person."""

    _keys: SqlKeys
    _access: Access
    _clock: Clock = utc_now

    def list(self) -> Sequence[Token]:
        """The newest first."""
        return self._keys.tokens(self._person())

    def add(
        self, name: str, scope: Scope, days: int | None = 90, project: int | None = None
    ) -> tuple[Token, str]:
        """A token, for all projects of this person or one, and its secret, which is shown this
        once. Raises `InvalidInput`, and `NotFound` for a project that they do not see."""
        name = proper_name(name)
        if days is not None and not 0 < days <= MAX_DAYS:
            raise InvalidInput(f"{days} days", f"A token lasts 1 to {MAX_DAYS} days.")
        actor = self._access.actor
        if project is not None and not actor.may(Right.VIEW, project):
            raise NotFound(f"no project {project}", PROJECTS)
        if Right.EDIT in scope.rights and not self._writes_in(project):
            self._access.check(Right.EDIT, "create", "a token that may write")
        secret = PREFIX + new_secret()
        now = self._clock()
        expires = None if days is None else now + timedelta(days=days)
        person = self._person()
        self._access.require(Right.VIEW, "create", f"token {name} ({scope.value})")
        token = self._keys.add_token(
            digest(secret), person, name, secret[: len(PREFIX) + HINT], scope, now, expires, project
        )
        return token, secret

    def _writes_in(self, project: int | None) -> bool:
        """Whether there is anything that such a token of theirs could change."""
        actor = self._access.actor
        if project is not None or actor.visible is None:
            return actor.may(Right.EDIT, project)
        return any(actor.may(Right.EDIT, each) for each in actor.visible)

    def revoke(self, token_id: int) -> None:
        """End a token at once. Raises `NotFound`."""
        if not self._keys.revoke_token(self._person(), token_id):
            raise NotFound(f"you have no token {token_id}")
        self._access.require(Right.VIEW, "revoke", f"token {token_id}")

    def _person(self) -> int:
        person_id = self._access.actor.person_id
        if person_id is None:
            raise NotAllowed(
                "tokens belong to people who sign in",
                "Without sign-in, set STAGEFLOW_API_TOKEN.",
            )
        return person_id
