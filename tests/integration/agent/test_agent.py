"""The main job through a real agent: a Celery worker on a real Redis, real torch ranks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from backend.cluster.presets import local
from backend.prediction.answer import rank
from backend.prediction.question import Question
from backend.runs.request.spec import DataSpec, ProfileSpec, TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState

pytestmark = pytest.mark.slow

Living = Callable[[Path], list[psutil.Process]]

HEAD = """
import torch
from torch import nn
def example(batch):
    return torch.rand(batch, 8), torch.randint(3, (batch,))
"""


def test_profile_plan_and_train(stack):
    definition = stack.backend.definitions.add_zoo("mlp")
    run = stack.finished(ProfileSpec(definition.id, microbatch=16, repetitions=3))
    assert (run.state, run.error) == (RunState.SUCCEEDED, None)
    assert run.summary.profile_id is not None
    profile = stack.backend.profiles.get(run.summary.profile_id).profile
    assert len(profile.layers) >= 4
    assert profile.compute > 0

    cluster = local(2)
    question = Question(profile, cluster, planner="", schedule="pipedream")
    found = next(p for p in rank(question) if len(p.prediction.plan.partition.stages) == 2)
    plan = stack.backend.plans.save(run.summary.profile_id, cluster, found.prediction)
    spec = TrainSpec(definition.id, plan.plan, plan_id=plan.id, epochs=2)
    run = stack.finished(spec)
    assert (run.state, run.error) == (RunState.SUCCEEDED, None)
    assert_complete(stack, run)


def assert_complete(stack, run: Run) -> None:
    summary = run.summary
    assert summary.epochs == 2
    assert summary.accuracy is not None
    assert summary.accuracy > 0.5
    assert summary.seconds_per_minibatch is not None
    assert summary.seconds_per_minibatch > 0
    assert summary.bubble is not None
    assert 0 <= summary.bubble <= 1
    measured = stack.backend.runs.spans.timeline(run.id, "measured")
    predicted = stack.backend.runs.spans.timeline(run.id, "predicted")
    actions = [{(s.rank, s.index, s.action) for s in t.spans} for t in (measured, predicted)]
    assert actions[0] == actions[1]
    losses = [point.value for point in stack.backend.runs.metrics.list(run.id, "loss")]
    assert losses[-1] < losses[0]
    assert any(a.name.endswith(".safetensors") for a in stack.backend.runs.artifacts.list(run.id))


def test_cancel_ends_every_process(stack, living: Living, eventually: Callable[..., None]):
    definition = stack.backend.definitions.add_zoo("mlp")
    run = stack.backend.runs.submit(training(definition.id, epochs=10_000))
    folder = stack.settings.run_folder(run.id, 1)
    eventually(lambda: stack.backend.runs.get(run.id).state is RunState.RUNNING)
    assert len(living(folder)) >= 2
    stack.backend.runs.cancel(run.id)
    eventually(lambda: not living(folder))
    eventually(lambda: stack.backend.runs.get(run.id).state is RunState.CANCELLED)


def training(definition_id: int, epochs: int = 2, layers: int = 8) -> TrainSpec:
    from backend.planning.plan import Partition, Plan, Stage

    stages = (Stage(0, layers // 2, (0,)), Stage(layers // 2, layers, (1,)))
    plan = Plan("even", Partition(stages), "pipedream", 16)
    return TrainSpec(definition_id, plan, epochs=epochs)


RAISES = (
    HEAD
    + """
class Bad(nn.Module):
    def forward(self, x):
        print("a word before the end")
        raise ValueError("the width is wrong")
def model():
    return nn.Sequential(nn.Linear(8, 8), Bad(), nn.Linear(8, 3))
"""
)
FACTORY = (
    HEAD
    + """
def model():
    raise KeyError("no such setting")
"""
)
MISSING = """
import a_package_that_nobody_has
def model(): ...
def example(batch): ...
"""


@pytest.mark.parametrize(
    ("name", "source", "told"),
    [
        ("raises", RAISES, "the width is wrong"),
        ("factory", FACTORY, "no such setting"),
        ("missing", MISSING, "a_package_that_nobody_has"),
    ],
)
def test_a_fault_of_the_definition_is_readable(stack, name: str, source: str, told: str):
    definition = stack.backend.definitions.add(f"{name}.py", source.encode())
    run = stack.finished(ProfileSpec(definition.id, repetitions=1))
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert told in run.error.message
    assert f"{name}.py" in run.error.message
    assert run.error.advice
    assert "Traceback" not in run.error.message


DIVERGES = (
    HEAD
    + """
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 3))
"""
)


def test_a_loss_that_is_not_finite_fails_the_run_and_keeps_what_was_known(stack):
    definition = stack.backend.definitions.add("diverges.py", DIVERGES.encode())
    spec = training(definition.id, epochs=50, layers=4)
    spec = replace(spec, data=DataSpec("synthetic", 256))
    run = stack.finished(replace(spec, optimizer=replace(spec.optimizer, learning_rate=1e30)))
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert run.error.kind == "LossNotFinite"
    assert run.error.advice
    assert stack.backend.runs.logs.list(run.id)


def test_a_killed_rank_fails_the_run_by_name(stack, living: Living, eventually):
    definition = stack.backend.definitions.add_zoo("mlp")
    run = stack.backend.runs.submit(training(definition.id, epochs=10_000))
    folder = stack.settings.run_folder(run.id, 1)
    eventually(lambda: stack.backend.runs.get(run.id).state is RunState.RUNNING)
    second = next(p for p in living(folder) if p.name() == "rank 1")
    second.kill()
    run = stack.until_final(run.id)
    assert run.error is not None
    assert run.error.message == "rank 1 was killed by signal 9"
    eventually(lambda: not living(folder))
