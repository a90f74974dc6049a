"""A run that loses one of its two hosts for good ends by another plan on the other one, as if
nothing had happened; when the host comes back, it takes the larger plan again."""

import time
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from backend.cluster.registered import from_nodes
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sites import Sites
from backend.prediction.predict import predict
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, TrainSpec
from backend.runs.states import RunState
from tests.integration.hosts.impatient_agent import WAIT
from tests.integration.hosts.rig import Hosts
from tests.integration.hosts.slow_training import curve
from tests.integration.runtime.plain import plain

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

MODEL = b"""
import time
import torch
from torch import nn

def model():
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 3)).double()

def example(batch):
    torch.manual_seed(3)
    return torch.rand(batch, 6).double(), torch.randint(3, (batch,))

def loss(output, target):
    time.sleep(0.004)
    return nn.functional.cross_entropy(output, target)
"""
STUCK = MODEL.replace(
    b"    time.sleep(0.004)",
    b"""    global calls
    calls += 1
    if os.environ.get("RANK") == "2" and "attempt-1" in os.environ["HOME"] and calls > 60:
        time.sleep(300)
    time.sleep(0.004)""",
).replace(b"import time", b"import os\nimport time\ncalls = 0")
"""The rank that tells the losses waits in the middle of an update, and all others for it."""
LAYERS = tuple(Layer(str(n), "Linear", 4e-2, 8e-2, 10**4, 10**3) for n in range(4))
"""So slow, as far as the planner knows, that it pays to go back."""
AGENT = "tests.integration.hosts.impatient_agent"
MICROBATCH, BATCH, UPDATES = 4, 4, 300


@pytest.fixture(scope="module")
def hosts(new_hosts):
    hosts = new_hosts(2)
    hosts.start(AGENT)
    return hosts


@pytest.fixture(scope="module")
def spec(hosts: Hosts) -> TrainSpec:
    return stored(hosts, MODEL, lambda num: (range(num), range(num, 2 * num)))


def stored(hosts: Hosts, model: bytes, places) -> TrainSpec:
    """One epoch in double precision by a plan of two stages that is stored; `places` says on which
    devices, where each host has so many."""
    backend = hosts.backend
    definition = backend.definitions.add("double.py", model)
    profile = Profile("four", ModelGraph.chain(LAYERS), MICROBATCH)
    kept = backend.profiles.add(profile, definition.id)
    devices = [node.devices for node in backend.nodes.list()]
    cluster = from_nodes(devices)
    first, second = (tuple(each) for each in places(len(devices[0])))
    stages = (Stage(0, 2, first), Stage(2, 4, second))
    plan = Plan("even", Partition(stages), "1f1b-flush", MICROBATCH, batch=BATCH)
    found = backend.plans.save(kept.id, cluster, predict(profile, cluster, plan))
    return TrainSpec(
        definition.id,
        plan,
        found.id,
        data=DataSpec("synthetic", MICROBATCH * BATCH * UPDATES),
        optimizer=OptimizerSpec("momentum", 0.05),
        epochs=1,
        checkpoints=CheckpointSpec(seconds=1),
        nodes=tuple(hosts.names),
    )


@pytest.fixture(scope="module")
def sequential(spec: TrainSpec, tmp_path_factory):
    """The same training in one process, as anybody writes it."""
    file = tmp_path_factory.mktemp("plain") / "double.py"
    file.write_bytes(MODEL.replace(b"time.sleep(0.004)", b"pass"))
    return plain(file, spec)


def without_host_1(hosts, run):
    """The run at its end, and its attempts: behind its first checkpoint the host is killed."""
    hosts.wait(lambda: hosts.backend.runs.checkpoints.list(run.id))
    hosts.kill("host-1")
    ended = hosts.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, (ended.error, hosts.logs())
    attempts = hosts.backend.runs.attempts(run.id)
    assert attempts[0].error.kind == "NodeLost"
    return ended, attempts


def test_it_ends_by_another_plan_on_the_host_that_is_left(hosts, spec: TrainSpec, sequential):
    run = hosts.backend.runs.submit(spec)
    (foreseen,) = run.fallbacks
    assert (foreseen.count, foreseen.lost) == (1, ())
    ended, attempts = without_host_1(hosts, run)
    assert [attempt.plan for attempt in attempts[:-1]] == [None] * (len(attempts) - 1)
    last = attempts[-1]
    assert (last.node, last.plan, last.factor) == ("host-0", foreseen.plan, foreseen.factor)
    assert last.step > 0
    is_as_sequential(hosts, run.id, sequential)
    assert hosts.backend.runs.get(run.id).spec == spec_of(spec, ended)
    hosts.begin("host-1", AGENT)
    hosts.wait(lambda: len(hosts.alive) == 2)


