"""What the planner admits under a schedule is what the prediction admits."""

from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from brute_force import chains, clusters, every_plan, graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.pipeline.schedules.catalog import schedule, training_schedules
from backend.planning.memory import MemoryRule, memory_parts, replica_parts
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import Partition, Plan, PlanDoesNotFit, Stage
from backend.planning.room import check_memory
from backend.prediction.shapes import steady_shape
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

NAMES = [member.name for member in training_schedules()]
names = st.sampled_from(NAMES)
batches = st.integers(1, 6)


def needs(profile, partition, name, batch, recompute=False, sharded=False):
    """Bytes per stage as the prediction counts them."""
    return [one.total for one in held(profile, partition, name, batch, recompute, sharded)]


def held(profile, partition, name, batch, recompute=False, sharded=False):
    size = batch if schedule(name).batched else 1
    plan = Plan("", partition, name, 1, size, recompute, shard_state=sharded)
    return memory_parts(profile, plan, steady_shape(plan), "momentum")


def straight_pipelines(layers, devices):
    for count in range(1, min(layers, devices) + 1):
        for cuts in combinations(range(1, layers), count - 1):
            spans = pairwise((0, *cuts, layers))
            yield Partition(tuple(Stage(a, b, (n,)) for n, (a, b) in enumerate(spans)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [1, 3, 8, 40])
@pytest.mark.parametrize("pipeline_size", [1, 2, 5, 12])
def test_on_straight_pipelines_the_rule_holds_what_the_schedule_promises(
    name, batch, pipeline_size
):
    partition = Partition(tuple(Stage(n, n + 1, (n,)) for n in range(pipeline_size)))
    rule = MemoryRule(1.0, schedule(name), batch=batch)
    plan = Plan("", partition, name, 1, batch if schedule(name).batched else 1)
    for coordinates in steady_shape(plan).coordinates:
        promised = schedule(name).in_flight(coordinates), schedule(name).live(coordinates)
        after = pipeline_size - 1 - coordinates.pipeline_rank
        assert replace(rule, total=pipeline_size).holds(1, after) == promised
        lower = rule.holds(1, after)
        assert all(mine <= its for mine, its in zip(lower, promised, strict=True))


@settings(max_examples=300)
@given(graphs(4), clusters(4), names, batches, st.integers(0, 400), st.booleans())
def test_no_straight_pipeline_that_the_prediction_admits_is_refused(
    profile, cluster, name, batch, limit, recompute
):
    rule = MemoryRule(float(limit), schedule(name), batch=batch, recompute=recompute)
    for partition in straight_pipelines(len(profile.layers), cluster.num_devices):
        admitted = max(needs(profile, partition, name, batch, recompute)) <= limit
        assert rule.fits(profile, cluster, partition) == admitted


EXACT = [name for name in NAMES if name != "pipedream-vertical-sync"]
"""Under vertical sync a stage holds what the replicas of the input stage ask for, which the search
does not know yet: of replicated stages it counts a version too few at times."""


@settings(max_examples=400)
@given(
    graphs(4),
    clusters(3),
    st.sampled_from(EXACT),
    batches,
    st.integers(0, 400),
    st.booleans(),
    st.booleans(),
    st.integers(0, 50),
)
def test_the_plan_is_the_best_of_those_that_the_prediction_admits(
    profile, cluster, name, batch, limit, recompute, sharded, process
):
    profile = replace(profile, process_bytes=process)
    fitting = [
        plan
        for plan in every_plan(profile, cluster)
        if max(needs(profile, plan, name, batch, recompute, sharded)) <= limit
    ]
    rule = MemoryRule(
        float(limit),
        schedule(name),
        batch=batch,
        recompute=recompute,
        sharded=sharded,
        process=process,
    )
    if not fitting:
        with pytest.raises(PlanDoesNotFit):
            optimum(profile, cluster, memory=rule)
        return
    found = optimum(profile, cluster, memory=rule)
    best = min(bottleneck(profile, cluster, plan) for plan in fitting)
    assert found.seconds == pytest.approx(best)
    assert found.lower_bound == pytest.approx(best)
    assert max(needs(profile, found.partition, name, batch, recompute, sharded)) <= limit


@settings(max_examples=150)
@given(chains(4), clusters(4) | clusters(2, 2), batches, st.data())
def test_on_unequal_devices_too_every_stage_fits_its_own(profile, cluster, batch, data):
    name = data.draw(st.sampled_from(EXACT))
    count = cluster.num_devices
    sizes = data.draw(st.lists(st.integers(1, 400), min_size=count, max_size=count))
    devices = tuple(Device(memory=float(size)) for size in sizes)
    cluster = replace(cluster, device=devices[0], devices=devices)
    rule = MemoryRule(float(max(sizes)), schedule(name), batch=batch)
    try:
        found = optimum(profile, cluster, memory=rule)
    except PlanDoesNotFit:
        return
    plan = Plan("", found.partition, name, 1, batch if schedule(name).batched else 1)
    every = replica_parts(profile, plan, steady_shape(plan), "momentum")
    check_memory(every, cluster, found.partition)


EVEN = Profile("even", ModelGraph.chain((Layer("l", "Linear", 1.0, 1.0, 100, 10**6),) * 4), 1)
FOUR = Cluster((Level(4, 1.0),))
"""Four equal layers, whose weights are too heavy to be synchronised."""


def four_stages(name, batch):
    """Bytes of the largest of four stages."""
    partition = Partition(tuple(Stage(n, n + 1, (n,)) for n in range(4)))
    return max(needs(EVEN, partition, name, batch))


@pytest.mark.parametrize("name", ["zb-h2", "afp", "zb-h1", "interleaved"])
def test_what_a_schedule_holds_beyond_1f1b_is_planned_with(name):
    """With a byte less than four stages need, another plan is made, and the prediction takes it."""
    roomy = MemoryRule(four_stages(name, 8), schedule(name), batch=8)
    assert optimum(EVEN, FOUR, memory=roomy).partition.label == "1-1-1-1"
    assert roomy.fits(EVEN, FOUR, optimum(EVEN, FOUR, memory=roomy).partition)
    tight = replace(roomy, limit=roomy.limit - 1)
    with pytest.raises(PlanDoesNotFit):
        optimum(EVEN, FOUR, memory=tight)


def test_zero_bubble_and_afp_hold_more_than_1f1b_at_the_input():
    held = {
        name: MemoryRule(1.0, schedule(name), batch=8, total=4).holds(1, 3)[0]
        for name in ("1f1b-flush", "interleaved", "zb-h1", "afp", "zb-h2", "gpipe")
    }
    assert held == {
        "1f1b-flush": 4, "interleaved": 4, "zb-h1": 4, "afp": 7, "zb-h2": 7, "gpipe": 8
    }  # fmt: skip


def test_zero_bubble_holds_as_much_at_the_output():
    """2 p - 1 activations everywhere, where 1F1B holds one at the last pipeline rank."""
    rule = MemoryRule(1.0, schedule("zb-h2"), batch=8)
    assert replace(rule, total=4).holds(1, 0)[0] == 7
    assert rule.holds(1, 0)[0] == 1


def test_unequal_devices_on_which_nothing_fits_are_said_to_be_too_small():
    devices = Device("a", 1000.0), Device("b", 2000.0)
    cluster = Cluster((Level(2, 1e9),), devices[0], devices)
    with pytest.raises(PlanDoesNotFit, match=r"2 devices of 1,000 bytes or more: .* too much"):
        optimum(EVEN, cluster, memory=MemoryRule(2000.0, schedule("pipedream")))
