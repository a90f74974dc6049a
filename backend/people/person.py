"""People, and what lets them in: sessions, tokens, invitations. Secrets are kept as digests."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from backend.people.rights import RIGHTS, Actor, Right, Role


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody of the team. `joined` is False until they have come in once."""

    id: int
    name: str
    role: Role
    disabled: bool
    joined: bool
    created_at: datetime

    def actor(self, rights: frozenset[Right] | None = None) -> Actor:
        """This person acting, with all rights of the role or those also in `rights`."""
        own = RIGHTS[self.role]
        return Actor(self.name, self.role, own if rights is None else own & rights, self.id)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who somebody is to an identity provider. `subject` never changes there; `name` and the
    `email` that the provider has verified ("" without one) may."""

    issuer: str
    subject: str
    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Session:
    """One browser in which somebody is signed in. `client` is what it calls itself."""

    id: int
    person_id: int
    client: str
    created_at: datetime
    seen_at: datetime
    expires_at: datetime


class Scope(StrEnum):
    """What a token may be used for."""

    READ = "read"
    WRITE = "write"

    @property
    def rights(self) -> frozenset[Right]:
        """A token never manages people."""
        return frozenset({Right.VIEW} if self is Scope.READ else {Right.VIEW, Right.EDIT})


@dataclass(frozen=True, slots=True)
class Token:
    """A secret of one person's for programs. `hint` is its beginning, to know it again."""

    id: int
    person_id: int
    name: str
    hint: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link that can be used once to set a password. Without a name the first administrator
    chooses one."""

    name: str | None
    expires_at: datetime
