"""Whose queued run is next: the project that holds least of its share gets what is free.

Among projects that hold equally little, the one whose last start is longest ago is first, and in
a project the oldest run. So nobody starves: who is passed by is first the next time.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush
from math import inf

from backend.people.project import Project

LONG_AGO = 1e12
"""More seconds than any clock shows."""
LOOKED_AT = 100
"""Queued runs of a project, and of all, among which an agent looks for one to carry."""


@dataclass(frozen=True, slots=True)
class ProjectLoad:
    """What a project has at once: live runs, devices that they hold, queued runs; and when one of
    its runs was last started (None: never)."""

    project: Project
    running: int = 0
    devices: int = 0
    queued: int = 0
    served_at: datetime | None = None

    @property
    def of_share(self) -> float:
        """Devices held for each that its share gives."""
        return self.devices / self.project.quota.share


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued run and its project."""

    run_id: int
    project_id: int


def in_turn(
    waiting: Sequence[Waiting],
    loads: Mapping[int, ProjectLoad],
    devices: Mapping[int, int] | None = None,
) -> list[Waiting]:
    """Those that may start, in the order in which free devices go to them: what a run is given
    counts as held for the next choice. `devices` of each run, where it is known; else 1."""
    queues: dict[int, deque[Waiting]] = {}
    for each in sorted(waiting, key=lambda each: each.run_id):
        if over_quota(loads[each.project_id]) is None:
            queues.setdefault(each.project_id, deque()).append(each)
    turns = [(*_before(loads[project]), queue[0].run_id) for project, queue in queues.items()]
    projects = {queue[0].run_id: project for project, queue in queues.items()}
    heapify(turns)
    found = []
    while turns:
        of_share, _, run_id = heappop(turns)
        project = projects[run_id]
        found.append(queues[project].popleft())
        if queue := queues[project]:
            given = (devices or {}).get(run_id, 1) / loads[project].project.quota.share
            projects[queue[0].run_id] = project
            heappush(turns, (of_share + given, float(len(found)), queue[0].run_id))
    return found


def _before(load: ProjectLoad) -> tuple[float, float]:
    """What it holds of its share, then when it was served last: before anybody is served now."""
    return load.of_share, load.served_at.timestamp() - LONG_AGO if load.served_at else -inf


def over_quota(load: ProjectLoad, more: int = 1) -> str | None:
    """Why no further run of the project, of `more` devices, starts now, in a sentence; None where
    it may."""
    quota, name = load.project.quota, load.project.name
    if quota.running is not None and load.running >= quota.running:
        return f"The project {name} may have {quota.running} live runs and has {load.running}."
    if quota.devices is not None and load.devices + more > quota.devices:
        needs = "" if more == 1 else f"; the run needs {more}"
        return (
            f"The project {name} may hold {quota.devices} devices and holds {load.devices}{needs}."
        )
    return None
