import pytest

from backend.pipeline.actions import AllReduce, Flow, Forward, Message, Recv, Step
from backend.pipeline.bubbles import bubble, waiting
from backend.pipeline.timeline import Span, Timeline

MESSAGE = Message(Flow.ACTIVATION, 0, 0)


def test_everything_but_compute_is_waiting():
    timeline = Timeline.of(
        (
            Span(0, 0, Forward(0, 0), 10.0, 16.0),
            Span(0, 1, AllReduce(0, (0, 1), 1), 16.0, 19.0),
            Span(0, 2, Step(0, 1), 19.0, 20.0),
            Span(1, 0, Recv(MESSAGE, 0), 10.0, 16.0),
            Span(1, 1, Forward(1, 0), 16.0, 20.0),
        )
    )
    assert timeline.makespan == 10.0
    assert timeline.num_ranks == 2
    assert waiting(timeline) == pytest.approx((0.3, 0.6))
    assert bubble(timeline) == pytest.approx(0.45)


def test_an_empty_timeline_has_no_bubble():
    assert Timeline.of(()).makespan == 0.0
    assert waiting(Timeline.of(())) == ()
    assert bubble(Timeline.of(())) == 0.0


def test_a_timeline_without_duration_waits_for_nothing():
    assert waiting(Timeline.of((Span(0, 0, Forward(0, 0), 5.0, 5.0),))) == (0.0,)
