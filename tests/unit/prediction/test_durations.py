"""Seconds of actions, by hand."""

import pytest

from backend.pipeline.actions import (
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Flow,
    Forward,
    Message,
    Recompute,
    Step,
)
from backend.prediction.durations import PlanDurations
from backend.prediction.weight_update_cost import WeightUpdateCost
from backend.profiles.layer import Layer
from backend.profiles.message_overhead import MessageOverhead
from backend.profiles.profile import ModelGraph, Profile


@pytest.fixture
def durations(profile, cluster, make_plan):
    """Layers a, b on devices 0 and 2 (ranks 0, 1); layer c on device 3 (rank 2)."""
    return PlanDurations(profile, make_plan((2, (0, 2)), (3, (3,))).partition, cluster)


@pytest.mark.parametrize(
    ("action", "seconds"),
    [
        (Forward(0, 5), 3 / 2),
        (Forward(1, 5), 4 / 2),
        (Backward(0, 5), 5 / 2),
        (BackwardInput(1, 5), 3 / 2),
        (BackwardWeight(1, 5), 3 / 2),
        (Step(0), 0.5 / 2),
        (Step(1), 0.25 / 2),
    ],
)
def test_compute_is_the_profile_over_the_speed(durations, action, seconds):
    assert durations.compute(0, action) == seconds


def test_a_transfer_takes_the_link_between_the_ranks_devices(durations):
    activation = Message(Flow.ACTIVATION, 0, 7)
    assert durations.transfer(activation, source=0, to=2) == 0.5 + 200 / 100
    assert durations.transfer(activation, source=1, to=2) == 0.125 + 200 / 1000


def test_a_gradient_is_as_large_as_the_activation_that_it_answers(durations):
    gradient = Message(Flow.GRADIENT, 1, 7)
    assert durations.transfer(gradient, source=2, to=1) == 0.125 + 200 / 1000


def test_a_ring_goes_at_the_pace_of_its_slowest_link(durations):
    assert durations.all_reduce(0, (0, 1)) == 2 * (0.5 + 1000 / 2 / 100)
    assert durations.reduced_bytes(0, 2) == 1000


def test_a_ring_inside_a_server_uses_the_fast_link(profile, cluster, make_plan):
    durations = PlanDurations(profile, make_plan((3, (0, 1))).partition, cluster)
    assert durations.all_reduce(0, (0, 1)) == 2 * (0.125 + 5000 / 2 / 1000)


def test_a_ring_of_four_takes_six_steps(profile, cluster, make_plan):
    durations = PlanDurations(profile, make_plan((3, (0, 1, 2, 3))).partition, cluster)
    assert durations.all_reduce(0, (0, 1, 2, 3)) == 6 * (0.5 + 5000 / 4 / 100)
    assert durations.reduced_bytes(0, 4) == 6 / 4 * 5000


def test_replicas_that_share_state_update_a_part_and_gather_the_others(profile, cluster, make_plan):
    partition = make_plan((2, (0, 2)), (3, (3,))).partition
    durations = PlanDurations(profile, partition, cluster, sharded=True)
    gathering = 0.5 + 1000 / 2 / 100
    assert durations.gathering == (gathering, 0.0)
    assert durations.compute(0, Step(0)) == 0.5 / 2 / 2 + gathering
    assert durations.compute(2, Step(1)) == 0.25 / 2
    assert durations.update == (0.5 / 2 / 2, 0.25 / 2)
    assert durations.collective(Average(0, (0, 1), 1)) == 0.5 / 2
    assert durations.all_reduce(0, (0, 1)) == 2 * gathering
    assert durations.reduced_bytes(0, 2) == 1000 + 500


def test_one_rank_has_nothing_to_reduce(durations):
    assert durations.all_reduce(1, (2,)) == 0


def test_halves_of_a_backward_are_those_measured_else_equal(cluster, make_plan):
    layers = tuple(
        Layer(
            f"l{number}",
            "Linear",
            1.0,
            4.0,
            output_bytes=0,
            parameter_bytes=8,
            backward_input=half,
            backward_weight=rest,
        )
        for number, (half, rest) in enumerate(((1.0, 3.5), (1.0, 0.0), (0.0, 0.0), (1.0, 3.5)))
    )
    profile = Profile("halves", ModelGraph.chain(layers), microbatch=8)
    plan = make_plan((1, (0,)), (2, (1,)), (3, (2,)), (4, (3,)))
    durations = PlanDurations(profile, plan.partition, cluster)
    halves = [
        (durations.compute(s, BackwardInput(s, 0, 0)), durations.compute(s, BackwardWeight(s, 0)))
        for s in range(4)
    ]
    speeds = [cluster.at(device).speed for device in range(4)]
    seconds = [(0.0, 4.0), (1.0, 3.0), (2.0, 2.0), (1.0, 3.5)]
    assert halves == [(a / v, b / v) for (a, b), v in zip(seconds, speeds, strict=True)]


def kept(cluster, make_plan, *cost, message_overhead=None):
    """Two stages of a layer each, on devices 0 and 1."""
    layers = tuple(
        Layer("ab"[n], "Linear", 1.0, 2.0, 40, 8, update=1.0, adding=0.3, out_of_place_update=1.5)
        for n in range(2)
    )
    profile = Profile(
        "kept", ModelGraph.chain(layers), microbatch=8, message_overhead=message_overhead
    )
    partition = make_plan((1, (0,)), (2, (1,))).partition
    return PlanDurations(profile, partition, cluster, cost), cluster.at(0).speed


@pytest.mark.parametrize(
    ("cost", "backward", "step"),
    [
        (WeightUpdateCost(), 2.0, 1.0),
        (WeightUpdateCost(renews=True), 2.0, 1.5),
        (WeightUpdateCost(gathered=4), 2.0 + 3 / 4 * 0.3, 1.0 + 2 / 3 * 0.3),
        (WeightUpdateCost(gathered=4, renews=True), 2.0 + 3 / 4 * 0.3, 1.5 + 2 / 3 * 0.3),
        (WeightUpdateCost(replicas=2), 2.0 + 0.3, 1.0 + 2 / 3 * 0.3),
    ],
)
def test_sums_means_and_versions_beside_each_other_cost_what_was_measured(
    cluster, make_plan, cost, backward, step
):
    durations, speed = kept(cluster, make_plan, cost, cost)
    assert durations.compute(0, Backward(0, 0)) * speed == pytest.approx(backward)
    assert durations.compute(0, BackwardWeight(0, 0)) * speed == pytest.approx(backward)
    assert durations.compute(0, Step(0)) * speed == pytest.approx(step)


def test_messages_cost_the_ranks_at_both_ends(cluster, make_plan):
    message_overhead = MessageOverhead(
        send=0.01, send_per_byte=0.001, receive=0.02, receive_per_byte=0.002
    )
    durations, speed = kept(cluster, make_plan, message_overhead=message_overhead)
    post, take = 0.01 + 40 * 0.001, 0.02 + 40 * 0.002
    found = [
        durations.compute(stage, action(stage, 0)) * speed
        for action in (Forward, Backward, Recompute)
        for stage in (0, 1)
    ]
    assert found == pytest.approx([1 + post, 1 + take, 2 + take, 2 + post, 1, 1])
