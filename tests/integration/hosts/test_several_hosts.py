"""A training over several hosts: the real queue, agents and database; what one host's end does."""

from dataclasses import replace

import pytest
from safetensors.torch import load_file

from app.components.run.measured_view import clocks
from backend.planning.plan import Partition, Stage
from backend.runs.request.spec import CheckpointSpec, TrainSpec
from backend.runs.states import RunState
from tests.contract.runtime_cases import HERE, Case
from tests.contract.runtime_reference import reference

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def spread(case: Case, definition_id: int, per_host: int, nodes: tuple[str, ...]) -> TrainSpec:
    """The case's run with every stage on a host of its own."""
    spec = case.spec()
    stages = tuple(
        Stage(stage.first, stage.stop, tuple(n * per_host + r for r in range(stage.replicas)))
        for n, stage in enumerate(spec.plan.partition.stages)
    )
    plan = replace(spec.plan, partition=Partition(stages))
    return replace(spec, definition_id=definition_id, plan=plan, nodes=nodes)


def added(hosts, case: Case, before: bytes = b"") -> int:
    file = HERE / "models" / f"{case.model}.py"
    return hosts.backend.definitions.add(file.name, before + file.read_bytes()).id


@pytest.fixture(scope="module")
def two(new_hosts):
    hosts = new_hosts(2)
    hosts.start()
    return hosts


def per_host(hosts) -> int:
    return len(hosts.backend.nodes.list()[0].devices)


SMALL = b"""
from workers.runtime.checkpoints import trained_model
trained_model.SHARD = 200
"""


@pytest.mark.parametrize("before", [b"", SMALL], ids=["one file", "shards"])
def test_two_hosts_train_as_one_process_would(two, before: bytes):
    """The second host's weights come through rank 0 into one file, or as files of their own."""
    case = Case("chain", "pipedream", "momentum", (1, 1))
    spec = spread(case, added(two, case, before), per_host(two), tuple(two.names))
    run = two.finished(spec)
    assert (run.state, run.error) == (RunState.SUCCEEDED, None), two.logs()
    files = two.backend.runs.artifacts.trained_model(run.id)
    assert (len(files) > 3) == bool(before)
    parts = [load_file(file.path) for file in files if not file.name.endswith(".json")]
    saved = {name: tensor for part in parts for name, tensor in part.items()}
    expected = reference(case)
    for name, weight in expected.weights.items():
        assert (saved[name] - weight).abs().max() < 1e-10
    text = [line.text for line in two.backend.runs.logs.every(run.id)]
    assert any("starting 1 rank on host-0" in line for line in text)
    assert any(line.startswith("The clock of rank 1 (host 1) is") for line in text)
    (clock,) = run.summary.clocks
    assert (clock.rank, clock.error < 1.0) == (1, True)
    assert "rank 1 " in clocks(run.summary.clocks)


def test_the_timeline_is_on_one_clock(two):
    """The hosts' clocks are a thousand seconds apart; a receive still ends after its send."""
    case = Case("chain", "1f1b-flush", "sgd", (1, 1))
    run = two.finished(spread(case, added(two, case), per_host(two), tuple(two.names)))
    timeline = two.backend.runs.spans.timeline(run.id, "measured")
    assert timeline.num_ranks == 2
    assert timeline.makespan < 100
    sent = {s.action.message: s.start for s in timeline.spans if type(s.action).__name__ == "Send"}
    got = {s.action.message: s.end for s in timeline.spans if type(s.action).__name__ == "Recv"}
    assert sent.keys() == got.keys()
    assert all(got[message] > sent[message] - 0.01 for message in sent)


def test_a_run_goes_on_from_a_checkpoint_of_two_hosts(two):
    """The files of both hosts are kept by the leader, which sends them out again; one update
    after another, so the weights at the end are those of the run that was never parted."""
    case = Case("chain", "1f1b-flush", "adam", (1, 1))
    spec = spread(case, added(two, case), per_host(two), tuple(two.names))
    spec = replace(spec, checkpoints=CheckpointSpec(updates=1, seconds=0, keep=50))
    whole = two.finished(spec)
    assert whole.state is RunState.SUCCEEDED, two.logs()
    kept = sorted(two.backend.runs.checkpoints.list(whole.id), key=lambda each: each.mark.step)
    assert len(kept) > 2
    assert {len(each.files) for each in kept} == {2}
    begin = kept[len(kept) // 2]
    rest = two.finished(replace(spec, checkpoint_id=begin.id))
    assert rest.state is RunState.SUCCEEDED, two.logs()
    told = [line.text for line in two.backend.runs.logs.every(rest.id)]
    assert any(f"after {begin.mark.step} steps" in line for line in told)
    ends = [
        load_file(two.backend.runs.artifacts.path(run.id, "model.safetensors"))
        for run in (whole, rest)
    ]
    assert ends[0].keys() == ends[1].keys()
    assert all((ends[0][name] == ends[1][name]).all() for name in ends[0])
    first = [point.step for point in two.backend.runs.metrics.list(rest.id, "loss")]
    assert min(first) == begin.mark.step


def test_a_node_that_is_away_leaves_the_run_waiting(two):
    case = Case("chain", "pipedream", "sgd", (1, 1))
    spec = spread(case, added(two, case), per_host(two), ("host-0", "host-1"))
    two.backend.nodes.beat("host-7", two.backend.nodes.list()[0].devices)
    two.backend.nodes.lost("host-7")
    run = two.backend.runs.submit(replace(spec, nodes=("host-0", "host-7")))
    assert "host-7" in two.backend.runs.why_waiting(run)
    two.backend.runs.cancel(run.id)
    assert two.backend.runs.get(run.id).state is RunState.CANCELLED


def test_four_hosts_with_a_stage_each(new_hosts):
    hosts = new_hosts(4)
    hosts.start()
    case = Case("residual", "2bw", "adam", (1, 1, 1, 1))
    run = hosts.finished(spread(case, added(hosts, case), per_host(hosts), tuple(hosts.names)))
    assert (run.state, run.error) == (RunState.SUCCEEDED, None), hosts.logs()
    saved = load_file(hosts.backend.runs.artifacts.path(run.id, "model.safetensors"))
    for name, weight in reference(case).weights.items():
        assert (saved[name] - weight).abs().max() < 1e-10
