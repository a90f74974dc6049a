"""Few devices: every set of them for every stage."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from drawn import drawn
from every_placement import fastest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.memory import MemoryRule
from backend.planning.pipedream.alike_devices import AlikeDevices
from backend.planning.pipedream.bottleneck import CostModel
from backend.planning.pipedream.ideals import Ideals
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import PlanDoesNotFit, Stage
from backend.planning.work import SearchWork
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

PAIR = (Layer("a", "Linear", 1, 0, 60, 4), Layer("b", "Linear", 1, 0, 0, 4))
TWO = Profile("p", ModelGraph.chain(PAIR), 1)


def _cluster(levels, speeds, memory=()):
    memories = memory or (None,) * len(speeds)
    each = tuple(Device(speed=s, memory=m) for s, m in zip(speeds, memories, strict=True))
    return Cluster(tuple(Level(*level) for level in levels), each[0], each)


@settings(max_examples=150)
@given(st.lists(st.integers(0, 2), min_size=8, max_size=8), st.booleans())
def test_a_cut_is_charged_as_in_the_best_order_of_replicas(labels, is_deep):
    """Of the devices, 1 are in front of the cut and 2 behind it."""
    levels = ((2, 10.0), (2, 4.0), (2, 1.0)) if is_deep else ((4, 10.0), (2, 3.0))
    sides = [[d for d, label in enumerate(labels) if label == side] for side in (1, 2)]
    if not all(sides) or max(map(len, sides)) > 4:
        return
    cluster = _cluster(levels, range(1, 9))
    devices, judge = AlikeDevices(cluster), CostModel(TWO, cluster)
    front, behind = (
        tuple(sum(d in side for d in group) for group in devices.groups) for side in sides
    )
    orders = product(*(permutations(side) for side in sides))
    best = min(judge.cut(Stage(0, 1, a), Stage(1, 2, b)) for a, b in orders)
    exchanged = TWO.graph.exchanged_bytes[0]
    assert exchanged * devices.cut_rate(front, behind) == pytest.approx(best)


def test_members_that_are_alike_change_places_and_others_do_not():
    devices = AlikeDevices(_cluster(((2, 2.0), (3, 1.0)), (1, 2, 2, 2, 2, 1)))
    assert devices.groups == ((0,), (1,), (5,), (4,), (2, 3))
    assert devices.canonical([1, 0, 0, 1, 2]) == devices.canonical([0, 1, 1, 0, 2])
    assert devices.canonical([1, 0, 0, 1, 2]) != devices.canonical([1, 1, 0, 0, 2])
    assert len(list(devices.chosen(devices.every))) == 3 * (4 * 5 // 2) - 1
    assert devices.span((0, 0, 0, 0, 1)) == 0
    assert devices.span((0, 0, 0, 0, 2)) == 1
    assert devices.span((1, 0, 0, 0, 1)) == 2


@pytest.mark.parametrize("number", range(12))
def test_six_unequal_devices_have_no_faster_plan(number):
    case = drawn("2 levels", number)
    shape = ((2, 10.0), (3, 3.0)) if number % 2 else ((6, 5.0),)
    speeds = (1, 2, 1, 0.5, 2, 1) if number % 3 else (1, 1, 3, 3, 1, 1)
    cluster = _cluster(shape, speeds)
    layers = case.profile.layers[:2]
    profile = replace(case.profile, graph=ModelGraph.chain(layers))
    found = optimum(profile, cluster)
    best, plan = fastest(profile, cluster, None, found)
    assert found.seconds == pytest.approx(best), plan
    assert found.lower_bound == pytest.approx(found.seconds)


def test_devices_of_unequal_memories_have_no_faster_plan():
    layers = tuple(Layer(f"l{n}", "Linear", 1.0, 0.0, 10, 2) for n in range(4))
    profile = Profile("p", ModelGraph.chain(layers), 1)
    cluster = _cluster(((3, 100.0),), (1.0, 2.0, 1.0), (70.0, 200.0, 500.0))
    found = optimum(profile, cluster, memory=MemoryRule(500.0, PIPEDREAM))
    best, _ = fastest(profile, cluster, MemoryRule(500.0, PIPEDREAM), found)
    assert found.seconds == found.lower_bound == pytest.approx(best)


def test_what_does_not_fit_anywhere_is_refused():
    cluster = _cluster(((2, 1.0),), (1, 2), (10.0, 20.0))
    with pytest.raises(PlanDoesNotFit, match="the smallest"):
        optimum(TWO, cluster, memory=MemoryRule(20.0, PIPEDREAM))


@pytest.mark.parametrize("most", [2e3, 1e4, 1e5, 4e6])
def test_sixteen_devices_of_two_kinds_are_planned_within_the_work(most):
    layers = tuple(Layer(f"l{n}", "Linear", 1.0 + n % 3, 1.0, 4 + n % 5, 30) for n in range(16))
    profile = Profile("p", ModelGraph.chain(layers), 1)
    cluster = _cluster(((16, 5.0),), (1.0, 3.0) * 8)
    found = optimum(profile, cluster, work=SearchWork(most))
    assert found.lower_bound <= found.seconds
    assert found.gap == 0 or most < 4e6


def test_sets_of_different_sizes_are_not_nested_for_that_alone():
    graph = ModelGraph(tuple(Layer(n, "Linear", 1, 1, 1, 1) for n in "abc"), ((1, 2),))
    members = [[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]]
    ideals = Ideals(Profile("p", graph, 1), np.array(members, bool), False)
    assert not ideals.is_chain
