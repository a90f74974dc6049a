"""Whole programs in notation, typed out once, as they should be."""

from backend.pipeline.actions import Backward, BackwardWeight, Flow, Forward, Message, Step
from backend.pipeline.exchange.text import format_program
from backend.pipeline.lower import lower
from backend.pipeline.routing import consumer, makes, needs, producer
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape


def lines(name, shape):
    return format_program(lower(schedule(name), shape)).splitlines()[2:]


def test_receives_stand_before_their_consumer_and_sends_after_their_producer():
    assert lines("pipedream", Shape((1, 1), 2)) == [
        "0: 0F0@0 >1:a0.0 0F1@0 >1:a0.1 <1:g1.0 0B0@0 0S@1 <1:g1.1 0B1@0 0S@2",
        "1: <0:a0.0 1F0@0 1B0@0 >0:g1.0 1S@1 <0:a0.1 1F1@1 1B1@1 >0:g1.1 1S@2",
    ]


def test_replicas_reduce_before_every_step():
    assert lines("pipedream", Shape((2, 1), 2)) == [
        "0: 0F0@0 >2:a0.0 <2:g1.0 0B0@0 0R@1[0,1] 0S@1",
        "1: 0F1@0 >2:a0.1 <2:g1.1 0B1@0 0R@1[0,1] 0S@1",
        "2: <0:a0.0 1F0@0 1B0@0 >0:g1.0 1S@1 <1:a0.1 1F1@1 1B1@1 >1:g1.1 1S@2",
    ]


def test_a_single_rank_talks_to_nobody():
    assert lines("gpipe", Shape((1,), 2, 2)) == ["0: 0F0@0 0F1@0 0B0@0 0B1@0 0S@1"]


def test_evaluation_sends_forward_only():
    assert lines("forward-only", Shape((1, 1), 2)) == [
        "0: 0F0@0 >1:a0.0 0F1@0 >1:a0.1",
        "1: <0:a0.0 1F0@0 <0:a0.1 1F1@0",
    ]


def test_what_an_action_makes_is_what_the_next_stage_needs():
    shape = Shape((2, 1), 4)
    activation, gradient = Message(Flow.ACTIVATION, 0, 3), Message(Flow.GRADIENT, 1, 3)
    assert makes(Forward(0, 3), shape) == needs(Forward(1, 3), shape) == activation
    assert makes(Backward(1, 3), shape) == needs(Backward(0, 3), shape) == gradient
    assert (producer(activation, shape), consumer(activation, shape)) == (1, 2)
    assert (producer(gradient, shape), consumer(gradient, shape)) == (2, 1)


def test_the_ends_of_the_pipeline_and_local_actions_need_no_message():
    shape = Shape((1, 1), 1)
    assert needs(Forward(0, 0), shape) is None
    assert makes(Forward(1, 0), shape) is None
    assert needs(Backward(1, 0), shape) is None
    assert makes(Backward(0, 0), shape) is None
    for local in (BackwardWeight(0, 0), Step(0)):
        assert needs(local, shape) is makes(local, shape) is None
