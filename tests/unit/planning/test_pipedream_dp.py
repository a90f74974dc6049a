"""PipeDream's planner against every partition there is, on small chains and clusters."""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.baselines import data_parallel
from backend.planning.pipedream_dp import bottleneck_seconds, pipedream, solve
from backend.planning.plan import PlanDoesNotFit, Stage
from backend.profiles.profile import Layer, ModelGraph, Profile

numbers = st.integers(0, 20)
layers = st.builds(Layer, st.just("l"), st.just("Linear"), numbers, numbers, numbers, numbers)


def profiles(most):
    chains = st.lists(layers, min_size=1, max_size=most)
    return chains.map(lambda chain: Profile("random", ModelGraph.chain(tuple(chain)), 1))


def levels(most):
    return st.builds(Level, st.integers(1, most), st.integers(1, 20).map(float))


def compositions(total: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `total` as a sum of positive numbers, order counted."""
    for number in range(total):
        for stops in combinations(range(1, total), number):
            bounds = (0, *stops, total)
            yield tuple(b - a for a, b in pairwise(bounds))


def brute_force(profile: Profile, cluster: Cluster) -> float:
    """The smallest bottleneck over all partitions and replications, written out from the
    paper with the ring's 4 (m-1)/m |w| a round: no recursion over splits, no prefix sums."""
    chain = profile.layers

    @cache
    def member(level: int, first: int, stop: int) -> float:
        """Layers first..stop-1 on one member of the level above, which is all of `level`."""
        if level == 0:
            return sum(x.forward + x.backward for x in chain[first:stop]) / cluster.device.speed
        return min(
            pipeline(level, first, sizes, members)
            for sizes in compositions(stop - first)
            for members in compositions(cluster.levels[level - 1].count)
            if len(sizes) == len(members)
        )

    def pipeline(level: int, first: int, sizes: tuple[int, ...], members: tuple[int, ...]) -> float:
        bandwidth = cluster.levels[level - 1].bandwidth
        seconds, begin = [], first
        for size, m in zip(sizes, members, strict=True):
            weights = sum(x.parameter_bytes for x in chain[begin : begin + size])
            sync = 4 * (m - 1) / m * weights / bandwidth
            seconds.append(max(member(level - 1, begin, begin + size), sync) / m)
            if begin > first:
                seconds.append(2 * chain[begin - 1].output_bytes / bandwidth)
            begin += size
        return max(seconds)

    return member(len(cluster.levels), 0, len(chain))


def cost_of_answer(profile: Profile, cluster: Cluster) -> float:
    """The bottleneck of the stages that are handed out, not of the table they come from."""
    tables = solve(profile, cluster)

    def cost(level: int, first: int, stop: int) -> float:
        if level == 0:
            return sum(x.compute for x in profile.layers[first:stop]) / cluster.device.speed
        bandwidth, seconds = cluster.levels[level - 1].bandwidth, []
        for begin, end, m in tables[level - 1].stages(first, stop):
            weights = sum(x.parameter_bytes for x in profile.layers[begin:end])
            sync = 4 * (m - 1) / m * weights / bandwidth
            seconds.append(max(cost(level - 1, begin, end), sync) / m)
            if begin > first:
                seconds.append(2 * profile.layers[begin - 1].output_bytes / bandwidth)
        return max(seconds)

    return cost(len(tables), 0, len(profile.layers))


@settings(max_examples=1500, deadline=None)
@given(profiles(6), levels(6), st.sampled_from([0.5, 1.0, 3.0]))
def test_one_level_equals_brute_force(profile, level, speed):
    cluster = Cluster((level,), Device(speed=speed))
    expected = brute_force(profile, cluster)
    assert bottleneck_seconds(profile, cluster) == pytest.approx(expected)
    assert cost_of_answer(profile, cluster) == pytest.approx(expected)


@settings(max_examples=700, deadline=None)
@given(profiles(5), levels(4), levels(4))
def test_two_levels_equal_brute_force(profile, inner, outer):
    cluster = Cluster((inner, outer))
    expected = brute_force(profile, cluster)
    assert bottleneck_seconds(profile, cluster) == pytest.approx(expected)
    assert cost_of_answer(profile, cluster) == pytest.approx(expected)


@settings(max_examples=150, deadline=None)
@given(profiles(4), levels(2), levels(3), levels(2))
def test_three_levels_equal_brute_force(profile, inner, middle, outer):
    cluster = Cluster((inner, middle, outer))
    assert bottleneck_seconds(profile, cluster) == pytest.approx(brute_force(profile, cluster))


@settings(max_examples=200, deadline=None)
@given(profiles(5), levels(4), levels(3))
def test_every_device_is_used_once(profile, inner, outer):
    cluster = Cluster((inner, outer))
    partition = pipedream(profile, cluster)
    used = [device for stage in partition.stages for device in stage.devices]
    assert sorted(used) == list(range(cluster.num_devices))


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


def test_replicas_of_an_inner_pipeline_alternate_between_servers():
    """Two servers of two: in each a two-stage pipeline, replicated across the servers. The
    microbatches of a replica then stay in its server: replica k of both stages is in one."""
    heavy = Layer("l", "Linear", 0.5, 0.5, 10**6, 10**8)
    profile = Profile("p", ModelGraph.chain((heavy, heavy)), 1)
    partition = pipedream(profile, Cluster((Level(2, 1e7), Level(2, 1e9))))
    assert partition.stages == (Stage(0, 1, (0, 2)), Stage(1, 2, (1, 3)))


@pytest.mark.parametrize("num_layers", [1, 500])
def test_work_that_would_take_minutes_is_refused_with_its_size(num_layers):
    with pytest.raises(PlanDoesNotFit, match=f"{num_layers} layers on 4096 devices"):
        pipedream(uniform(num_layers, 1.0, 1, 1), Cluster((Level(4096, 1e9),)))
