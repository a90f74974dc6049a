"""Which runs a list holds, and in which order, as SQL that the indexes of `runs` answer."""

from sqlalchemy import ColumnElement, Select, select, union
from sqlalchemy.orm import InstrumentedAttribute

from backend.runs.listing import RunFilter, RunOrder, RunSort
from backend.storage.tables import RunRow, TagRow

Ids = Select[int]


def conditions(wanted: RunFilter) -> list[ColumnElement[bool]]:
    """What a run's row must meet."""
    found = [*_values(wanted), *_ranges(wanted)]
    if wanted.text.strip():
        found.append(_says(wanted.text.strip()))
    if wanted.tag is not None:
        found.append(RunRow.id.in_(select(TagRow.run_id).where(TagRow.tag == wanted.tag)))
    return found


def ordered(query: Ids, order: RunOrder) -> Ids:
    """Whatever has no value comes last, the newest first among equals."""
    column = _column(order.by)
    if column is RunRow.id:
        return query.order_by(column.desc() if order.descending else column.asc())
    direction = column.desc() if order.descending else column.asc()
    if column in (RunRow.accuracy, RunRow.seconds):
        direction = direction.nulls_last()
    return query.order_by(direction, RunRow.id.desc())


def _column(by: RunSort) -> InstrumentedAttribute[object]:
    columns: dict[RunSort, InstrumentedAttribute[object]] = {
        RunSort.CREATED: RunRow.id,
        RunSort.NAME: RunRow.name,
        RunSort.STATE: RunRow.state,
        RunSort.OWNER: RunRow.owner,
        RunSort.ACCURACY: RunRow.accuracy,
        RunSort.SECONDS: RunRow.seconds,
    }
    return columns[by]


def _values(wanted: RunFilter) -> list[ColumnElement[bool]]:
    pairs = (
        (RunRow.kind, wanted.kind),
        (RunRow.definition_id, wanted.definition_id),
        (RunRow.plan_id, wanted.plan_id),
        (RunRow.owner, wanted.owner),
    )
    found = [column == value for column, value in pairs if value is not None]
    if wanted.states:
        found.append(RunRow.state.in_(wanted.states))
    if wanted.starred:
        found.append(RunRow.starred.is_(True))
    return found


def _ranges(wanted: RunFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.since is not None:
        found.append(RunRow.created_at >= wanted.since)
    if wanted.until is not None:
        found.append(RunRow.created_at < wanted.until)
    if wanted.min_accuracy is not None:
        found.append(RunRow.accuracy >= wanted.min_accuracy)
    if wanted.max_accuracy is not None:
        found.append(RunRow.accuracy <= wanted.max_accuracy)
    return found


def _says(text: str) -> ColumnElement[bool]:
    """Each part reads a narrow index of its own; one condition over all columns would read
    every run with its spec."""

    def holding(column: InstrumentedAttribute[str], id_: InstrumentedAttribute[int]) -> Ids:
        return select(id_).where(column.icontains(text, autoescape=True))

    return RunRow.id.in_(
        union(
            holding(RunRow.name, RunRow.id),
            holding(RunRow.owner, RunRow.id),
            holding(RunRow.note, RunRow.id).where(RunRow.note != ""),
            holding(TagRow.tag, TagRow.run_id),
        )
    )
