"""PipeDream's planner against every plan there is, on small graphs and clusters."""

from dataclasses import replace

import pytest
from brute_force import chains, clusters, every_plan, graphs
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.baselines import data_parallel
from backend.planning.memory import MemoryRule, held_in_flight, held_once
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.device_orders import device_orders, permuted, with_own_numbers
from backend.planning.pipedream.planner import optimum, pipedream
from backend.planning.plan import PlanDoesNotFit, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile


def check(profile, cluster, overlap=True):
    found = optimum(profile, cluster, overlap)
    best = min(bottleneck(profile, cluster, plan, overlap) for plan in every_plan(profile, cluster))
    assert found.seconds == pytest.approx(best)
    assert found.lower_bound == pytest.approx(best)
    assert bottleneck(profile, cluster, found.partition, overlap) == pytest.approx(best)


@settings(max_examples=1500)
@given(chains(5), clusters(4), st.booleans(), st.sampled_from([0.5, 1.0, 3.0]))
def test_chains_on_one_level_equal_brute_force(profile, cluster, overlap, speed):
    check(profile, replace(cluster, device=Device(speed=speed)), overlap)


@settings(max_examples=1000)
@given(graphs(5), clusters(3), st.booleans())
def test_graphs_on_one_level_equal_brute_force(profile, cluster, overlap):
    check(profile, cluster, overlap)


@settings(max_examples=150)
@given(chains(4) | graphs(4), clusters(2, 3) | clusters(3, 2), st.booleans())
def test_machines_are_never_worse_than_stages_in_the_order_of_devices(profile, cluster, overlap):
    """`every_plan` has those alone, and copies of them; `test_every_placement` has all."""
    found = optimum(profile, cluster, overlap)
    best = min(bottleneck(profile, cluster, plan, overlap) for plan in every_plan(profile, cluster))
    assert found.lower_bound <= found.seconds <= best * (1 + 1e-9)
    assert bottleneck(profile, cluster, found.partition, overlap) <= found.seconds * (1 + 1e-9)


@settings(max_examples=60)
@given(chains(4), clusters(2, 2, 2))
def test_three_levels_are_never_worse_than_what_two_can_say(profile, cluster):
    """Copies are written out for the innermost machines only, so the planner may be better."""
    found = optimum(profile, cluster)
    best = min(bottleneck(profile, cluster, plan) for plan in every_plan(profile, cluster))
    assert found.seconds <= best * (1 + 1e-9)
    assert bottleneck(profile, cluster, found.partition) <= found.seconds * (1 + 1e-9)


speeds = st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=6, max_size=6)


@settings(max_examples=300)
@given(graphs(4), clusters(4) | clusters(2, 2), speeds)
def test_unequal_devices_are_as_fast_as_brute_force_side_by_side(profile, cluster, speeds):
    devices = tuple(Device(speed=speed) for speed in speeds[: cluster.num_devices])
    cluster = replace(cluster, devices=devices)
    plans = [plan for plan in every_plan(profile, cluster) if side_by_side(plan)]
    every = [
        with_own_numbers(plan, order)
        for order in device_orders(cluster)
        for plan in every_plan(profile, permuted(cluster, order))
        if side_by_side(plan)
    ]
    found = optimum(profile, cluster)
    best = min(bottleneck(profile, cluster, plan) for plan in (*plans, *every))
    assert found.seconds <= best * (1 + 1e-9)
    assert found.lower_bound == pytest.approx(found.seconds)
    assert bottleneck(profile, cluster, found.partition) <= found.seconds * (1 + 1e-9)


def test_a_slow_device_between_fast_ones_is_passed_over():
    """In the cluster's order the two stages with weights would need the slow device or an idle
    gap; the two fast ones are next to each other in another."""
    devices = tuple(Device(speed=speed) for speed in (1.0, 0.1, 1.0, 0.1))
    cluster = Cluster((Level(4, 10.0),), devices[0], devices)
    layers = (Layer("a", "Linear", 1.0, 0.0, 1, 0),) * 2
    profile = Profile("p", ModelGraph.chain(layers), 1)
    found = optimum(profile, cluster)
    assert found.seconds == pytest.approx(1.0)
    assert {d for stage in found.partition.stages for d in stage.devices} == {0, 2}


def test_machines_stay_together_in_every_order():
    devices = tuple(Device(speed=speed) for speed in (1.0, 3.0, 2.0, 4.0))
    cluster = Cluster((Level(2, 10.0), Level(2, 1.0)), devices[0], devices)
    found = list(device_orders(cluster))
    assert found[0] == (0, 1, 2, 3)
    assert (3, 2, 1, 0) in found
    assert all({order[:2], order[2:]} <= {(0, 1), (1, 0), (2, 3), (3, 2)} for order in found)


def test_a_stage_may_leave_a_whole_machine_idle():
    """Two fast devices of one server are better than three over two servers."""
    layers = (Layer("l", "view", 0, 0, 1, 0), Layer("l", "Linear", 0, 2, 0, 1))
    profile = Profile("p", ModelGraph.chain(layers), 1)
    devices = tuple(Device(speed=speed) for speed in (2.0, 2.0, 2.0, 0.5))
    cluster = Cluster((Level(2, 2.0), Level(2, 1.0)), devices[0], devices)
    assert optimum(profile, cluster).seconds == pytest.approx(0.5)


