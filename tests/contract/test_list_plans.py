"""How both databases answer the questions of the Runs page, among 20,000 runs: by which index."""

from datetime import UTC, datetime

from sqlalchemy import Select, func, select, text

from backend.bootstrap import Backend
from backend.runs.history.listing import RunFilter, RunOrder, RunSort
from backend.runs.states import RunState
from backend.storage.runs.run_list import conditions, ordered
from backend.storage.tables.tables import RunRow
from tests.benchmarks.bench_history import fill

RUNS = 20_000
METRICS = ("ix_run_metrics_name_value_run_id", "pk_run_metrics")
QUESTIONS: dict[str, tuple[RunFilter, RunOrder, tuple[str, ...]]] = {
    "first page": (RunFilter(), RunOrder(), ("pk_runs", "SCAN runs")),
    "state": (RunFilter(states=(RunState.FAILED,)), RunOrder(), ("ix_runs_state_id",)),
    "owner": (RunFilter(owner="person 3"), RunOrder(), ("ix_runs_owner_id", "pk_runs")),
    "starred": (RunFilter(starred=True), RunOrder(), ("ix_runs_starred_id",)),
    "plan": (RunFilter(plan_id=7), RunOrder(), ("ix_runs_plan_id_id",)),
    "tag": (RunFilter(tag="tag 7"), RunOrder(), ("ix_run_tags_tag_run_id", "pk_run_tags")),
    "accuracy": (RunFilter(), RunOrder(RunSort.ACCURACY), ("ix_runs_accuracy_id",)),
    "upwards": (RunFilter(), RunOrder(RunSort.ACCURACY, False), ("ix_runs_accuracy_id",)),
    "time": (RunFilter(), RunOrder(RunSort.SECONDS), ("ix_runs_seconds_id",)),
    "name": (RunFilter(), RunOrder(RunSort.NAME, False), ("ix_runs_name_id",)),
    "range": (RunFilter(min_accuracy=0.99), RunOrder(RunSort.ACCURACY), ("ix_runs_accuracy_id",)),
    "metric": (RunFilter(metric="f1", min_metric=0.9), RunOrder(), METRICS),
    "text": (RunFilter(text="nowhere to be found"), RunOrder(), ("ix_runs_name_id",)),
}


def plan_of(backend: Backend, query: Select[int]) -> str:
    """The database's own words."""
    engine = backend.database.engine
    compiled = query.compile(engine, compile_kwargs={"literal_binds": True})
    how = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"
    with engine.connect() as connection:
        found = connection.exec_driver_sql(f"{how} {compiled}").all()
    return "\n".join(str(row[-1]) for row in found)


def test_every_list_is_answered_by_an_index(backend: Backend) -> None:
    fill(backend, RUNS, 1)
    if backend.database.engine.dialect.name == "postgresql":
        with backend.database.engine.connect() as connection:
            vacuum = connection.execution_options(isolation_level="AUTOCOMMIT")
            vacuum.execute(text("VACUUM ANALYZE"))  # as autovacuum does a minute later
    for name, (wanted, order, indexes) in QUESTIONS.items():
        query = ordered(select(RunRow.id).where(*conditions(wanted)), order).limit(20)
        plan = plan_of(backend, query)
        assert any(index in plan for index in indexes), f"{name}:\n{plan}"
        assert "Seq Scan on runs" not in plan, f"{name}:\n{plan}"


def test_a_page_far_back_and_a_count_since_a_day_read_no_wide_rows(backend: Backend) -> None:
    fill(backend, RUNS, 1)
    far = ordered(select(RunRow.id), RunOrder()).limit(20).offset(RUNS // 2)
    since = RunFilter(since=datetime(2026, 2, 8, tzinfo=UTC))
    counted = select(func.count()).select_from(
        select(RunRow.id).where(*conditions(since)).subquery()
    )
    assert "Seq Scan on runs" not in plan_of(backend, far)
    assert "ix_runs_created_at" in plan_of(backend, counted)
