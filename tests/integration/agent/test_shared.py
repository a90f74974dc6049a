"""Two agents with a home each and one shared folder: one goes on where the other was ended."""

import signal
from pathlib import Path

import pytest

import workers.zoo
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, TrainSpec
from backend.runs.states import RunState
from backend.settings import Settings

pytestmark = pytest.mark.slow

AGENT = ("-m", "tests.integration.agent.warned_agent")
MLP = Path(workers.zoo.__file__).parent / "mlp.py"


def test_a_run_of_one_is_resumed_by_the_other_to_the_same_losses(new_stack, tmp_path: Path):
    shared = tmp_path / "share"
    first = Settings(
        home=tmp_path / "first", shared=str(shared), node="first", heartbeat=0.5, lease=6
    )
    stack = new_stack(first)
    stack.start_agent(AGENT)
    definition = stack.backend.definitions.add("mlp.py", MLP.read_bytes())
    spec = TrainSpec(
        definition.id,
        Plan("even", Partition((Stage(0, 4, (0,)), Stage(4, 8, (1,)))), "1f1b-flush", 4, batch=4),
        data=DataSpec("digits"),
        optimizer=OptimizerSpec("adam", 0.003, decay="cosine"),
        epochs=6,
        checkpoints=CheckpointSpec(updates=10),
    )
    undisturbed = stack.finished(spec)
    run = stack.backend.runs.submit(spec)
    stack.wait(lambda: stack.backend.runs.checkpoints.list(run.id))
    assert stack.end_agent(signal.SIGUSR1) == 0
    assert stack.backend.runs.get(run.id).state is RunState.QUEUED
    stack.settings = first.model_copy(
        update={
            "home": tmp_path / "second",
            "node": "second",
            "database_url": first.sql_url,
            "redis_url": first.broker_url,
        }
    )
    stack.settings.home.mkdir()
    stack.start_agent(AGENT)
    ended = stack.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, ended.error
    curves = [
        [(p.step, p.value) for p in stack.backend.runs.metrics.list(each.id, "loss")]
        for each in (run, undisturbed)
    ]
    assert curves[0] == curves[1]
    before, after = stack.backend.runs.attempts(run.id)
    assert (before.node, before.error.kind, after.node) == ("first", "AgentWarned", "second")
    assert after.step is not None
    assert {kept.folder.parents[1] for kept in stack.backend.runs.checkpoints.list(run.id)} == {
        shared / "checkpoints"
    }
    for home in (first.home, stack.settings.home):
        kept = {path.name for path in home.iterdir()}
        assert "runs" in kept
        assert not {"checkpoints", "artifacts", "spool"} & kept
    stack.close()
