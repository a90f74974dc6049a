"""Faults and cancels of real trainings: each goes on from its checkpoint, bit for bit."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

import workers.zoo
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.settings import Settings

pytestmark = pytest.mark.slow

Living = Callable[[Path], list[psutil.Process]]
MLP = Path(workers.zoo.__file__).parent / "mlp.py"
EPOCHS = 6


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, new_stack) -> Iterator[object]:
    stack = new_stack(
        Settings(
            home=tmp_path_factory.mktemp("team") / "home", node="tester", heartbeat=0.5, lease=6
        )
    )
    stack.start_agent()
    yield stack
    stack.close()


@pytest.fixture(scope="module")
def spec(team) -> TrainSpec:
    definition = team.backend.definitions.add("mlp.py", MLP.read_bytes())
    stages = (Stage(0, 4, (0,)), Stage(4, 8, (1,)))
    plan = Plan("even", Partition(stages), "1f1b-flush", 4, batch=4)
    return TrainSpec(
        definition.id,
        plan,
        data=DataSpec("digits"),
        optimizer=OptimizerSpec("adam", 0.003, decay="cosine"),
        epochs=EPOCHS,
        checkpoints=CheckpointSpec(updates=10),
    )


@pytest.fixture(scope="module")
def undisturbed(team, spec: TrainSpec) -> Run:
    run = team.finished(spec)
    assert run.state is RunState.SUCCEEDED, run.error
    return run


def curve(team, run: Run) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in team.backend.runs.metrics.list(run.id, "loss")]


def weights(team, run: Run) -> dict[str, torch.Tensor]:
    return load_file(team.backend.runs.artifacts.path(run.id, "model.safetensors"))


def is_equal(team, run: Run, other: Run) -> None:
    """To the last bit, every minibatch once."""
    assert run.state is other.state is RunState.SUCCEEDED, run.error
    assert curve(team, run) == curve(team, other)
    mine, theirs = weights(team, run), weights(team, other)
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


def with_checkpoint(team, spec: TrainSpec) -> Run:
    """A run that is well on its way."""
    run = team.backend.runs.submit(spec)
    team.wait(lambda: team.backend.runs.checkpoints.list(run.id))
    return run


def ranks_of(team, run: Run, living: Living) -> list[psutil.Process]:
    folder = team.settings.run_folder(run.id, team.backend.runs.get(run.id).attempt)
    found = []
    for process in living(folder):
        with suppress(psutil.Error):
            if "workers.runtime.main" in process.cmdline() and "launcher.py" not in str(
                process.cmdline()
            ):
                found.append(process)
    return found


def test_a_killed_rank_costs_no_step(team, spec: TrainSpec, undisturbed: Run, living: Living):
    run = with_checkpoint(team, spec)
    os.kill(ranks_of(team, run, living)[0].pid, signal.SIGKILL)
    is_equal(team, team.until_final(run.id), undisturbed)
    first, second = team.backend.runs.attempts(run.id)
    assert (first.outcome, first.error.kind) == ("restarted", "RankKilled")
    assert second.outcome == "succeeded"
    assert second.step is not None
    texts = [line.text for line in team.backend.runs.logs.list(run.id, after=second.first_seq - 1)]
    assert any("continuing from the checkpoint of attempt 1" in text for text in texts)


def test_a_killed_agent_costs_no_step(team, spec: TrainSpec, undisturbed: Run, living: Living):
    run = with_checkpoint(team, spec)
    team.end_agent(signal.SIGKILL)
    team.wait(lambda: not living(team.settings.run_folder(run.id, 1)))
    team.start_agent()
    is_equal(team, team.until_final(run.id), undisturbed)
    first = team.backend.runs.attempts(run.id)[0]
    assert (first.outcome, first.error.kind) == ("restarted", "AgentLost")


def test_a_cancelled_run_keeps_what_it_had_and_is_resumed(team, spec: TrainSpec, undisturbed: Run):
    run = with_checkpoint(team, spec)
    team.backend.runs.cancel(run.id)
    assert team.until_final(run.id).state is RunState.CANCELLED
    kept = team.backend.runs.checkpoints.list(run.id)[0]
    resumed = team.backend.runs.resume(run.id)
    assert resumed.origin_id == run.id
    is_equal(team, team.until_final(resumed.id), undisturbed)
    assert team.backend.runs.attempts(resumed.id)[0].step == kept.mark.step


def test_a_run_is_resumed_on_another_plan(team, spec: TrainSpec, undisturbed: Run):
    """One process, other microbatches, another schedule: the weights go on by their names."""
    whole = Plan("one", Partition((Stage(0, 8, (0,)),)), "gpipe", 8, batch=2)
    resumed = team.backend.runs.resume(undisturbed.id, epochs=EPOCHS + 1, plan=whole)
    run = team.until_final(resumed.id)
    assert run.state is RunState.SUCCEEDED, run.error
    assert run.summary.accuracy > 0.5
    kept = team.backend.runs.checkpoints.list(undisturbed.id)[0]
    assert min(step for step, _ in curve(team, run)) == kept.mark.step
