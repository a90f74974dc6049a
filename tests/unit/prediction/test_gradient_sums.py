"""Sums of gradients in buckets: when each may begin, and what of them a backward hides."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.ring import RingLinks, ring
from backend.pipeline.actions import AllReduce
from backend.pipeline.links import OwnLinks, SumPart, exposed
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.simulate import simulate
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.durations import PlanDurations
from backend.prediction.gradient_sums import pieces
from backend.prediction.predict import predict
from backend.prediction.shapes import steady_shape
from backend.prediction.shared_links import ClusterLinks
from backend.prediction.weight_update_cost import WeightUpdateCost
from backend.profiles.layer import Layer, LayerSums
from backend.profiles.profile import ModelGraph, Profile

FLAT = Cluster((Level(2, 100.0),), Device())
OVER = RingLinks(2, frozenset({(0.0, 100.0)}))
"""Two ranks: a sum of n bytes takes n / 100 seconds."""
LAYERS = tuple(
    Layer(f"l{n}", "Linear", 1.0, backward, 0, held)
    for n, (backward, held) in enumerate(((1.0, 40), (2.0, 300), (3.0, 60), (4.0, 50)))
)


def both(layers=LAYERS, schedule="pipedream", batch=1):
    """Data parallelism on both devices."""
    profile = Profile("p", ModelGraph.chain(layers), 1)
    return profile, Plan("", Partition((Stage(0, len(layers), (0, 1)),)), schedule, 1, batch)


def test_buckets_fill_from_the_last_layer_and_the_last_one_waits_for_the_end():
    assert list(pieces(LayerSums.of(LAYERS), 10.0, OVER, 100)) == [
        SumPart(3.0, 1.1),  # layers 3 and 2
        SumPart(1.0, 3.0),
        SumPart(0.0, 0.4),
    ]
    assert pieces(LayerSums.of(LAYERS), 5.0, OVER, 100)[0] == SumPart(1.5, 1.1)
    assert list(pieces(LayerSums.of(LAYERS), 10.0, OVER, 1000)) == [SumPart(0.0, 4.5)]
    bare = replace(LAYERS[0], parameter_bytes=0)
    assert list(pieces(LayerSums.of((bare, *LAYERS[1:])), 10.0, OVER, 100)) == [
        SumPart(3.0, 1.1),
        SumPart(0.0, 3.0),
    ]
    assert list(pieces(LayerSums.of((bare,)), 10.0, OVER, 100)) == [SumPart(0.0, 0.0)]


def test_what_a_backward_does_not_hide_is_waited_for():
    """Layers 3 and 2 from -3 to -1.9, layer 1 from -1 to 2, layer 0 from 2 to 2.4."""
    assert exposed([SumPart(3.0, 1.1), SumPart(1.0, 3.0), SumPart(0.0, 0.4)]) == pytest.approx(2.4)
    assert exposed([SumPart(3.0, 1.1), SumPart(1.0, 0.5), SumPart(0.0, 0.4)]) == pytest.approx(0.4)
    assert exposed([]) == 0.0


def test_data_parallelism_waits_for_what_is_left_of_its_sums():
    """4 forwards, 10 of backward, 2.4 of sums; all at once they would take 4.5."""
    profile, plan = both()
    durations = PlanDurations(profile, plan.partition, FLAT, bucket_bytes=100)
    assert durations.exposed(0, (0, 1)) == pytest.approx(2.4)
    assert durations.all_reduce(0, (0, 1)) == pytest.approx(4.5)
    assert predict(profile, FLAT, plan).seconds_per_minibatch == pytest.approx((14 + 4.5) / 2)
    large = tuple(replace(each, parameter_bytes=each.parameter_bytes * 2**20) for each in LAYERS)
    fast = Cluster((Level(2, 100.0 * 2**20),), Device())
    whole = predict(both(large)[0], fast, plan).seconds_per_minibatch
    assert whole == pytest.approx((14 + 2.4) / 2)


def test_a_split_backward_hides_no_more_than_its_weights_half():
    profile, plan = both()
    split = PlanDurations(profile, plan.partition, FLAT, (WeightUpdateCost(is_split=True),))
    apart = replace(split, bucket_bytes=100)
    assert [piece.before for piece in apart.pieces(0, (0, 1))] == pytest.approx([3.0, 1.0, 0.0])
    halves = tuple(replace(e, backward_input=e.backward / 2) for e in (LAYERS[0], *LAYERS))
    behind = Partition((Stage(0, 1, (2,)), Stage(1, 5, (0, 1))))
    apart = replace(apart, profile=Profile("h", ModelGraph.chain(halves), 1), partition=behind)
    apart = replace(apart, cluster=Cluster((Level(3, 100.0),)), update_costs=split.update_costs * 2)
    assert [piece.before for piece in apart.pieces(1, (1, 2))] == pytest.approx([1.5, 0.5, 0.0])


def test_a_ring_of_machines_uses_the_links_between_them_for_their_share():
    cluster = Cluster((Level(2, 1e3), Level(2, 1e2), Level(2, 1e1)))
    partition = Partition((Stage(0, 4, tuple(range(8))),))
    links = ClusterLinks(cluster, PlanDurations(both()[0], partition, cluster))
    ring_of_all = links.ring(_all_reduce(8)).links
    assert sorted(ring_of_all) == [1, 3, 5, 7]
    assert {link for link, _ in ring_of_all[1]} == {("out of", 2, 0), ("into", 2, 1)}
    found = dict(pair for each in ring_of_all.values() for pair in each)
    assert len(found) == 2 * (4 + 2)
    assert found["out of", 4, 0] == found["into", 4, 0] == found["out of", 2, 1] == 1.0
    assert found["out of", 2, 0] == found["into", 2, 1] == 0.1
    inside = Partition((Stage(0, 4, (0, 1)),))
    assert (
        ClusterLinks(cluster, PlanDurations(both()[0], inside, cluster)).ring(_all_reduce(2))
        is None
    )
    assert ring(cluster, (0, 1)).seconds(1e3) == 1.0


def _all_reduce(size):
    return AllReduce(0, tuple(range(size)), 1)


def shared():
    """Two stages of two replicas; a server has one replica of each."""
    places = ((0, 2), (1, 3))
    layers = tuple(Layer(f"l{n}", "x", 1.0, 1.0, 0, 300) for n in range(2))
    stages = tuple(Stage(n, n + 1, devices) for n, devices in enumerate(places))
    return Profile("p", ModelGraph.chain(layers), 1), Plan("", Partition(stages), "pipedream", 1)


def test_sums_of_two_stages_over_one_link_take_turns():
    """Each sum lasts 3 s on the link between the servers, so that a round of two microbatches takes
    6; with links of their own 2 of compute and 3 of a sum."""
    profile, plan = shared()
    servers = Cluster((Level(2, 1e6), Level(2, 100.0)), Device())
    flat = Cluster((Level(4, 100.0),), Device())
    together = predict(profile, servers, plan).seconds_per_minibatch
    apart = predict(profile, flat, plan).seconds_per_minibatch
    assert together == pytest.approx(6 / 2)
    assert apart == pytest.approx(5 / 2)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.floats(0.1, 3), st.integers(0, 400)), min_size=2, max_size=5),
    st.sampled_from(["pipedream", "1f1b-flush", "gpipe", "zb-h1"]),
    st.sampled_from([((0, 2), (1,)), ((0, 1, 2), (3,)), ((1,), (0, 2)), ((0, 2), (1, 3))]),
    st.integers(1, 500),
)
def test_links_that_others_use_too_make_nothing_sooner(drawn, name, places, bucket):
    """Beside links of one's own, and later by no more than all that is sent."""
    layers = tuple(Layer(f"l{n}", "x", b / 2, b, 50, held) for n, (b, held) in enumerate(drawn))
    profile = Profile("p", ModelGraph.chain(layers), 1)
    stages = Partition((Stage(0, 1, places[0]), Stage(1, len(layers), places[1])))
    cluster = Cluster((Level(2, 300.0), Level(2, 100.0)))
    plan = Plan("", stages, name, 1, 1 if name == "pipedream" else 12)
    durations = PlanDurations(profile, stages, cluster, bucket_bytes=bucket)
    program = lower(schedule(name), steady_shape(plan))
    alone = simulate(program, durations, OwnLinks())
    on_links = simulate(program, durations, ClusterLinks(cluster, durations))
    assert (on_links.end >= alone.end - 1e-9).all()
    assert (
        on_links.makespan
        <= alone.makespan
        + sum(
            piece.seconds
            for s in (0, 1)
            for piece in durations.pieces(s, program.shape.group_of(s))
        )
        * program.shape.num_microbatches
        + 0.5 * 4 * program.shape.num_microbatches
    )
