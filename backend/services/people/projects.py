"""Projects: made, renamed, archived, and who belongs to each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from backend.errors import InvalidInput, NotFound
from backend.people.project import DEFAULT_PROJECT, Member, Project, Quota, Retention
from backend.people.rights import Right, Role
from backend.services.people.access import Access
from backend.services.people.accounts import proper_name
from backend.storage.look_up import PROJECTS
from backend.storage.people.people import SqlPeople
from backend.storage.people.projects import SqlProjects
from backend.whole import is_whole

ROLES = (Role.VIEWER, Role.EDITOR, Role.ADMIN)
"""What a member of a project can be."""


@dataclass(frozen=True)
class ProjectService:
    """What is not seen is not there; who sees a project but may not change it is told so."""

    _store: SqlProjects
    _people: SqlPeople
    _access: Access

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
            raise NotFound(f"no project {name!r}", PROJECTS)
        return found

    def add(self, name: str) -> Project:
        """A new one, which its maker administers. Raises `InvalidInput`."""
        name = proper_name(name)
        self._access.require(Right.MANAGE, "create", f"project {name}")
        return self._store.add(name)

    def rename(self, project_id: int, name: str) -> Project:
        """Raises `InvalidInput`."""
        proper = proper_name(name)
        return self._change(project_id, "rename", lambda old: replace(old, name=proper))

    def archive(self, project_id: int, archived: bool = True) -> Project:
        """Archive or restore it: what is in it stays. Raises `InvalidInput`."""
        if project_id == DEFAULT_PROJECT:
            raise InvalidInput(
                "the first project cannot be archived", "Rename it, or archive another one."
            )
        verb = "archive" if archived else "restore"
        return self._change(project_id, verb, lambda old: replace(old, archived=archived))

    def limit(self, project_id: int, quota: Quota) -> Project:
        """What it may have at once: decided in the team, not in the project."""
        found = self._store.get(project_id)
        self._access.check(Right.MANAGE, "limit", f"project {found.name}")
        checked = checked_quota(quota)
        return self._change(project_id, "limit", lambda old: replace(old, quota=checked))

    def retain(self, project_id: int, retention: Retention) -> Project:
        """How long its ended runs keep logs, timelines and checkpoints. Raises `InvalidInput`."""
        for number in (retention.days, retention.last):
            if number is not None and not 0 <= number <= 100_000:
                raise InvalidInput(
                    f"{number} is not a number of days or runs to keep", "Give 0 to 100,000."
                )
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
                "in the first project everybody has their team role",
                "Change it on the People page.",
            )
        if role is not None and role not in ROLES:
            raise InvalidInput(
                f"{role.value} is not a role in a project", f"Use {', '.join(ROLES)}."
            )
        found = self._store.get(project_id)
        word = f"project {found.name}: {name} {role.value if role else 'out'}"
        self._access.require(Right.MANAGE, "change", word, project_id)
        self._store.set_role(project_id, self._people.named(name).id, role)

    def _change(self, project_id: int, verb: str, changed: Callable[[Project], Project]) -> Project:
        found = self._store.get(project_id)
        self._access.require(Right.MANAGE, verb, f"project {found.name}", project_id)
        self._store.keep(changed(found))
        return self._store.get(project_id)


def checked_quota(quota: Quota) -> Quota:
    """Raises `InvalidInput` on a number that is out of range."""
    for number in (quota.running, quota.devices, quota.queued, quota.bytes):
        if number is not None and not 0 <= number < 2**62:
            raise InvalidInput(f"a limit of {number} is not possible", "Give 0 or more, or none.")
    if not 0.01 <= quota.share <= 1000:
        raise InvalidInput(f"a share of {quota.share:g} is not possible", "Give 0.01 to 1000.")
    return quota
