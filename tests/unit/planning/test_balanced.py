"""Pipelines of equal stages and their copies."""

from itertools import combinations

import pytest
from brute_force import chains
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.balanced import (
    copied,
    even_stops,
    gpipe_balanced,
    interleaved,
    rate_2bw,
    two_bw,
    widths,
)
from backend.planning.cost import Chain
from backend.planning.plan import Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

EVEN = Profile("p", ModelGraph.chain((Layer("l", "Linear", 1.0, 2.0, 10, 40),) * 8), 1)
CHAIN = Chain(EVEN, Device())


def squares(profile, stops):
    firsts = (0, *stops[:-1])
    return sum(
        sum(x.compute for x in profile.layers[a:b]) ** 2 for a, b in zip(firsts, stops, strict=True)
    )


@settings(max_examples=300)
@given(chains(7), st.integers(1, 4))
def test_even_stages_have_the_smallest_sum_of_squares(profile, count):
    count = min(count, len(profile.layers))
    found = even_stops(profile, count)
    assert len(found) == count
    assert found[-1] == len(profile.layers)
    best = min(
        squares(profile, (*cuts, len(profile.layers)))
        for cuts in combinations(range(1, len(profile.layers)), count - 1)
    )
    assert squares(profile, found) == pytest.approx(best)


def test_gpipe_has_one_stage_per_device():
    assert gpipe_balanced(EVEN, Cluster((Level(4, 1.0),))).stages == tuple(
        Stage(2 * n, 2 * n + 2, (n,)) for n in range(4)
    )


def test_a_copied_pipeline_stands_on_neighbouring_devices():
    assert copied([4, 8], 2).stages == (Stage(0, 4, (0, 2)), Stage(4, 8, (1, 3)))


def test_interleaved_stages_take_turns_on_the_positions():
    plan = interleaved(EVEN, depth=2, width=1, chunks=2)
    assert [stage.devices for stage in plan.stages] == [(0,), (1,), (0,), (1,)]
    assert (plan.chunks, plan.pipeline_size) == (2, 2)


def test_2bw_takes_the_width_and_depth_with_the_best_rate():
    for bandwidth in (1.0, 100.0, 1e6):
        cluster = Cluster((Level(4, bandwidth),))
        rates = {p.label: rate_2bw(CHAIN, cluster, p, 4, False) for p in widths(EVEN, cluster)}
        assert rates[two_bw(EVEN, cluster, 4).label] == max(rates.values())
    assert two_bw(EVEN, Cluster((Level(4, 1e6),)), 4).label == "4"
    heavy = Profile("p", ModelGraph.chain((Layer("l", "Linear", 1.0, 2.0, 0, 4000),) * 8), 1)
    assert two_bw(heavy, Cluster((Level(4, 1.0),)), 4).label == "1-1-1-1"


def test_2bw_s_rate_by_hand():
    """Two stages of 12 s with a cut of 2 10 / 5 = 4 s, or 16 s of compute when recomputed."""
    cluster = Cluster((Level(2, 5.0),))
    pipeline = copied([4, 8], 1)
    assert rate_2bw(CHAIN, cluster, pipeline, 4, False) == pytest.approx(1 / 16)
    assert rate_2bw(CHAIN, cluster, pipeline, 4, True) == pytest.approx(1 / 20)
    parallel = copied([8], 2)
    reduced = 4 * (1 / 2) * 320 / 5 / 4
    assert rate_2bw(CHAIN, cluster, parallel, 4, False) == pytest.approx(2 / max(24, reduced))
