"""What no plan is faster than: by hand, and beside plans of every schedule."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.errors import StageflowError
from backend.planning.baselines import data_parallel
from backend.planning.plan import Plan
from backend.prediction.candidates import every_plan
from backend.prediction.least_seconds import least_seconds
from backend.prediction.question import Question
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile


def a_question(sent: int, weights: int, *speeds: float, bandwidth: float = 1.0) -> Question:
    """Three layers of 3 s; batches of 4 microbatches of one sample."""
    layers = tuple(Layer(f"l{n}", "Linear", 1.0, 2.0, sent, weights) for n in range(3))
    each = tuple(Device(speed=speed) for speed in speeds)
    cluster = Cluster((Level(len(speeds), bandwidth),), each[0], each)
    return Question(
        Profile("three", ModelGraph.chain(layers), 1), cluster, schedule="1f1b-flush", batch=4
    )


def least(question: Question) -> float:
    whole = data_parallel(question.profile, question.cluster)
    return least_seconds(question, question.plan("by-hand", whole))


@pytest.mark.parametrize(
    ("sent", "weights", "speeds", "expected"),
    [
        (0, 0, (1.0, 2.0), 36 / 3),  # nothing to send: the sum of speeds
        (1, 10**6, (1.0, 2.0), 36 / 3),  # layers may be apart: 4 s of messages
        (10**6, 1, (1.0, 2.0), 36 / 3),  # or copied: 3 s of sums
        (10**6, 10**6, (1.0, 2.0), 36 / 2),  # neither: the fastest device alone
        (10**6, 5, (1.0, 2.0), 15),  # copies of all layers sum 15 bytes
        (10**6, 5, (1.0, 1.0, 2.0), 15),  # 2 of 3 sum as much as both of two
        (4, 10**6, (1.0, 2.0), 16),  # 4 messages of 4 bytes over one link
        (4, 10**6, (1.0, 1.0, 1.0), 12),  # over two links 8 s: compute is more
        (10**6, 5, (1.0, 1.0, 1.0), 18),  # two compute as long; three would sum for 20 s
    ],
)
def test_the_bound_is_that_of_the_cheapest_thing_that_can_be_done(sent, weights, speeds, expected):
    assert least(a_question(sent, weights, *speeds)) == pytest.approx(expected)


def test_links_are_left_out_where_bytes_are_not_those_of_the_profile():
    slow = a_question(10**6, 10**6, 1.0, 2.0)
    for coded in (
        replace(slow, codec="int8"),
        replace(slow, codec_of_sums="dct:keep=0.005,every=1000"),
    ):
        assert least(coded) == pytest.approx(36 / 3)


def test_machines_have_one_link_that_leaves_them():
    inner = a_question(4, 10**6, 1.0, 1.0, 1.0, 1.0)
    assert least(inner) == pytest.approx(12)  # a layer by itself; messages take 4 s over four pairs

    def on(*levels: Level) -> Question:
        return replace(inner, cluster=replace(inner.cluster, levels=levels))

    assert least(on(Level(1, 1.0), Level(4, 0.25))) == pytest.approx(16)  # out of four machines
    assert least(on(Level(1, 1.0), Level(4, 1e-3))) == pytest.approx(36)  # one device
    assert least(on(Level(2, 1e9), Level(2, 1e-3))) == pytest.approx(36 / 4)  # inside of machines


@st.composite
def questions(draw: st.DrawFn) -> Question:
    seconds, sizes = st.floats(1e-4, 1e-2), st.integers(0, 10**7)
    updates = st.sampled_from([0.0, 1e-4, 1e-2])
    layers = tuple(
        Layer(
            f"l{n}", "Linear", draw(seconds), draw(seconds), draw(sizes), draw(sizes), draw(updates)
        )
        for n in range(draw(st.integers(1, 8)))
    )
    levels = draw(st.sampled_from([(4,), (2, 2), (1, 3)]))
    bandwidths = st.floats(1e6, 1e10)
    cluster = Cluster(tuple(Level(count, draw(bandwidths)) for count in levels))
    speeds = [draw(st.sampled_from((0.5, 1.0, 2.0))) for _ in range(cluster.num_devices)]
    each = tuple(Device(speed=speed) for speed in speeds)
    found = replace(cluster, device=each[0], devices=each)
    schedule = draw(st.sampled_from(("", "pipedream", "zb-v", "interleaved", "1f1b-flush", "afp")))
    profile = Profile("drawn", ModelGraph.chain(layers), microbatch=4)
    return Question(profile, found, schedule=schedule, batch=draw(st.integers(1, 8)))


@settings(max_examples=30, deadline=None)
@given(questions(), st.randoms(use_true_random=False))
def test_no_plan_is_faster_than_the_bound(question: Question, random):
    plans: list[Plan] = list(every_plan(question))
    bounds, rates = [], []  # samples/s
    for plan in random.sample(plans, min(15, len(plans))):
        try:
            found = question.predict(plan)
        except StageflowError:
            continue
        bound = least_seconds(question, plan)
        assert bound <= found.seconds_per_minibatch * (1 + 1e-9), plan
        rates.append(found.samples_per_second)
        bounds.append(plan.batch * plan.microbatch / bound)
    assert max(rates, default=0.0) <= min(bounds, default=inf) * (1 + 1e-9)
