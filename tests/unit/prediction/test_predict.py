"""Predictions, where the answer can be worked out by hand."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import InvalidInput
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.planning.plan import Partition, PlanDoesNotFit, Stage
from backend.prediction.predict import predict, predicted_program
from backend.prediction.shapes import microbatch_unit, steady_shape, training_shape
from backend.prediction.steady import on_cluster, seconds_per_microbatch
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

FREE = Cluster((Level(4, 1e30),))
"""Four devices on links that cost nothing."""


def balanced(num_layers: int) -> Profile:
    layer = Layer("l", "Linear", 1.0, 2.0, output_bytes=0, parameter_bytes=8)
    return Profile("balanced", ModelGraph.chain((layer,) * num_layers), microbatch=8)


def test_one_device_takes_the_sum_of_its_layers(profile, make_plan):
    prediction = predict(profile, FREE, make_plan((3, (0,))))
    assert prediction.seconds_per_minibatch == pytest.approx(18 + 0.75)
    assert prediction.samples_per_second == pytest.approx(8 / 18.75)
    assert prediction.stage_seconds == (18,)
    assert (prediction.bubble, prediction.sent_bytes) == (pytest.approx(0), 0)
    assert (prediction.staleness, prediction.versions) == (0, (1,))


def test_a_balanced_pipeline_gives_a_microbatch_per_stage_time(make_plan):
    plan = make_plan((1, (0,)), (2, (1,)), (3, (2,)))
    prediction = predict(balanced(3), FREE, plan)
    assert prediction.seconds_per_minibatch == pytest.approx(3)
    assert (prediction.staleness, prediction.versions) == (2, (3, 2, 1))


def test_the_slowest_stage_sets_the_pace(profile, make_plan):
    prediction = predict(profile, FREE, make_plan((2, (0,)), (3, (1,))))
    assert prediction.seconds_per_minibatch == pytest.approx(10.25)


def test_replicas_share_the_microbatches_and_add_the_reduction(profile, cluster, make_plan):
    """Two devices in a server, speed 2: (18.75 / 2 + 2 (0.125 + 2.5)) per round of two."""
    prediction = predict(profile, cluster, make_plan((3, (0, 1))))
    assert prediction.seconds_per_minibatch == pytest.approx((9.375 + 5.25) / 2)
    assert prediction.sent_bytes == pytest.approx(5000)


def test_a_flush_costs_the_fill_of_every_batch(make_plan):
    """GPipe: (m + p - 1) (F + B) per batch (Huang et al., NeurIPS 2019)."""
    plan = make_plan((1, (0,)), (2, (1,)), schedule="gpipe", batch=4)
    prediction = predict(balanced(2), FREE, plan)
    assert prediction.seconds_per_minibatch == pytest.approx((4 + 1) * 3)
    assert prediction.samples_per_second == pytest.approx(4 * 8 / 15)
    assert prediction.bubble == pytest.approx(1 / 5)
    assert (prediction.staleness, prediction.versions) == (0, (1, 1))


def test_bytes_count_both_ways_over_every_cut(profile, cluster, make_plan):
    prediction = predict(profile, cluster, make_plan((1, (0,)), (2, (1,)), (3, (2,))))
    assert prediction.sent_bytes == pytest.approx(2 * 100 + 2 * 200)


def test_memory_counts_versions_and_flight(profile, cluster, make_plan):
    plan = make_plan((2, (0,)), (3, (1,)))
    memory = predict(profile, cluster, plan, optimizer="adam").memory_bytes
    messages = 2 * 200
    state = 1000 * (2 + 1 + 2), 4000 * (1 + 1 + 2)
    assert memory == (state[0] + 2 * 300 + messages, state[1] + 1 * 250 + messages)


def test_a_device_that_is_too_small_is_refused_with_numbers(profile, make_plan):
    small = Cluster((Level(2, 1.0),), Device("tiny", memory=4096))
    with pytest.raises(PlanDoesNotFit, match="stage 1 needs"):
        predict(profile, small, make_plan((2, (0,)), (3, (1,))))


@pytest.mark.parametrize("name", ["pipedream", "1f1b-flush", "gpipe"])
@pytest.mark.parametrize(
    "stages",
    [
        ((1, (0,)), (3, (1,))),
        ((2, (0, 1, 2)), (3, (3,))),
        ((1, (0, 1)), (2, (2,)), (3, (3,))),
        ((3, (0, 1, 2, 3)),),
    ],
)
def test_the_steady_state_is_that_of_a_segment_four_times_as_long(
    profile, cluster, make_plan, name, stages
):
    batch = 1 if name == "pipedream" else 6
    plan = make_plan(*stages, schedule=name, batch=batch)
    shape = steady_shape(plan)
    longer = Shape(shape.replicas, 4 * shape.num_microbatches, shape.batch)
    timeline, _ = on_cluster(lower(schedule(name), longer), profile, cluster, plan)
    settled = seconds_per_microbatch(timeline, longer, microbatch_unit(plan))
    predicted = predict(profile, cluster, plan).seconds_per_minibatch / batch
    assert predicted == pytest.approx(settled, rel=1e-6)


def test_a_segment_leaves_out_what_is_over(make_plan):
    plan = make_plan((2, (0, 1, 2)), (3, (3,)), schedule="gpipe", batch=4)
    assert training_shape(plan, 31) == Shape((3, 1), 24, 4)


def test_a_segment_of_less_than_one_unit_is_refused(make_plan):
    plan = make_plan((2, (0, 1, 2)), (3, (3,)))
    with pytest.raises(
        InvalidInput, match=r"2 microbatches of 8 samples are too few.*3 are needed"
    ):
        training_shape(plan, 2)


def test_the_predicted_timeline_covers_the_program(profile, cluster, make_plan):
    program, timeline = predicted_program(
        profile, cluster, make_plan((2, (0,)), (3, (1,))), num_microbatches=6
    )
    assert program.shape.num_microbatches == 6
    assert len(timeline.spans) == program.num_actions


@pytest.mark.parametrize(
    ("stages", "changes", "words"),
    [
        (((2, (0,)),), {}, "covers 2 layers, the profile has 3"),
        (((2, (0,)), (3, (9,))), {}, "device 9, the cluster has devices 0 to 3"),
        (((3, (0,)),), {"schedule": "magic"}, "magic"),
        (((3, (0,)),), {"schedule": "forward-only"}, "does not train"),
        (((3, (0,)),), {"batch": 0}, "batch 0"),
    ],
)
def test_a_plan_for_something_else_is_refused(profile, cluster, make_plan, stages, changes, words):
    with pytest.raises(InvalidInput, match=words):
        predict(profile, cluster, replace(make_plan(*stages), **changes))


def test_gaps_of_a_plan_cannot_even_be_written_down():
    with pytest.raises(InvalidInput, match="next free layer is 1"):
        Partition((Stage(0, 1, (0,)), Stage(2, 3, (1,))))
