"""Checkpoints of two hosts in the middle of an epoch, and what goes on from them."""

from dataclasses import replace

import pytest

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.run import Run
from backend.runs.spec import CheckpointSpec, DataSpec, OptimizerSpec, TrainSpec
from backend.runs.states import RunState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

MODEL = b"""
import time
import torch
from torch import nn

def model():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3))

def example(batch):
    torch.manual_seed(3)
    return torch.rand(batch, 6), torch.randint(3, (batch,))

def loss(output, target):
    time.sleep(0.004)
    return nn.functional.cross_entropy(output, target)
"""
"""However fast the machine, an epoch lasts long enough for something to happen in it."""
MICROBATCH, BATCH, UPDATES = 4, 4, 300


@pytest.fixture(scope="module")
def two(new_hosts):
    hosts = new_hosts(2)
    hosts.start()
    return hosts


@pytest.fixture(scope="module")
def spec(two) -> TrainSpec:
    definition = two.backend.definitions.add("slow.py", MODEL)
    per_host = len(two.backend.nodes.list()[0].devices)
    stages = (Stage(0, 2, (0,)), Stage(2, 4, (per_host,)))
    return TrainSpec(
        definition.id,
        Plan("even", Partition(stages), "1f1b-flush", MICROBATCH, batch=BATCH),
        data=DataSpec("synthetic", MICROBATCH * BATCH * UPDATES),
        optimizer=OptimizerSpec("adam", 0.003, decay="cosine"),
        epochs=1,
        checkpoints=CheckpointSpec(seconds=0),
        nodes=tuple(two.names),
    )


@pytest.fixture(scope="module")
def undisturbed(two, spec: TrainSpec) -> list[tuple[int, float]]:
    run = two.finished(spec)
    assert run.state is RunState.SUCCEEDED, (run.error, two.logs())
    return curve(two, run.id)


def curve(hosts, run_id: int) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in hosts.backend.runs.metrics(run_id, "loss")]


def in_the_middle(hosts, run: Run) -> int:
    """The step of the newest checkpoint, whose files are those of both hosts."""
    kept = hosts.backend.runs.checkpoints(run.id)[0]
    assert (kept.mark.epoch, len(kept.files)) == (0, 2)
    assert 0 < kept.mark.step < UPDATES
    return kept.mark.step


def test_a_cancelled_run_keeps_what_it_had_and_is_resumed(two, spec: TrainSpec, undisturbed):
    run = two.backend.runs.submit(spec)
    two.wait(lambda: len(curve(two, run.id)) > UPDATES // 4)
    two.backend.runs.cancel(run.id)
    assert two.until_final(run.id).state is RunState.CANCELLED
    two.wait(lambda: not two.ranks_of(run.id))
    step = in_the_middle(two, run)
    resumed = two.until_final(two.backend.runs.resume(run.id).id)
    assert resumed.state is RunState.SUCCEEDED, (resumed.error, two.logs())
    assert curve(two, resumed.id) == undisturbed
    assert two.backend.runs.attempts(resumed.id)[0].step == step


def test_a_node_that_is_lost_is_waited_for_and_costs_no_step(two, spec: TrainSpec, undisturbed):
    run = two.backend.runs.submit(replace(spec, checkpoints=CheckpointSpec(seconds=1)))
    two.wait(lambda: two.backend.runs.checkpoints(run.id))
    step = in_the_middle(two, run)
    two.kill("host-1")
    two.wait(lambda: two.backend.runs.get(run.id).state is RunState.QUEUED)
    two.wait(lambda: not two.ranks_of(run.id))
    assert "host-1 not alive" in two.backend.runs.why_waiting(two.backend.runs.get(run.id))
    two.begin("host-1")
    ended = two.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, (ended.error, two.logs())
    assert curve(two, run.id) == undisturbed
    first, *_, last = two.backend.runs.attempts(run.id)
    assert (first.outcome, first.error.kind) == ("restarted", "NodeLost")
    assert "host-1" in first.error.message
    assert last.step >= step
