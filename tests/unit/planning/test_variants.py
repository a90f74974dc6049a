"""Plans of other kinds under a memory limit: on parts of a cluster, copied in front of others."""

from dataclasses import replace

import pytest
from brute_force import chains
from hypothesis import given, settings
from hypothesis import strategies as st
from published import FOLDER, load

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.presets import cluster_a
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.memory import MemoryRule
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import Partition, Plan, PlanDoesNotFit, Stage
from backend.prediction.predict import predict
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

published = pytest.mark.skipif(not FOLDER.is_dir(), reason="the published profiles are not here")


@published
def test_a_pipeline_is_copied_over_the_machines_in_front_of_a_plain_stage():
    """VGG-16 on 4 servers of 4: by hand 8-4-1, the heavy layers once on one device. (With the
    bundles at both ends counted it needs 17.4 GB.)"""
    profile, cluster = load("vgg16"), cluster_a()
    by_hand = Partition(
        (
            Stage(0, 7, (0, 4, 8, 12, 1, 5, 9, 13)),
            Stage(7, 25, (2, 6, 10, 14)),
            Stage(25, 41, (3,)),
        )
    )
    rule = MemoryRule(18e9, PIPEDREAM)
    assert rule.fits(profile, cluster, by_hand)
    found = optimum(profile, cluster, memory=rule)
    assert found.partition.label == "8-4-1"
    assert found.seconds <= bottleneck(profile, cluster, by_hand) * (1 + 1e-9)
    assert rule.fits(profile, cluster, found.partition)
    limited = replace(cluster, device=Device(memory=18e9))
    rates = [
        predict(
            profile, limited, Plan("", plan, "pipedream", profile.microbatch)
        ).samples_per_second
        for plan in (found.partition, by_hand)
    ]
    assert rates[0] >= rates[1] * 0.99


@published
@pytest.mark.parametrize("memory", [14e9, 16e9, 18e9])
def test_more_machines_never_slow_vgg_down(memory):
    profile, levels = load("vgg16"), cluster_a().levels
    seconds = [
        optimum(
            profile,
            Cluster((levels[0], replace(levels[1], count=count))),
            memory=MemoryRule(memory, PIPEDREAM),
        ).seconds
        for count in range(1, 5)
    ]
    assert seconds == sorted(seconds, reverse=True)


@settings(max_examples=60)
@given(chains(4), st.integers(1, 20), st.integers(1, 20), st.integers(60, 400))
def test_adding_devices_never_slows_a_plan_down(profile, inside, between, memory):
    """Of 2 x 1, 2 x 2, 2 x 3 devices and of 1 x 2, 3 x 2; where none fits more devices may."""

    def seconds(*counts):
        levels = zip(counts, (inside, between), strict=True)
        cluster = Cluster(tuple(Level(count, float(bandwidth)) for count, bandwidth in levels))
        rule = MemoryRule(float(memory), PIPEDREAM)
        try:
            found = optimum(profile, cluster, memory=rule)
        except PlanDoesNotFit:
            return float("inf")
        assert rule.fits(profile, cluster, found.partition)
        assert bottleneck(profile, cluster, found.partition) <= found.seconds * (1 + 1e-9)
        assert found.lower_bound <= found.seconds * (1 + 1e-9)
        return found.seconds

    for first, more in (((2, 1), (2, 2)), ((2, 2), (2, 3)), ((1, 2), (2, 2)), ((2, 2), (3, 2))):
        assert seconds(*more) <= seconds(*first) * (1 + 2e-3)


def test_stages_stand_in_the_order_that_is_fastest():
    """On device 2, then on 0 and 1, then on 3: in the order of the devices no plan is faster than
    15.5."""
    costs = ((8, 5, 1), (0, 1, 20), (3, 5, 10), (20, 1, 0), (8, 0, 0))
    layers = tuple(Layer("l", "Linear", 0, back, out, weights) for back, out, weights in costs)
    profile = Profile("p", ModelGraph.chain(layers), 1)
    cluster = Cluster((Level(2, 10.0), Level(2, 0.5)))
    found = optimum(profile, cluster)
    assert bottleneck(profile, cluster, found.partition) == pytest.approx(11.5)
    assert found.seconds == found.lower_bound == pytest.approx(11.5)
