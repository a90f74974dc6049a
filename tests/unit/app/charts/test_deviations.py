"""Measured beside predicted, and where the time went."""

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.charts.bars import bars_of
from app.charts.deviations import Deviations, deviations, spent
from backend.cluster.cluster import Cluster, Level
from backend.pipeline.actions import AllReduce, Backward, Flow, Forward, Message, Recv, Send, Step
from backend.pipeline.timeline import Span, Timeline
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predicted_program
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

MESSAGE = Message(Flow.ACTIVATION, 0, 0)
PREDICTED = Timeline.of(
    (
        Span(0, 0, Forward(0, 0), 0.0, 1.0),
        Span(0, 1, Send(MESSAGE, 1), 1.0, 1.5),
        Span(1, 0, Recv(MESSAGE, 0), 0.0, 1.5),
        Span(1, 1, Forward(1, 0), 1.5, 3.5),
        Span(1, 2, Backward(1, 0), 3.5, 7.5),
        Span(1, 3, Step(1, 1), 7.5, 7.5),
    )
)
MEASURED = Timeline.of(
    (
        Span(0, 0, Forward(0, 0), 0.0, 1.1),
        Span(0, 1, Send(MESSAGE, 1), 1.1, 1.2),
        Span(1, 0, Recv(MESSAGE, 0), 0.0, 1.4),
        Span(1, 1, Forward(1, 0), 1.4, 3.0),
        Span(1, 2, Backward(1, 0), 3.0, 8.0),
        Span(1, 3, Step(1, 1), 8.0, 8.25),
    )
)


def compare(measured: Timeline, predicted: Timeline) -> Deviations:
    return deviations(bars_of(measured), bars_of(predicted))


def compared_actions(found: Deviations, places: list[int]) -> list[object]:
    return [MEASURED.spans[found.ours[place]].action for place in places]


def test_compute_is_joined_by_rank_and_index():
    compared = compare(MEASURED, PREDICTED)
    assert compared_actions(compared, range(4)) == [
        Forward(0, 0),
        Forward(1, 0),
        Backward(1, 0),
        Step(1, 1),
    ]
    assert compared.seconds == pytest.approx([0.1, -0.4, 1.0, 0.25])
    assert compared.shares[:3] == pytest.approx([0.1, -0.2, 0.25])
    assert isnan(compared.shares[3])


def test_the_median_and_the_largest_deviations():
    compared = compare(MEASURED, PREDICTED)
    assert compared.median_share == pytest.approx(0.2)
    assert compared_actions(compared, compared.largest(2)) == [Backward(1, 0), Forward(1, 0)]


def test_a_timeline_compared_with_itself_does_not_deviate():
    compared = compare(PREDICTED, PREDICTED)
    assert (compared.median_share, compared.unmatched) == (0, 0)


def test_what_is_missing_or_different_is_counted():
    cut_off = Timeline.of(MEASURED.spans[:4])
    assert compare(cut_off, PREDICTED).unmatched == 2
    other = Timeline.of((*MEASURED.spans[:-1], Span(1, 3, Forward(1, 9), 8.0, 8.1)))
    assert compare(other, PREDICTED).unmatched == 2


def test_nothing_measured_gives_nothing():
    compared = compare(Timeline.of(()), PREDICTED)
    assert (len(compared.ours), compared.median_share) == (0, None)


def test_each_second_of_a_rank_has_a_cause():
    reduced = Timeline.of((*MEASURED.spans, Span(1, 4, AllReduce(1, (1, 2), 1), 8.25, 8.5)))
    first, second = spent(bars_of(reduced))
    assert first == pytest.approx({"forward": 1.1, "idle": 7.4})
    assert second == pytest.approx(
        {
            "waiting": 1.4,
            "forward": 1.6,
            "backward": 5.0,
            "optimizer": 0.25,
            "all-reduce": 0.25,
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
    for causes in spent(bars_of(timeline)):
        assert sum(causes.values()) == pytest.approx(timeline.makespan)
        assert min(causes.values()) >= 0
