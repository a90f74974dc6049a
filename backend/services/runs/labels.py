"""Labels of runs, changed by people with the right to edit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backend.people.rights import Right
from backend.runs.history.labels import Change, checked
from backend.services.people.access import Access
from backend.storage.runs.labels import SqlLabels


@dataclass(frozen=True)
class LabelService:
    """`listed` shows the chosen project's, `store` all that the actor sees."""

    _store: SqlLabels
    _listed: SqlLabels
    _access: Access

    def change(self, run_ids: Iterable[int], change: Change) -> int:
        """Change the labels of several runs; how many of them there are. Raises `InvalidInput`
        on an empty or overlong name, tag or note, and on too many tags."""
        ids = tuple(run_ids)
        target = "run " + ", ".join(map(str, ids))
        for project in self._store.projects(ids) or (self._access.home,):
            self._access.check(Right.EDIT, "label", target, project)
        self._access.require(Right.VIEW, "label", target)
        return self._store.change(ids, checked(change))

    def tags(self) -> Sequence[str]:
        return self._listed.tags()

    def owners(self) -> Sequence[str]:
        return self._listed.owners()
