"""Who sees which rows: one condition per table, added to every query of a restricted database.

A row of a project that is not visible is found by no query, as if it were not there.
"""

from functools import lru_cache

from sqlalchemy import ColumnElement, event, select
from sqlalchemy.orm import InstrumentedAttribute, LoaderCriteriaOption, ORMExecuteState, Session
from sqlalchemy.orm import with_loader_criteria as limited

from backend.storage.tables import metric_tables as metrics
from backend.storage.tables import node_tables as nodes
from backend.storage.tables import notice_tables as notices
from backend.storage.tables import people_tables as people
from backend.storage.tables import pool_tables as pools
from backend.storage.tables import team_tables as team
from backend.storage.tables import tracker_tables as trackers
from backend.storage.tables import use_tables as use
from backend.storage.tables.base import Base
from backend.storage.tables.cluster_tables import ClusterRow
from backend.storage.tables.tables import (
    ArtifactRow,
    AttemptRow,
    CheckpointRow,
    ContentRow,
    DefinitionRow,
    LogRow,
    MetricRow,
    PlanRow,
    ProfileRow,
    ProjectRow,
    RunRow,
    SpanBatchRow,
    TagRow,
)

BY_PROJECT: dict[type[Base], InstrumentedAttribute[int]] = {
    ProjectRow: ProjectRow.id,
    people.MemberRow: people.MemberRow.project_id,
    DefinitionRow: DefinitionRow.project_id,
    RunRow: RunRow.project_id,
    ClusterRow: ClusterRow.project_id,
    team.ViewRow: team.ViewRow.project_id,
    team.SweepRow: team.SweepRow.project_id,
}
BY_RUN: dict[type[Base], InstrumentedAttribute[int]] = {
    row: row.run_id
    for row in (
        ArtifactRow,
        AttemptRow,
        CheckpointRow,
        LogRow,
        MetricRow,
        SpanBatchRow,
        TagRow,
        metrics.RunMetricRow,
        pools.JobRow,
        trackers.FollowedRow,
        team.CommentRow,
        notices.WatchRow,
        use.RunUseRow,
    )
}
EVERYBODYS = frozenset(
    {ContentRow, nodes.NodeRow, nodes.ReservationRow, nodes.HeldDeviceRow}
    | {nodes.LeaseRow, nodes.LinkTestRow, pools.PoolRow, use.NodeUseRow}
    | {people.PersonRow, people.IdentityRow, people.FailureRow, people.SessionRow}
    | {people.TokenRow, people.InvitationRow, people.AuditRow, notices.PlaceRow}
)
"""Machines, contents found by their digest alone, and what the services of people keep apart."""

_definitions = DefinitionRow.__table__
_profiles = ProfileRow.__table__
_runs = RunRow.__table__
_sweeps = team.SweepRow.__table__


def limit(session: Session, visible: frozenset[int]) -> Session:
    """The session, seeing these projects alone."""
    options = conditions(tuple(sorted(visible)))

    def add(asked: ORMExecuteState) -> None:
        asked.statement = asked.statement.options(*options)

    event.listen(session, "do_orm_execute", add)
    return session


@lru_cache(maxsize=256)
def conditions(projects: tuple[int, ...]) -> tuple[LoaderCriteriaOption, ...]:
    """For every table that belongs to projects. The inner queries are on bare tables, to which
    nothing is added once more."""
    definitions = select(_definitions.c.id).where(_definitions.c.project_id.in_(projects))
    profiles = select(_profiles.c.id).where(_profiles.c.definition_id.in_(definitions))
    runs = select(_runs.c.id).where(_runs.c.project_id.in_(projects))
    sweeps = select(_sweeps.c.id).where(_sweeps.c.project_id.in_(projects))
    found: dict[type[Base], ColumnElement[bool]] = {
        **{row: column.in_(projects) for row, column in BY_PROJECT.items()},
        **{row: column.in_(runs) for row, column in BY_RUN.items()},
        ProfileRow: ProfileRow.definition_id.in_(definitions),
        PlanRow: PlanRow.profile_id.in_(profiles),
        team.SweepRunRow: team.SweepRunRow.sweep_id.in_(sweeps),
    }
    return tuple(limited(row, condition) for row, condition in found.items())