def test_what_replicas_have_is_not_trained_again(new_hosts, sequential):
    """Of three hosts the one is lost whose rank tells the losses; the other two go on."""
    hosts = new_hosts(3)
    hosts.start(AGENT)
    spec = stored(hosts, STUCK, lambda num: ((0, num), (2 * num, num + 1)))
    spec = replace(spec, checkpoints=CheckpointSpec(seconds=0))
    run = hosts.backend.runs.submit(spec)
    hosts.wait(lambda: len(curve(hosts, run.id)) > 10)
    time.sleep(3.0)  # by then it is stuck
    told = len(curve(hosts, run.id))
    hosts.kill("host-2")
    ended = hosts.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, (ended.error, hosts.logs())
    first, second = hosts.backend.runs.attempts(run.id)
    fallback = next(each for each in run.fallbacks if each.count == 1)
    assert (first.error.kind, second.plan) == ("NodeLost", fallback.plan)
    assert fallback.plan.partition.num_devices > len(hosts.backend.nodes.list()[0].devices)
    assert second.step >= told > 10
    is_as_sequential(hosts, run.id, sequential)


def test_a_site_goes_on_without_the_other_one(new_hosts):
    """From the weights that both had in common, to the end of the same epoch."""
    hosts = new_hosts(2)
    hosts.start(AGENT)
    spec = stored(hosts, MODEL, lambda num: (range(num), range(num, 2 * num)))
    kept, whole = hosts.backend.plans.get(spec.plan_id), Partition((Stage(0, 4, (0,)),))
    sites = Sites("diloco", every=2, devices=len(hosts.backend.nodes.list()[0].devices))
    plan = replace(spec.plan, partition=whole, num_pipelines=2, sites=sites)
    profile = hosts.backend.profiles.get(kept.profile_id).profile
    found = predict(profile, kept.cluster, plan)
    number = hosts.backend.plans.save(kept.profile_id, kept.cluster, found).id
    run = hosts.backend.runs.submit(replace(spec, plan=plan, plan_id=number))
    (fallback,) = run.fallbacks
    _, attempts = without_host_1(hosts, run)
    last = attempts[-1]
    assert (last.node, last.plan, fallback.sites) == ("host-0", fallback.plan, 1)
    told = [step for step, _ in curve(hosts, run.id)]  # every second batch was the first site's
    assert last.step > 0
    assert told == [*range(0, last.step, 2), *range(last.step, UPDATES)]


def test_it_takes_the_larger_plan_again_at_a_checkpoint(hosts, sequential):
    """The training lasts longer than a host takes to come back."""
    slower = MODEL.replace(b"sleep(0.004)", b"sleep(0.015)")
    assert slower != MODEL
    spec = stored(hosts, slower, lambda num: (range(num), range(num, 2 * num)))
    run = hosts.backend.runs.submit(spec)
    hosts.wait(lambda: hosts.backend.runs.checkpoints.list(run.id))
    hosts.kill("host-1")
    hosts.wait(lambda: hosts.backend.runs.attempts(run.id)[-1].plan)
    hosts.begin("host-1", AGENT)
    ended = hosts.until_final(run.id)
    assert ended.state is RunState.SUCCEEDED, (ended.error, hosts.logs())
    *_, smaller, last = hosts.backend.runs.attempts(run.id)
    assert smaller.plan == run.fallbacks[0].plan
    assert (smaller.outcome, smaller.error.kind) == ("restarted", "NodesReturned")
    assert (last.plan, last.factor) == (None, None)
    assert last.step > smaller.step
    is_as_sequential(hosts, run.id, sequential)


def test_switched_off_it_waits(hosts, spec: TrainSpec):
    run = hosts.backend.runs.submit(replace(spec, replan=False))
    assert run.fallbacks == ()
    hosts.wait(lambda: hosts.backend.runs.checkpoints.list(run.id))
    hosts.kill("host-1")
    hosts.wait(lambda: hosts.backend.runs.get(run.id).state is RunState.QUEUED)
    time.sleep(2 * WAIT)
    assert hosts.backend.runs.get(run.id).state is RunState.QUEUED
    assert hosts.backend.runs.cancel(run.id).state is RunState.CANCELLED


def spec_of(spec: TrainSpec, run) -> TrainSpec:
    """What was asked for, with what the plan's profile says."""
    return replace(spec, planned_in=run.spec.planned_in, tracing=run.spec.tracing)


def is_as_sequential(hosts, run_id: int, sequential) -> None:
    steps, losses = zip(*curve(hosts, run_id), strict=True)
    assert steps == tuple(range(UPDATES))
    torch.testing.assert_close(
        torch.tensor(losses).double(), torch.tensor(sequential.losses).double(), rtol=0, atol=1e-10
    )
    (model,) = hosts.backend.runs.artifacts.trained_model(run_id)
    weights = load_file(model.path)
    assert weights.keys() == sequential.weights.keys()
    for name, weight in weights.items():
        assert weight.dtype is torch.float64
        torch.testing.assert_close(weight, sequential.weights[name], rtol=0, atol=1e-10)