def side_by_side(plan):
    return all(s.devices == tuple(range(s.devices[0], s.devices[-1] + 1)) for s in plan.stages)


def needs(profile, plan):
    """Bytes per stage under weight stashing with a momentum, from the published formula."""
    ordered = profile.in_order(plan.order)
    ahead = [-(-sum(plan.replicas[n:]) // r) for n, r in enumerate(plan.replicas)]
    return [
        (held_once(ordered, stage, live, "momentum") + held_in_flight(ordered, stage, live)).total
        for stage, live in zip(plan.stages, ahead, strict=True)
    ]


@settings(max_examples=500)
@given(graphs(4), clusters(4), st.integers(0, 400))
def test_memory_is_kept_and_the_best_that_fits_is_found(profile, cluster, limit):
    fitting = [plan for plan in every_plan(profile, cluster) if max(needs(profile, plan)) <= limit]
    rule = MemoryRule(float(limit), PIPEDREAM)
    if not fitting:
        with pytest.raises(PlanDoesNotFit):
            optimum(profile, cluster, memory=rule)
        return
    found = optimum(profile, cluster, memory=rule)
    best = min(bottleneck(profile, cluster, plan) for plan in fitting)
    assert found.seconds == pytest.approx(best)
    assert max(needs(profile, found.partition)) <= limit


def test_a_device_elsewhere_helps_the_first_stage():
    """Stages of three, two and one of six devices: the three are in two machines, and the one is
    beside them."""
    layers = tuple(Layer("l", "Linear", 0, compute, 0, 1) for compute in (4, 3, 1))
    profile = Profile("p", ModelGraph.chain(layers), 1)
    cluster = Cluster((Level(2, 3.0), Level(3, 1.0)))
    found = optimum(profile, cluster, overlap=False)
    in_order = min(bottleneck(profile, cluster, p, False) for p in every_plan(profile, cluster))
    assert in_order == pytest.approx(7 / 3)
    assert found.seconds == found.lower_bound == pytest.approx(20 / 9)
    assert found.partition.label == "3-2-1"


def uniform(num_layers: int, compute: float, output: int, weights: int) -> Profile:
    layer = Layer("l", "Linear", compute / 2, compute / 2, output, weights)
    return Profile("uniform", ModelGraph.chain((layer,) * num_layers), 1)


def test_light_weights_are_replicated():
    cluster = Cluster((Level(4, 1e9),))
    profile = uniform(4, 1.0, output=10**9, weights=1)
    assert pipedream(profile, cluster) == data_parallel(profile, cluster)


def test_heavy_weights_are_pipelined():
    profile = uniform(4, 1.0, output=1, weights=10**10)
    assert pipedream(profile, Cluster((Level(4, 1e9),))).label == "1-1-1-1"


def test_of_equal_bottlenecks_the_fewest_stages_win():
    profile = uniform(6, 1.0, output=0, weights=0)
    assert pipedream(profile, Cluster((Level(3, 1e9),))).label == "3"


def test_a_pipeline_that_must_be_split_is_copied_over_servers():
    """A device holds one of the two layers only (1.33e7 bytes, both 1.35e7), and the cut is too
    heavy for the link between the servers: each server has the pipeline. Replicas alternate
    between the servers, so that the microbatches of a replica stay in one: replica k of both
    stages is there."""
    first = Layer("first", "Linear", 0.5, 0.5, 1_100_000, 800_000)
    last = Layer("last", "Linear", 0.5, 0.5, 10**7, 0)
    profile = Profile("p", ModelGraph.chain((first, last)), 1)
    cluster = Cluster((Level(2, 1e9), Level(2, 2e6)))
    found = optimum(profile, cluster, memory=MemoryRule(1.34e7, PIPEDREAM))
    assert found.partition.stages == (Stage(0, 1, (0, 2)), Stage(1, 2, (1, 3)))
    assert found.lower_bound <= found.seconds


def test_what_never_fits_names_the_smallest_excess():
    layer = Layer("l", "Linear", 0.5, 0.5, 0, 1024)
    profile = Profile("p", ModelGraph.chain((layer,) * 4), 1)
    cluster = Cluster((Level(2, 1e9),))
    with pytest.raises(PlanDoesNotFit, match=r"of 5.00 KiB: .* 8.00 KiB, 3.00 KiB too much") as no:
        optimum(profile, cluster, memory=MemoryRule(5 * 1024.0, PIPEDREAM))
    assert "Recompute" in no.value.advice


def test_a_stage_may_span_servers():
    """Fifteen replicas on four servers of four, and the heavy layer alone on the last device."""
    light = Layer("conv", "Conv2d", 15.0, 0.0, 10, 1)
    dense = Layer("dense", "Linear", 1.0, 0.0, 10, 10**12)
    profile = Profile("p", ModelGraph.chain((light, dense)), 1)
    partition = pipedream(profile, Cluster((Level(4, 1e9), Level(4, 1e9))))
    assert partition.label == "15-1"
    assert partition.stages[0].devices == tuple(range(15))


@pytest.mark.parametrize("levels", [((64, 1e9),), ((8, 1e10), (8, 1e9))])
def test_long_chains_come_with_their_proof(levels):
    cluster = Cluster(tuple(Level(count, bandwidth) for count, bandwidth in levels))
    found = optimum(uniform(150, 1e-3, 10**5, 10**6), cluster)
    assert found.gap == pytest.approx(0.0, abs=1e-8)
