"""The paper's dynamic programme, the planner of the product and brute force, side by side."""

from dataclasses import replace

import pytest
from brute_force import chains, clusters, every_plan
from hypothesis import given, settings
from published import FOLDER, load

from backend.cluster.cluster import Cluster, Level
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.planner import optimum
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from tests.oracles.pipedream import bottleneck_of_the_paper


def on(cluster: Cluster, count: int) -> Cluster:
    """The innermost level with `count` members alone."""
    return replace(cluster, levels=(replace(cluster.levels[0], count=count),))


@settings(max_examples=150)
@given(chains(5), clusters(4))
def test_on_one_level_the_paper_finds_the_best_plan_on_all_devices(profile, cluster):
    best = min(
        bottleneck(profile, cluster, plan)
        for plan in every_plan(profile, cluster)
        if plan.num_devices == cluster.num_devices
    )
    assert bottleneck_of_the_paper(profile, cluster) == pytest.approx(best)


@settings(max_examples=300)
@given(chains(6), clusters(5))
def test_on_one_level_ours_is_the_paper_s_on_the_best_number_of_devices(profile, cluster):
    counts = range(1, cluster.num_devices + 1)
    best = min(bottleneck_of_the_paper(profile, on(cluster, count)) for count in counts)
    assert optimum(profile, cluster).seconds == pytest.approx(best)


@settings(max_examples=300)
@given(chains(5), clusters(3, 3))
def test_on_machines_ours_is_never_slower(profile, cluster):
    """With links that are no faster outside a machine than in it. A stage of ours may span
    machines by devices, which the paper's levels cannot say."""
    inner, outer = cluster.levels
    bandwidth = min(inner.bandwidth, outer.bandwidth)
    cluster = replace(cluster, levels=(inner, replace(outer, bandwidth=bandwidth)))
    found = optimum(profile, cluster).seconds
    assert found <= bottleneck_of_the_paper(profile, cluster) * (1 + 1e-9)


def test_a_plan_over_part_of_a_machine_is_what_the_paper_s_levels_cannot_say():
    """Three machines of two devices: 5-1 is faster than any plan of whole machines."""
    light = Layer("light", "Conv2d", 5.0, 0.0, 1, 1)
    heavy = Layer("heavy", "Linear", 1.0, 0.0, 1, 10**6)
    profile = Profile("p", ModelGraph.chain((light, heavy)), 1)
    cluster = Cluster((Level(2, 100.0), Level(3, 100.0)))
    found = optimum(profile, cluster)
    assert found.partition.label == "5-1"
    assert found.seconds < bottleneck_of_the_paper(profile, cluster)


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the published profiles are not beside")
def test_alexnet_on_eight_devices_is_planned_as_by_the_paper():
    profile, cluster = load("alexnet"), Cluster((Level(8, 1.25e9),))
    best = min(bottleneck_of_the_paper(profile, on(cluster, count)) for count in range(1, 9))
    assert optimum(profile, cluster).seconds == pytest.approx(best)
