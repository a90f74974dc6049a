"""Which runs a list holds, and in which order, as SQL that the indexes of `runs` answer."""

from operator import eq, ge, le, lt
from typing import Any

from sqlalchemy import ColumnElement, Select, select, union
from sqlalchemy.orm import InstrumentedAttribute

from backend.runs.history.listing import RunFilter, RunOrder, RunSort
from backend.storage.tables.metric_tables import RunMetricRow
from backend.storage.tables.tables import RunRow, TagRow
from backend.storage.tables.values import Few, Holds

Ids = Select[int]
COLUMNS: dict[RunSort, InstrumentedAttribute[Any]] = {
    RunSort.CREATED: RunRow.id,
    RunSort.NAME: RunRow.name,
    RunSort.STATE: RunRow.state,
    RunSort.OWNER: RunRow.owner,
    RunSort.ACCURACY: RunRow.accuracy,
    RunSort.SECONDS: RunRow.seconds,
}


def conditions(wanted: RunFilter) -> list[ColumnElement[bool]]:
    """What a run's row must meet."""
    found = _values(wanted)
    if wanted.text.strip():
        found.append(_says(wanted.text.strip()))
    if wanted.tag is not None:
        found.append(RunRow.id.in_(select(TagRow.run_id).where(TagRow.tag == wanted.tag)))
    if wanted.metric is not None:
        found.append(RunRow.id.in_(_reached(wanted.metric, wanted.min_metric, wanted.max_metric)))
    return found


def ordered(query: Ids, order: RunOrder) -> Ids:
    """Whatever has no value comes last, the newest first among equals."""
    column = COLUMNS[order.by]
    direction = column.desc() if order.descending else column.asc()
    if column is RunRow.id:
        return query.order_by(direction)
    if order.by in (RunSort.ACCURACY, RunSort.SECONDS):
        direction = direction.nulls_last()
    return query.order_by(direction, RunRow.id.desc())


def _values(wanted: RunFilter) -> list[ColumnElement[bool]]:
    compared = (
        (RunRow.kind, eq, wanted.kind),
        (RunRow.definition_id, eq, wanted.definition_id),
        (RunRow.plan_id, eq, wanted.plan_id),
        (RunRow.owner, eq, wanted.owner),
        (RunRow.created_at, ge, wanted.since),
        (RunRow.created_at, lt, wanted.until),
        (RunRow.accuracy, ge, wanted.min_accuracy),
        (RunRow.accuracy, le, wanted.max_accuracy),
    )
    found = [meets(column, value) for column, meets, value in compared if value is not None]
    if wanted.states:
        among = RunRow.state.in_(wanted.states)
        found.append(among if any(state.is_final for state in wanted.states) else Few(among))
    if wanted.starred:
        found.append(RunRow.starred.is_(True))
    return found


def _reached(name: str, least: float | None, most: float | None) -> Ids:
    query = select(RunMetricRow.run_id).where(RunMetricRow.name == name)
    if least is not None:
        query = query.where(RunMetricRow.value >= least)
    return query if most is None else query.where(RunMetricRow.value <= most)


def _says(text: str) -> ColumnElement[bool]:
    """Each part reads a narrow index of its own; one condition over all columns would read
    every run with its spec. Owners and tags are few: they are sought among themselves."""
    noted = select(RunRow.id).where(RunRow.note != "", Holds(RunRow.note, text))
    owners = select(RunRow.owner).distinct().subquery()
    owner = select(owners.c.owner).where(Holds(owners.c.owner, text))
    tags = select(TagRow.tag).distinct().subquery()
    tag = select(tags.c.tag).where(Holds(tags.c.tag, text))
    return RunRow.id.in_(
        union(
            select(RunRow.id).where(Holds(RunRow.name, text)),
            select(RunRow.id).where(RunRow.owner.in_(owner)),
            noted,
            select(TagRow.run_id).where(TagRow.tag.in_(tag)),
        )
    )
