"""What a project may have at once, asked inside the transaction that would give it more.

The project's row is locked meanwhile, so that two who come at once do not both find room.
"""

from typing import Any

from sqlalchemy import Connection, Select, func, select

from backend.codec import from_plain
from backend.people.project import ProjectArchived, Quota, QuotaReached
from backend.storage.nodes.loads import QUEUED, held
from backend.storage.tables.base import Base
from backend.units import bytes_text

TABLES = Base.metadata.tables
PROJECTS, RUNS = TABLES["projects"], TABLES["runs"]
DEFINITIONS, ARTIFACTS = TABLES["definitions"], TABLES["artifacts"]
CHECKPOINTS = TABLES["checkpoints"]


def admit_run(connection: Connection, project_id: int) -> None:
    """Raises `ProjectArchived`, and `QuotaReached` where as many runs as may be are queued
    already (this one does not count yet), or the files of the project take all of their room."""
    name, quota = _project(connection, project_id)
    if quota.queued is not None:
        queued = select(func.count()).where(RUNS.c.project_id == project_id, QUEUED)
        count = connection.scalar(queued) or 0
        if count >= quota.queued:
            raise QuotaReached(f"{count} runs of {name} are queued; {quota.queued} are allowed")
    _check_room(connection, project_id, name, quota, 1)


def admit_file(connection: Connection, project_id: int, size: int) -> None:
    """Raises `ProjectArchived`, and `QuotaReached` where so many bytes have no room."""
    name, quota = _project(connection, project_id)
    _check_room(connection, project_id, name, quota, size)


def admit(connection: Connection, project_id: int) -> None:
    """Raises `ProjectArchived`."""
    _project(connection, project_id)


def check_running(connection: Connection, project_id: int, plain: Any) -> None:
    """Raises `QuotaReached` where, with the run just claimed, the project has more than `plain`
    (its quota as it is stored) lets it have. An archived project's runs go on."""
    if not plain:
        return
    quota: Quota = from_plain(Quota, plain)
    if quota.running is None and quota.devices is None:
        return
    name = connection.scalar(_locked(PROJECTS.c.name, project_id))
    holdings = held(connection).get(project_id, [])
    running, devices = len({run for run, _ in holdings}), len(holdings)
    if quota.running is not None and running > quota.running:
        raise QuotaReached(
            f"project {name} would have {running} live runs; {quota.running} are allowed"
        )
    if quota.devices is not None and devices > quota.devices:
        raise QuotaReached(
            f"project {name} would hold {devices} devices; {quota.devices} are allowed"
        )


def _project(connection: Connection, project_id: int) -> tuple[str, Quota]:
    row = connection.execute(_locked(PROJECTS, project_id)).one()
    if row.archived:
        raise ProjectArchived(f"the project {row.name} is archived")
    return row.name, from_plain(Quota, row.quota)


def _locked(what: Any, project_id: int) -> Select[Any]:
    return select(what).where(PROJECTS.c.id == project_id).with_for_update()


def _check_room(
    connection: Connection, project_id: int, name: str, quota: Quota, size: int
) -> None:
    if quota.bytes is None:
        return
    of_runs = RUNS.c.project_id == project_id
    uploaded = select(func.sum(DEFINITIONS.c.size)).where(DEFINITIONS.c.project_id == project_id)
    sums = [uploaded] + [
        select(func.sum(kept.c.size)).join(RUNS, RUNS.c.id == kept.c.run_id).where(of_runs)
        for kept in (ARTIFACTS, CHECKPOINTS)
    ]
    used = sum(connection.scalar(each) or 0 for each in sums)
    if used + size > quota.bytes:
        raise QuotaReached(
            f"files of {name} use {bytes_text(used)} of {bytes_text(quota.bytes)}; "
            f"{bytes_text(size)} more do not fit"
        )
