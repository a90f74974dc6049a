"""A database with runs in it is brought to the schema in which runs are found again."""

from alembic import command
from sqlalchemy import text

from backend.bootstrap import connect
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.history.listing import RunFilter, RunOrder, RunSort
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from backend.settings import Settings
from backend.storage.database import open_engine
from backend.storage.schema import configuration, upgrade

PLAN = Plan("even", Partition((Stage(0, 1, (0,)),)), "pipedream", 8)


def test_old_runs_are_sorted_and_found_as_new_ones(settings: Settings):
    backend = connect(settings)
    definition = backend.definitions.add("tiny.py", b"def model(): ...\n")
    profiled = backend.runs.submit(ProfileSpec(definition.id))
    run = backend.runs.submit(TrainSpec(definition.id, PLAN))
    attempt = backend.dispatch.claim(run.id, "here")
    assert attempt is not None
    attempt.running()
    attempt.finish(RunState.SUCCEEDED, RunSummary(accuracy=0.75))
    before = [backend.runs.get(id_) for id_ in (profiled.id, run.id)]
    backend.close()
    engine = open_engine(settings, foreign_keys=False)
    with engine.begin() as connection:
        command.downgrade(configuration(connection), "0002")
    engine.dispose()
    upgrade(settings)
    backend = connect(settings)
    after = [backend.runs.get(id_) for id_ in (profiled.id, run.id)]
    assert [(r.id, r.spec, r.summary, r.state) for r in after] == [
        (r.id, r.spec, r.summary, r.state) for r in before
    ]
    assert [r.id for r in backend.runs.list(RunFilter(min_accuracy=0.7)).runs] == [run.id]
    reached = RunFilter(metric="accuracy", min_metric=0.7)
    assert [r.id for r in backend.runs.list(reached).runs] == [run.id]
    by_time = backend.runs.list(order=RunOrder(RunSort.SECONDS)).runs
    assert [r.id for r in by_time] == [run.id, profiled.id]
    with backend.database.read() as session:
        (seconds,) = session.scalars(text(f"SELECT seconds FROM runs WHERE id = {run.id}"))
    assert 0 <= seconds < 60
    backend.close()
