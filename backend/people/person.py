"""People, and what lets them in: sessions, tokens, invitations. Secrets are kept as digests."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from backend.errors import StageflowError
from backend.people.project import DEFAULT_PROJECT
from backend.people.rights import RIGHTS, Actor, Right, Role


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody of the team. `joined` is False until they have come in once; `projects` are those
    that they are a member of, with their role there."""

    id: int
    name: str
    role: Role
    disabled: bool
    joined: bool
    created_at: datetime
    projects: Mapping[int, Role] = field(default_factory=dict)

    def actor(self, rights: frozenset[Right] | None = None, project: int | None = None) -> Actor:
        """This person acting, with all rights of their roles or those also in `rights`, and in
        all of their projects or one."""
        most = frozenset(Right) if rights is None else rights
        given = {number: RIGHTS[role] & most for number, role in self._roles().items()}
        if project is not None:
            everywhere = RIGHTS[self.role] & most if self.role is Role.ADMIN else frozenset()
            given = {project: given.get(project, frozenset()) | everywhere}
            most = most & {Right.VIEW}
        elif self.role is Role.ADMIN:
            return Actor(self.name, self.role, RIGHTS[self.role] & most, self.id)
        given = {number: held for number, held in given.items() if held}
        return Actor(self.name, self.role, RIGHTS[self.role] & most, self.id, given)

    def _roles(self) -> Mapping[int, Role]:
        """The team's role holds in the first project, except a guest's."""
        own = {} if self.role is Role.GUEST else {DEFAULT_PROJECT: self.role}
        return {**self.projects, **own}


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
    """A secret of one person's for programs. `hint` is its beginning, to know it again;
    `project` the only one that it opens, None = all of the person's."""

    id: int
    person_id: int
    name: str
    hint: str
    scope: Scope
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    project: int | None = None


@dataclass(frozen=True, slots=True)
class Invitation:
    """A link that can be used once to set a password. Without a name the first administrator
    chooses one."""

    name: str | None
    expires_at: datetime


class LastAdministrator(StageflowError):
    """Nobody would be left who may decide about people."""

    advice = "Make somebody else an administrator first."
