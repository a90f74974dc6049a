"""Ended runs lose what takes most room when their project's rule says so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backend.people.project import Project
from backend.people.rights import Right
from backend.services.people.access import Access
from backend.storage.people.projects import SqlProjects
from backend.storage.runs.checkpoints import SqlCheckpoints
from backend.storage.runs.retention import SqlClearing

PERIOD = 3600.0
"""Seconds between two looks of an agent."""


@dataclass(frozen=True)
class RetentionService:
    """Any number of processes may clean at once: each run is cleared by one."""

    _projects: SqlProjects
    _store: SqlClearing
    _checkpoints: SqlCheckpoints
    _access: Access
    _clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def due(self) -> Sequence[tuple[Project, Sequence[int]]]:
        """What `clean` would take from, by project. Raises `NotAllowed`."""
        self._access.check(Right.MANAGE, "clean", "projects")
        return [(each, ids) for each in self._projects.list() if (ids := self._due(each))]

    def clean(self) -> Sequence[int]:
        """Take the logs, timelines and checkpoints of all that is due away; the runs' numbers.
        Raises `NotAllowed`."""
        cleared = []
        for project, ids in self.due():
            for run_id in ids:
                if self._store.clear(run_id):
                    self._access.require(Right.MANAGE, "clear", f"run {run_id}", project.id)
                    self._checkpoints.forget(run_id)
                    cleared.append(run_id)
        return cleared

    def _due(self, project: Project) -> Sequence[int]:
        rule = project.retention
        if rule.days is None:
            return ()
        return self._store.due(project.id, rule, self._clock() - timedelta(days=rule.days))
