"""What every cut costs at least, by flows: against all ideals written out."""

import numpy as np
import pytest
from brute_force import clusters, every_plan, graphs, nested_cuts
from cells import network_of_cells
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Level
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.candidates import Candidates
from backend.planning.pipedream.feasibility import feasible
from backend.planning.pipedream.ideals import Ideals
from backend.planning.pipedream.least_cuts import least_cuts
from backend.planning.pipedream.plan_space import PlanSpace
from backend.planning.pipedream.planner import optimum


def every_ideal(profile):
    kept = {chain[1] for chain in nested_cuts(profile) if len(chain) > 1}
    members = np.array([[n in found for n in range(len(profile.layers))] for found in kept])
    return Ideals(profile, members, complete=False)


@settings(max_examples=200)
@given(graphs(6), st.integers(1, 12))
def test_every_cut_is_in_a_cell_that_says_no_more_than_it_costs(profile, windows):
    found = least_cuts(profile, windows)
    cells, every = found.cells, every_ideal(profile)
    least = np.array([cells.compute, cells.parameters, cells.outputs])
    costs = np.array([every.compute, every.parameters, every.outputs])
    for column, alive in zip(costs.T, every.exchanged_bytes, strict=True):
        inside = (least <= column[:, None] + 1e-9) & (column[:, None] <= cells.most + 1e-9)
        assert (inside.all(axis=0) & (cells.exchanged_bytes <= alive)).any()


@settings(max_examples=200)
@given(graphs(6), st.integers(1, 12))
def test_the_least_cut_of_each_cell_is_that_of_an_ideal(profile, windows):
    found = least_cuts(profile, windows)
    for producer, consumer in profile.graph.edges:
        assert (found.ideals.members[:, producer] | ~found.ideals.members[:, consumer]).all()
    assert set(found.cells.exchanged_bytes) <= set(found.ideals.exchanged_bytes)


@settings(max_examples=100)
@given(graphs(4), clusters(3) | clusters(2, 2), st.integers(1, 4))
def test_the_bound_is_below_every_plan(profile, cluster, windows):
    space = PlanSpace(least_cuts(profile, windows).cells, cluster, relaxed=True)
    best = min(bottleneck(profile, cluster, plan) for plan in every_plan(profile, cluster))
    assert feasible(space, best * (1 + 1e-9)) is not None


@pytest.mark.parametrize("num_layers", [921, 1251])
@pytest.mark.parametrize("slower", [1, 10, 100])
def test_cells_that_read_the_two_before_them_have_a_plan_and_a_small_gap(num_layers, slower):
    """One block of hundreds of layers: its ideals cannot be listed."""
    profile = network_of_cells(num_layers)
    cluster = Cluster((Level(4, 12e9 / slower), Level(4, 1.25e9 / slower)))
    found = optimum(profile, cluster)
    assert found.gap <= 0.01
    assert bottleneck(profile, cluster, found.partition) == pytest.approx(found.seconds)


def test_a_block_with_too_many_ideals_is_given_up_and_not_thinned_out():
    few = Candidates.of(network_of_cells(300))
    assert not few.is_whole
    assert len(few) <= 300
