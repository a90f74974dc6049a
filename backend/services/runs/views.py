"""Views of the list of runs that people keep, for themselves or for their project."""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.errors import NotFound
from backend.people.rights import Right
from backend.runs.history.views import ListView, SavedView, view_name
from backend.services.people.access import Access
from backend.storage.look_up import VIEWS
from backend.storage.runs.views import SqlViews

NAMELESS = "-"


@dataclass(frozen=True)
class ViewService:
    """`listed` shows the chosen project's, `store` all that the actor sees. Whoever sees a project
    may keep views for themselves; those who edit there also shared ones."""

    _store: SqlViews
    _listed: SqlViews
    _access: Access

    def save(self, name: str, view: ListView, shared: bool = False) -> SavedView:
        """In the chosen project. Raises `InvalidInput` on a bad name, and `ViewNameTaken`."""
        title, project = view_name(name), self._access.home
        self._check(shared, "save", f"view {title}", project)
        return self._store.save(title, view, project, "" if shared else self._owner)

    def delete(self, view_id: int) -> SavedView:
        """What it was. Raises `NotFound`."""
        found = self.get(view_id)
        self._check(found.is_shared, "delete", f"view {view_id}", found.project_id)
        self._store.delete(view_id)
        return found

    def get(self, view_id: int) -> SavedView:
        """Raises `NotFound`, also of what others keep for themselves."""
        return self._store.get(view_id, self._owner)

    def list(self) -> Sequence[SavedView]:
        """By name: one's own and those that are shared."""
        return self._listed.list(self._owner)

    def named(self, name: str) -> SavedView:
        """One's own of this name, else the shared one. Raises `NotFound`."""
        key = name.strip().casefold()
        found = sorted((v for v in self.list() if v.name.casefold() == key), key=_last_if_shared)
        if not found:
            raise NotFound(f"no view {name!r:.100}", VIEWS)
        return found[0]

    @property
    def _owner(self) -> str:
        """Never "", as the machine's own may be: that would share them."""
        return self._access.actor.name or NAMELESS

    def _check(self, shared: bool, action: str, target: str, project: int) -> None:
        access = self._access
        if shared:
            return access.require(Right.EDIT, action, target, project)
        if access.actor.token and access.actor.reads_only:  # it is somebody's to read with
            return access.check(Right.EDIT, action, target, project)
        return access.check(Right.VIEW, action, target, project)


def _last_if_shared(view: SavedView) -> bool:
    return view.is_shared
