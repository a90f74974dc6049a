"""Emulated devices: the processes of a run take the time that a profile says."""

import numpy as np
import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.pipeline.kinds import Kind
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import predict
from backend.prediction.shapes import microbatch_unit, steady_shape
from backend.prediction.steady import seconds_per_microbatch
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.job import Emulation
from tests.benchmarks import emulated_rank
from tests.benchmarks.emulated_jobs import FILE, emulated_job, measured_timeline
from tests.contract.launching import launch

LAYERS = tuple(Layer(f"l{n}", "Linear", 2e-3, 4e-3, 10**6, 4 * 10**6) for n in range(6))
EDGES = ((0, 1), (0, 4), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5))
PROFILE = Profile("branched", ModelGraph(LAYERS, EDGES), 4)
CLUSTER = Cluster((Level(2, 2e9), Level(2, 2.5e8, 1e-4)), Device("V100"))
ORDER = (0, 1, 3, 2, 4, 5)
PLANS = {
    "data-parallel": Plan("", Partition((Stage(0, 6, (0, 1, 2, 3)),)), "pipedream", 4),
    "halved": Plan("", Partition((Stage(0, 6, (0, 1, 2, 3)),)), "pipedream", 4),
    "sharded": Plan("", Partition((Stage(0, 6, (0, 1, 2, 3)),)), "pipedream", 4, shard_state=True),
    "uneven": Plan("", Partition((Stage(0, 4, (0, 1, 2)), Stage(4, 6, (3,)))), "pipedream", 4),
    "reordered": Plan(
        "", Partition((Stage(0, 3, (0, 1)), Stage(3, 6, (2, 3))), ORDER), "1f1b-flush", 4, 4
    ),
    "split": Plan(
        "", Partition(tuple(Stage(n, n + 1 + 2 * (n == 3), (n,)) for n in range(4))), "zb-h1", 4, 8
    ),
}
SCALE = 4.0


@pytest.fixture(scope="module")
def timelines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Timeline]:
    """The measured spans of every plan, by four real processes."""
    root = tmp_path_factory.mktemp("emulated")
    emulation = Emulation(PROFILE, CLUSTER, SCALE)
    half = {"precision": "bfloat16", "state_precision": "bfloat16-masters"}
    folders = {
        name: emulated_job(plan, emulation, root / name, **(half if name == "halved" else {}))
        for name, plan in PLANS.items()
    }
    launch([folder / FILE for folder in folders.values()], 4, emulated_rank.__name__)
    return {name: measured_timeline(folder) for name, folder in folders.items()}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PLANS)
def test_a_run_is_no_faster_than_its_devices(name: str, timelines) -> None:
    """Waiting can only be too long on a busy machine, so the bound holds whatever the load."""
    plan, timeline = PLANS[name], timelines[name]
    predicted = predict(PROFILE, CLUSTER, plan)
    each = seconds_per_microbatch(timeline, steady_shape(plan), microbatch_unit(plan))
    busiest = max(
        seconds / stage.replicas
        for seconds, stage in zip(predicted.stage_seconds, plan.partition.stages, strict=True)
    )
    assert each > 0.95 * busiest
    assert timeline.num_ranks == 4


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "num_bytes"), [("data-parallel", 24e6), ("halved", 12e6)])
def test_sums_last_as_long_as_the_links_need(name: str, num_bytes: float, timelines) -> None:
    """24 MB over a ring with 250 MB/s: 0.144 s, against 0.036 s of compute; half of it with
    gradients in bfloat16."""
    each = seconds_per_microbatch(timelines[name], steady_shape(PLANS[name]), 4)
    assert 4 * each > 0.95 * 2 * 3 / 4 * num_bytes / 2.5e8


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_gradients_in_bfloat16_are_sent_in_less_time(timelines) -> None:
    """The median sum: 72 ms of links in place of 144."""
    whole, half = (median(timelines[name], Kind.ALL_REDUCE) for name in ("data-parallel", "halved"))
    assert half < 0.8 * whole


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_step_of_sharded_state_waits_for_one_round_of_the_ring(timelines) -> None:
    """72 ms of links, as long as half of a sum; without sharding a step waits for nothing."""
    partition = PLANS["sharded"].partition
    [gathering] = PlanDurations(PROFILE, partition, CLUSTER, sharded=True).gathering
    assert gathering == pytest.approx(3 / 4 * 24e6 / 2.5e8, rel=0.01)
    assert median(timelines["sharded"], Kind.STEP) > 0.95 * gathering
    assert median(timelines["data-parallel"], Kind.STEP) < 0.5 * gathering


def median(timeline: Timeline, kind: Kind) -> float:
    """Seconds of such an action."""
    rows = timeline.rows.kind == kind
    return float(np.median((timeline.end - timeline.start)[rows]))
