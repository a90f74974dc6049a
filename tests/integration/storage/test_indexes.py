"""What lists of runs and curves ask is answered by indexes: SQLite says how it would go."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.dialects import sqlite

from backend.bootstrap import Backend, connect
from backend.runs.history.listing import RunFilter, RunOrder, RunSort
from backend.runs.states import RunState
from backend.settings import Settings
from backend.storage.runs.run_list import conditions, ordered
from backend.storage.schema import upgrade
from backend.storage.tables.tables import MetricRow, RunRow


@pytest.fixture
def backend(home: Path) -> Iterator[Backend]:
    settings = Settings(home=home)
    upgrade(settings)
    found = connect(settings)
    yield found
    found.close()


def plan_of(backend: Backend, query) -> str:
    """How SQLite would answer, in its words."""
    compiled = query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True})
    with backend.database.read() as session:
        rows = session.execute(text(f"EXPLAIN QUERY PLAN {compiled}".replace(":", r"\:")))
        return "\n".join(row.detail for row in rows)


def ids(wanted: RunFilter, order: RunOrder):
    return ordered(select(RunRow.id).where(*conditions(wanted)), order).limit(20)


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        (RunFilter(states=(RunState.FAILED,)), "ix_runs_state_id"),
        (RunFilter(kind="train"), "ix_runs_kind_id"),
        (RunFilter(definition_id=3), "ix_runs_definition_id_id"),
        (RunFilter(plan_id=3), "ix_runs_plan_id_id"),
        (RunFilter(owner="ada"), "ix_runs_owner_id"),
        (RunFilter(starred=True), "ix_runs_starred_id"),
        (RunFilter(tag="baseline"), "ix_run_tags_tag_run_id"),
    ],
)
def test_a_filter_is_answered_by_its_index_already_in_order(backend: Backend, wanted, index):
    plan = plan_of(backend, ids(wanted, RunOrder()))
    assert index in plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan


@pytest.mark.parametrize(
    "states", [(RunState.QUEUED,), (RunState.STARTING, RunState.RUNNING)], ids=["queued", "live"]
)
def test_what_has_not_ended_is_found_without_looking_through_what_has(backend: Backend, states):
    plan = plan_of(backend, ids(RunFilter(states=states), RunOrder()))
    assert "SEARCH runs USING COVERING INDEX ix_runs_state_id" in plan
    assert "SCAN" not in plan


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("by", [RunSort.ACCURACY, RunSort.SECONDS, RunSort.NAME, RunSort.OWNER])
def test_an_order_reads_a_narrow_index_and_not_the_runs(backend: Backend, by, descending):
    plan = plan_of(backend, ids(RunFilter(), RunOrder(by, descending)))
    assert f"USING COVERING INDEX ix_runs_{by.value}_id" in plan


def test_ranges_use_their_indexes(backend: Backend):
    accuracy = plan_of(backend, ids(RunFilter(min_accuracy=0.9), RunOrder(RunSort.ACCURACY)))
    assert "SEARCH runs USING COVERING INDEX ix_runs_accuracy_id" in accuracy
    since = RunFilter(since=datetime(2026, 1, 1, tzinfo=UTC))
    counted = select(func.count()).select_from(
        select(RunRow.id).where(*conditions(since)).subquery()
    )
    assert "ix_runs_created_at" in plan_of(backend, counted)


def test_a_curve_is_found_by_its_index(backend: Backend):
    query = select(MetricRow).where(MetricRow.run_id == 5, MetricRow.name == "loss")
    plan = plan_of(backend, query.order_by(MetricRow.step, MetricRow.id))
    assert "ix_metrics_run_id_name_step" in plan
    assert "SCAN" not in plan


def test_a_text_is_sought_in_narrow_indexes_and_not_in_the_runs(backend: Backend):
    plan = plan_of(backend, ids(RunFilter(text="sweep"), RunOrder()))
    assert "COVERING INDEX ix_runs_name_id" in plan
    assert "COVERING INDEX ix_runs_owner_id" in plan
    assert "INDEX ix_runs_noted" in plan
    assert "SCAN runs\n" not in f"{plan}\n"
