"""Projects: made, renamed, put away, and who belongs to each."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from backend.errors import InvalidInput, NotFound, StageflowError
from backend.people.accounts import proper_name
from backend.people.audit import Access
from backend.people.person import Person
from backend.people.ports import PersonStore
from backend.people.project import DEFAULT_PROJECT, Member, Project, Quota, Retention
from backend.people.rights import Right, Role
from backend.whole import is_whole

ROLES = (Role.VIEWER, Role.EDITOR, Role.ADMIN)
"""What a member of a project can be."""


class ProjectArchived(StageflowError):
    """Something new was to come into a project that is put away."""

    advice = "Choose another project, or take it out again: stageflow project restore NAME"


class QuotaReached(StageflowError):
    """A project would have more than it may have at once."""

    advice = "Wait, delete what is not needed, or ask an administrator for more."


class ProjectStore(Protocol):
    """Names are told apart without regard to case."""

    def add(self, name: str) -> Project:
        """Raises `InvalidInput` where a project has the name."""
        ...

    def get(self, project_id: int) -> Project:
        """Raises `NotFound`."""
        ...

    def find(self, name: str) -> Project | None: ...

    def list(self) -> Sequence[Project]:
        """The first one first, the others by name."""
        ...

    def keep(self, project: Project) -> None:
        """Write down what has changed. Raises `InvalidInput` where another has the name."""
        ...

    def members(self, project_id: int) -> Sequence[Member]:
        """By name."""
        ...

    def set_role(self, project_id: int, person_id: int, role: Role | None) -> None:
        """Give a person a role in a project; None takes it away."""
        ...


class ProjectService:
    """What is not seen is not there; who sees a project but may not change it is told so."""

    def __init__(self, store: ProjectStore, people: PersonStore, access: Access) -> None:
        self._store = store
        self._people = people
        self._access = access

    def list(self) -> Sequence[Project]:
        """Those that this actor sees, the first one first, the others by name."""
        return self._store.list()

    def get(self, project_id: int) -> Project:
        """Raises `NotFound`."""
        return self._store.get(project_id)

    def named(self, name: str) -> Project:
        """By its name, or its number. Raises `NotFound`."""
        found = self._store.find(name)
        if found is None and is_whole(name):
            return self._store.get(int(name))
        if found is None:
            raise NotFound(f"no project {name!r}", "List them: stageflow project list")
        return found

    def add(self, name: str) -> Project:
        """A new one, which its maker administers. Raises `InvalidInput`."""
        name = proper_name(name)
        self._access.require(Right.MANAGE, "make", f"project {name}")
        return self._store.add(name)

    def rename(self, project_id: int, name: str) -> Project:
        """Raises `InvalidInput`."""
        proper = proper_name(name)
        return self._change(project_id, "rename", lambda old: replace(old, name=proper))

    def archive(self, project_id: int, archived: bool = True) -> Project:
        """Put it away, or take it out again: what is in it stays. Raises `InvalidInput`."""
        if project_id == DEFAULT_PROJECT:
            raise InvalidInput("the first project stays", "Make others, and rename this one.")
        verb = "archive" if archived else "restore"
        return self._change(project_id, verb, lambda old: replace(old, archived=archived))

    def limit(self, project_id: int, quota: Quota) -> Project:
        """What it may have at once: decided in the team, not in the project."""
        self._store.get(project_id)
        self._access.check(Right.MANAGE, "limit", f"project {project_id}")
        checked = checked_quota(quota)
        return self._change(project_id, "limit", lambda old: replace(old, quota=checked))

    def retain(self, project_id: int, retention: Retention) -> Project:
        """How long its ended runs keep logs, timelines and checkpoints. Raises `InvalidInput`."""
        for number in (retention.days, retention.last):
            if number is not None and not 0 <= number <= 100_000:
                raise InvalidInput(f"{number} days or runs", "Give 0 to 100,000.")
        verb = "set retention of"
        return self._change(project_id, verb, lambda old: replace(old, retention=retention))

    def members(self, project_id: int) -> Sequence[Member]:
        """By name. The first project's are the people of the team."""
        self._store.get(project_id)
        if project_id == DEFAULT_PROJECT:
            everybody = [p for p in self._people.list() if not p.disabled]
            return [Member(p.name, p.role) for p in everybody if p.role is not Role.GUEST]
        return self._store.members(project_id)

    def set_role(self, project_id: int, name: str, role: Role | None) -> None:
        """Give somebody a role in it; None lets them go. Raises `NotFound`, `InvalidInput`."""
        if project_id == DEFAULT_PROJECT:
            raise InvalidInput(
                "in the first project the roles of the team hold", "Change it on the People page."
            )
        if role is not None and role not in ROLES:
            raise InvalidInput(f"{role.value} is no role in a project", f"Use {', '.join(ROLES)}.")
        self._store.get(project_id)
        word = f"project {project_id}: {name} {role.value if role else 'out'}"
        self._access.require(Right.MANAGE, "change", word, project_id)
        self._store.set_role(project_id, self._person(name).id, role)

    def _change(self, project_id: int, verb: str, changed: Callable[[Project], Project]) -> Project:
        found = self._store.get(project_id)
        self._access.require(Right.MANAGE, verb, f"project {found.name}", project_id)
        self._store.keep(changed(found))
        return self._store.get(project_id)

    def _person(self, name: str) -> Person:
        found = self._people.find(name)
        if found is None:
            raise NotFound(f"nobody is called {name!r}", "List everybody: stageflow user list")
        return found[0]


def checked_quota(quota: Quota) -> Quota:
    """Raises `InvalidInput` on a number that is out of range."""
    for number in (quota.running, quota.devices, quota.queued, quota.bytes):
        if number is not None and not 0 <= number < 2**62:
            raise InvalidInput(f"a limit of {number}", "Give 0 or more, or none.")
    if not 0.01 <= quota.share <= 1000:
        raise InvalidInput(f"a share of {quota.share:g}", "Give 0.01 to 1000.")
    return quota
