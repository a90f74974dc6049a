"""Seconds of actions, by hand."""

import pytest

from backend.pipeline.actions import (
    Backward,
    BackwardInput,
    BackwardWeight,
    Flow,
    Forward,
    Message,
    Step,
)
from backend.prediction.durations import PlanDurations
from backend.profiles.profile import Layer, ModelGraph, Profile


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


def test_one_rank_has_nothing_to_reduce(durations):
    assert durations.all_reduce(1, (2,)) == 0


def test_halves_of_a_backward_are_those_measured_else_equal(cluster, make_plan):
    layers = tuple(
        Layer("l", "Linear", 1.0, 4.0, output_bytes=0, parameter_bytes=8, backward_input=half)
        for half in (1.0, 0.0)
    )
    profile = Profile("halves", ModelGraph.chain(layers), microbatch=8)
    durations = PlanDurations(profile, make_plan((1, (0,)), (2, (1,))).partition, cluster)
    halves = [
        (durations.compute(s, BackwardInput(s, 0, 0)), durations.compute(s, BackwardWeight(s, 0)))
        for s in (0, 1)
    ]
    assert halves == [(1.0 / 2, 3.0 / 2), (2.0 / 2, 2.0 / 2)]
