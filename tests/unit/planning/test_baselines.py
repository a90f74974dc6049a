"""The plans that others are compared with."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.planning.baselines import data_parallel, even_split, model_parallel, straight
from backend.planning.catalog import PLANNERS, planner
from backend.planning.plan import Partition, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

numbers = st.integers(0, 20)
layers = st.builds(Layer, st.just("l"), st.just("Linear"), numbers, numbers, numbers, numbers)
chains = st.lists(layers, min_size=1, max_size=7)
profiles = chains.map(lambda chain: Profile("p", ModelGraph.chain(tuple(chain)), 1))
clusters = st.builds(
    lambda inner, outer: Cluster((inner, outer)),
    st.builds(Level, st.integers(1, 3), st.integers(1, 20).map(float)),
    st.builds(Level, st.integers(1, 3), st.integers(1, 20).map(float)),
)


def partitions(num_layers: int, num_stages: int) -> list[tuple[int, ...]]:
    """The stops of every partition into `num_stages` stages."""
    cuts = combinations(range(1, num_layers), num_stages - 1)
    return [(*stops, num_layers) for stops in cuts]


def stops(partition):
    return tuple(stage.stop for stage in partition.stages)


def longest(profile, ends):
    begins = (0, *ends[:-1])
    return max(
        sum(x.compute for x in profile.layers[a:b]) for a, b in zip(begins, ends, strict=True)
    )


def bottleneck(profile, cluster, ends):
    cuts = [
        2 * profile.layers[end - 1].output_bytes / cluster.link(device, device + 1).bandwidth
        for device, end in enumerate(ends[:-1])
    ]
    return max([longest(profile, ends), *cuts])


def test_data_parallel_is_one_stage_everywhere():
    profile = Profile("p", ModelGraph.chain((Layer("l", "Linear", 1, 1, 1, 1),) * 3), 1)
    stage = data_parallel(profile, Cluster((Level(2, 1.0), Level(3, 1.0)))).stages
    assert [(s.first, s.stop, s.devices) for s in stage] == [(0, 3, (0, 1, 2, 3, 4, 5))]


@settings(max_examples=500)
@given(profiles, clusters)
def test_model_parallel_has_the_smallest_longest_stage(profile, cluster):
    partition = model_parallel(profile, cluster)
    num_stages = min(len(profile.layers), cluster.num_devices)
    assert partition.replicas == (1,) * num_stages
    everything = partitions(len(profile.layers), num_stages)
    best = min(longest(profile, ends) for ends in everything)
    assert longest(profile, stops(partition)) == pytest.approx(best)


@settings(max_examples=500)
@given(profiles, clusters)
def test_straight_is_the_best_of_all_straight_pipelines(profile, cluster):
    partition = straight(profile, cluster)
    assert [stage.devices for stage in partition.stages] == [
        (device,) for device in range(len(partition.stages))
    ]
    costs = {
        ends: bottleneck(profile, cluster, ends)
        for count in range(1, min(len(profile.layers), cluster.num_devices) + 1)
        for ends in partitions(len(profile.layers), count)
    }
    best = min(costs.values())
    assert costs[stops(partition)] == pytest.approx(best)
    assert len(stops(partition)) == min(len(e) for e in costs if costs[e] == pytest.approx(best))


@pytest.mark.parametrize(
    ("num_layers", "num_devices", "sizes"),
    [(7, 3, [3, 2, 2]), (4, 2, [2, 2]), (2, 5, [1, 1]), (1, 1, [1])],
)
def test_even_split_counts_layers(num_layers, num_devices, sizes):
    layer = Layer("l", "Linear", 1, 1, 1, 1)
    profile = Profile("p", ModelGraph.chain((layer,) * num_layers), 1)
    partition = even_split(profile, Cluster((Level(num_devices, 1.0),)))
    assert [stage.stop - stage.first for stage in partition.stages] == sizes


def test_planners_are_found_by_name():
    assert planner("even-split") is even_split
    assert all(entry.title for entry in PLANNERS.values())


def test_an_unknown_planner_names_the_known_ones():
    with pytest.raises(InvalidInput, match="'best'") as refusal:
        planner("best")
    assert "data-parallel" in refusal.value.advice


@pytest.mark.parametrize(
    ("replicas", "short"),
    [
        ((15, 1), "15-1"),
        ((1,) * 16, "1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1"),
        ((1,) * 64, "64 stages of 1"),
        ((2, *(1,) * 63), "64 stages"),
    ],
)
def test_a_table_counts_very_many_stages(replicas: tuple[int, ...], short: str) -> None:
    stages = [Stage(n, n + 1, tuple(range(100 * n, 100 * n + r))) for n, r in enumerate(replicas)]
    assert Partition(tuple(stages)).short_label == short
