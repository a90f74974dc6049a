"""Measured beside predicted, and where the time went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Level
from backend.pipeline.actions import AllReduce, Backward, Flow, Forward, Message, Recv, Send, Step
from backend.pipeline.timeline import Span, Timeline
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.compare import Cause, attribution, compare
from backend.prediction.predict import predicted_program
from backend.profiles.profile import Layer, ModelGraph, Profile

MESSAGE = Message(Flow.ACTIVATION, 0, 0)
PREDICTED = Timeline(
    (
        Span(0, 0, Forward(0, 0), 0.0, 1.0),
        Span(0, 1, Send(MESSAGE, 1), 1.0, 1.5),
        Span(1, 0, Recv(MESSAGE, 0), 0.0, 1.5),
        Span(1, 1, Forward(1, 0), 1.5, 3.5),
        Span(1, 2, Backward(1, 0), 3.5, 7.5),
        Span(1, 3, Step(1, 1), 7.5, 7.5),
    )
)
MEASURED = Timeline(
    (
        Span(0, 0, Forward(0, 0), 0.0, 1.1),
        Span(0, 1, Send(MESSAGE, 1), 1.1, 1.2),
        Span(1, 0, Recv(MESSAGE, 0), 0.0, 1.4),
        Span(1, 1, Forward(1, 0), 1.4, 3.0),
        Span(1, 2, Backward(1, 0), 3.0, 8.0),
        Span(1, 3, Step(1, 1), 8.0, 8.25),
    )
)


def test_compute_is_joined_by_rank_and_index():
    compared = compare(MEASURED, PREDICTED)
    assert [d.measured.action for d in compared.deviations] == [
        Forward(0, 0),
        Forward(1, 0),
        Backward(1, 0),
        Step(1, 1),
    ]
    assert [d.seconds for d in compared.deviations] == pytest.approx([0.1, -0.4, 1.0, 0.25])
    assert [d.share for d in compared.deviations[:3]] == pytest.approx([0.1, -0.2, 0.25])
    assert compared.deviations[3].share is None


def test_the_median_and_the_largest_deviations():
    compared = compare(MEASURED, PREDICTED)
    assert compared.median_share == pytest.approx(0.2)
    assert [d.measured.action for d in compared.largest(2)] == [Backward(1, 0), Forward(1, 0)]


def test_the_makespans_are_compared():
    compared = compare(MEASURED, PREDICTED)
    assert compared.makespan == pytest.approx(0.75)
    assert compared.makespan_share == pytest.approx(0.1)


def test_a_timeline_compared_with_itself_does_not_deviate():
    compared = compare(PREDICTED, PREDICTED)
    assert (compared.median_share, compared.makespan, compared.unmatched) == (0, 0, 0)


def test_what_is_missing_or_different_is_counted():
    cut_off = Timeline(MEASURED.spans[:4])
    assert compare(cut_off, PREDICTED).unmatched == 2
    other = Timeline((*MEASURED.spans[:-1], Span(1, 3, Forward(1, 9), 8.0, 8.1)))
    assert compare(other, PREDICTED).unmatched == 2


def test_nothing_measured_gives_nothing():
    compared = compare(Timeline(()), PREDICTED)
    assert (compared.deviations, compared.median_share) == ((), None)
    assert compare(MEASURED, Timeline(())).makespan_share is None


def test_each_second_of_a_rank_has_a_cause():
    reduced = Timeline((*MEASURED.spans, Span(1, 4, AllReduce(1, (1, 2), 1), 8.25, 8.5)))
    first, second = attribution(reduced)
    assert first == pytest.approx({Cause.FORWARD: 1.1, Cause.IDLE: 7.4})
    assert second == pytest.approx(
        {
            Cause.WAITING: 1.4,
            Cause.FORWARD: 1.6,
            Cause.BACKWARD: 5.0,
            Cause.STEP: 0.25,
            Cause.ALL_REDUCE: 0.25,
            Cause.IDLE: 0.0,
        }
    )


@given(
    st.sampled_from(["pipedream", "1f1b-flush", "gpipe"]),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.integers(1, 4),
    st.floats(0, 2),
)
def test_the_causes_of_a_predicted_rank_add_up_to_the_makespan(name, replicas, rounds, latency):
    layer = Layer("l", "Linear", 1.0, 2.0, 10, 10, 0.1)
    firsts = [sum(replicas[:n]) for n in range(len(replicas))]
    stages = tuple(
        Stage(n, n + 1, tuple(range(first, first + count)))
        for n, (first, count) in enumerate(zip(firsts, replicas, strict=True))
    )
    plan = Plan("by-hand", Partition(stages), name, 1)
    profile = Profile("p", ModelGraph.chain((layer,) * len(stages)), 1)
    cluster = Cluster((Level(sum(replicas), 10.0, latency),))
    _, timeline = predicted_program(profile, cluster, plan, 6 * rounds)
    for causes in attribution(timeline):
        assert sum(causes.values()) == pytest.approx(timeline.makespan)
        assert min(causes.values()) >= 0
