"""The cost model's formulas, by hand."""

import numpy as np
import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.cost import (
    Chain,
    cut_seconds,
    fewest_members,
    floor_seconds,
    spans,
    stage_seconds,
    sync_seconds,
)
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = tuple(
    Layer(f"l{n}", "Linear", forward=n, backward=2 * n, output_bytes=10 * n, parameter_bytes=n)
    for n in (1, 2, 3)
)


def test_a_ring_moves_four_shares_of_the_weights_through_each_link():
    assert sync_seconds(1000, members=4, bandwidth=10) == pytest.approx(4 * 3 / 4 * 1000 / 10)


def test_one_member_has_nothing_to_synchronise():
    assert sync_seconds(1000, members=1, bandwidth=10) == 0
    assert stage_seconds(3.0, 1000, members=1, bandwidth=10) == 3.0


def test_a_stage_takes_the_longer_of_compute_and_synchronisation():
    assert stage_seconds(900.0, 1000, members=4, bandwidth=10) == pytest.approx(900 / 4)
    assert stage_seconds(3.0, 1000, members=4, bandwidth=10) == pytest.approx(300 / 4)


def test_a_cut_carries_activations_there_and_gradients_back():
    assert cut_seconds(100, bandwidth=10) == 10


def test_a_chain_sums_by_differences():
    chain = Chain(Profile("p", ModelGraph.chain(LAYERS), 1), Device(speed=2.0))
    assert chain.compute[3] - chain.compute[1] == pytest.approx((6 + 9) / 2)
    assert chain.parameters.tolist() == [0, 1, 3, 6]
    assert chain.exchanged.tolist() == [0, 20, 40, 0]


def test_the_update_counts_as_compute():
    layer = Layer("l", "Linear", 1, 2, 0, 8, update=4)
    chain = Chain(Profile("p", ModelGraph((layer,), ()), 1), Device())
    assert chain.compute[1] == 7


def test_a_skip_connection_is_in_every_cut_that_it_crosses():
    graph = ModelGraph(LAYERS, ((0, 1), (1, 2), (0, 2)))
    assert Chain(Profile("p", graph, 1), Device()).exchanged.tolist() == [0, 20, 60, 0]


def test_a_stage_without_layers_is_never_the_smallest():
    sums = spans(np.array([0.0, 1.0, 3.0]))
    assert sums[2, 0] == 3
    assert sums[2, 1] == 2
    assert np.isinf([sums[1, 1], sums[0, 2]]).all()


@pytest.mark.parametrize("overlap", [True, False])
def test_no_number_of_replicas_brings_a_layer_below_the_floor(overlap):
    chance = np.random.default_rng(1)
    for _ in range(200):
        devices = int(chance.integers(1, 40))
        seconds, weights = chance.uniform(0, 9), int(chance.integers(0, 90))
        profile = Profile("p", ModelGraph.chain((Layer("l", "x", seconds, 0, 0, weights),)), 1)
        cluster = Cluster((Level(devices, 10.0),))
        every = [stage_seconds(seconds, weights, n, 10.0, overlap) for n in range(1, devices + 1)]
        assert floor_seconds(profile, cluster, overlap) == max(min(every), seconds / devices)


@pytest.mark.parametrize("overlap", [True, False])
def test_the_fewest_members_are_the_first_that_reach_the_limit(overlap):
    chance = np.random.default_rng(0)
    for _ in range(500):
        inner, weights, limit = chance.uniform(0.01, 20, 3)
        least = float(chance.integers(1, 4))
        found = float(fewest_members(inner, weights, 1.0, limit, overlap, least))
        counts = np.arange(least, 4000)
        reached = stage_seconds(inner, weights, counts, 1.0, overlap) <= limit
        assert found == counts[reached][0]


def test_without_overlap_synchronisation_comes_on_top():
    assert stage_seconds(3.0, 10, 2, 10, overlap=False) == pytest.approx((3 + 2) / 2)
