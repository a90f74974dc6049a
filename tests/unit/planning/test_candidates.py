"""Graphs with too many cuts to look at each: what stands for them, and what is proved."""

import numpy as np
import pytest
from brute_force import clusters, every_plan, graphs, nested_cuts
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_ideals import diamond

from backend.cluster.cluster import Cluster, Level
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.memory import MemoryRule
from backend.planning.pipedream import candidates, planner
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.candidates import Candidates, all_ideals
from backend.planning.pipedream.feasibility import feasible
from backend.planning.pipedream.plan_space import PlanSpace
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import PlanDoesNotFit


@settings(max_examples=100)
@given(graphs(6))
def test_every_downset_is_there_once_with_its_costs(profile):
    found = Candidates.of(profile, free=False)
    each = found.ideals(np.arange(len(found)), complete=True)
    kept = {frozenset(np.flatnonzero(row).tolist()) for row in each.members}
    every = {chain[1] for chain in nested_cuts(profile) if len(chain) > 1}
    assert kept == every | {frozenset(), frozenset(range(len(profile.layers)))}
    assert found.is_exact
    assert len(found) == len(kept)
    for column in range(len(found)):
        one = found.ideals(np.array([column]), complete=True)
        assert one.exchanged_bytes[0] == found.exchanged_bytes[column]
        sums = one.compute[0], one.parameters[0], one.outputs[0]
        assert sums == pytest.approx(found.low[:, column])


@settings(max_examples=100)
@given(graphs(6), st.booleans(), st.integers(2, 12))
def test_columns_and_cells_say_no_more_than_what_they_stand_for(profile, free, most):
    """An ideal is found in a column by its costs: its own lie between those of one, and no fewer
    bytes are alive across it."""
    exact, few = Candidates.of(profile, free), Candidates.of(profile, free, most)
    assume(few.is_whole)
    cells = few.cells(np.arange(len(few)), most)
    for column in range(len(exact)):
        costs = exact.low[:, column : column + 1]
        for low, high, alive in (
            (few.low, few.high, few.exchanged_bytes),
            (
                np.array([cells.compute, cells.parameters, cells.outputs]),
                cells.most,
                cells.exchanged_bytes,
            ),
        ):
            inside = ((low <= costs + 1e-9) & (costs <= high + 1e-9)).all(axis=0)
            assert (inside & (alive <= exact.exchanged_bytes[column] + 1e-9)).any()


@settings(max_examples=100)
@given(graphs(4), clusters(3) | clusters(2, 2), st.integers(1, 4))
def test_the_bound_of_cells_is_below_every_plan(profile, cluster, most):
    """As few columns and cells as there may be: whatever is merged, no plan is lost."""
    few = Candidates.of(profile, most=most)
    assume(few.is_whole)
    space = PlanSpace(few.cells(np.arange(len(few)), most), cluster, relaxed=True)
    best = min(bottleneck(profile, cluster, plan) for plan in every_plan(profile, cluster))
    assert feasible(space, best * (1 + 1e-9)) is not None


@settings(max_examples=60)
@given(graphs(4), clusters(3) | clusters(2, 2), st.sampled_from([None, 60.0, 150.0]))
def test_too_many_cuts_give_a_plan_and_a_bound_around_the_best(profile, cluster, limit):
    """The same graphs with next to no room for cuts: plan and bound enclose brute force."""
    rule = None if limit is None else MemoryRule(limit, PIPEDREAM)
    exact = _optimum(profile, cluster, rule)
    with pytest.MonkeyPatch.context() as patch:
        for module in (candidates, planner):
            patch.setattr(module, "MOST", 3)
        patch.setattr(planner, "FEWER", 3)
        patch.setattr(all_ideals, "__defaults__", (3,))
        found = _optimum(profile, cluster, rule)
    if found is None or exact is None:
        assert exact is None or rule is not None
        return
    assert found.seconds >= exact.lower_bound * (1 - 1e-9)
    assert found.lower_bound <= exact.seconds * (1 + 1e-9)
    assert bottleneck(profile, cluster, found.partition) <= found.seconds * (1 + 1e-9)


def _optimum(profile, cluster, rule):
    try:
        return optimum(profile, cluster, memory=rule)
    except PlanDoesNotFit:
        return None


def test_a_wide_graph_has_its_like_cuts_merged_and_is_planned():
    """Eight branches of 130 layers: 131^8 ideals."""
    profile = diamond(8, 130)
    assert all_ideals(profile) is None
    few = Candidates.of(profile)
    assert few.is_whole
    assert not few.is_exact
    assert 1000 < len(few) <= 2 * candidates.MOST_COLUMNS
    chosen = few.thinned(np.arange(len(few)), 500)
    for producer, consumer in profile.graph.edges:
        assert (chosen.members[:, producer] | ~chosen.members[:, consumer]).all()
    found = optimum(profile, Cluster((Level(4, 100.0), Level(4, 10.0))))
    assert 0 < found.lower_bound <= found.seconds
    assert found.gap < 0.2


def test_branches_that_are_alike_are_not_taken_for_one():
    """Merged columns of equal costs stand for several ideals still."""
    few = Candidates.of(diamond(3, 4), most=20)
    assert len(few) < 5**3
    assert not few.is_exact


def test_cuts_too_heavy_for_a_better_plan_are_not_asked_about():
    """Slow links leave few of 14,641 cuts and more: the plan is proved to be the best."""
    profile = diamond(4, 10)
    found = optimum(profile, Cluster((Level(4, 1.0),)))
    assert all_ideals(profile) is None
    assert found.gap == pytest.approx(0.0, abs=1e-6)
