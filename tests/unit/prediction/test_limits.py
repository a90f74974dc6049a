"""Planning within its limit of work, and plans that are too large to simulate."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.planning.balanced import widths
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction import limits, predict, question
from backend.prediction.answer import rank
from backend.prediction.question import Question
from backend.prediction.search import CLOSED
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-3 * (1 + n % 4), 2e-3, 2**20, 2**22) for n in range(24))
ASKED = Question(
    Profile("p", ModelGraph.chain(LAYERS), 8),
    Cluster((Level(4, 1e10), Level(4, 1e9))),
    planner="best",
)
SMALL = replace(
    ASKED,
    profile=Profile("p", ModelGraph.chain(LAYERS[:6]), 8),
    cluster=Cluster((Level(2, 1e10), Level(2, 1e9))),
)
"""A search comes to its end, and the plan that is fastest until it runs ahead is not the best."""


def test_a_search_that_stops_at_its_limit_says_so_and_searching_on_finds_as_much_or_more(
    monkeypatch,
):
    monkeypatch.setitem(limits.LIMITS, "best", 5e4)
    monkeypatch.setattr(limits, "SPARE", 0)
    [short] = rank(SMALL)
    assert short.is_short
    assert "faster is possible" in short.limit_words
    far = replace(short, bound_seconds=short.prediction.seconds_per_minibatch / 4)
    assert "4.0 times as fast is possible" in far.limit_words
    assert replace(short, planner_seconds=0) == replace(rank(SMALL)[0], planner_seconds=0)
    monkeypatch.setattr(question, "FURTHER", 1000)
    [longer] = rank(replace(SMALL, search_on=True))
    assert not longer.is_short
    assert longer.limit_words == ""
    assert longer.prediction.samples_per_second >= short.prediction.samples_per_second


def test_where_data_parallelism_is_as_fast_as_any_plan_nothing_else_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(limits.LIMITS, "best", 5e4)  # of the search that is made
    monkeypatch.setattr(limits, "SPARE", 0)
    light = tuple(replace(layer, parameter_bytes=64) for layer in LAYERS)
    asked = replace(ASKED, profile=Profile("p", ModelGraph.chain(light), 8))
    [found] = rank(asked)
    assert found.prediction.plan.partition.replicas == (16,)
    assert found.headroom <= CLOSED
    assert found.limit_words == ""
    assert not asked.answered
    other = replace(ASKED)
    [heavy] = rank(other)
    assert heavy.headroom > CLOSED
    assert "straight" in other.answered


def test_an_order_is_looked_for_on_stages_of_one_device_though_data_parallelism_is_faster() -> None:
    light = tuple(replace(layer, parameter_bytes=64) for layer in LAYERS)
    asked = replace(ASKED, profile=Profile("p", ModelGraph.chain(light), 8))
    [found] = rank(replace(asked, schedule="synthesised"))
    assert set(found.prediction.plan.partition.replicas) == {1}


@pytest.mark.parametrize("schedule", ["pipedream", "1f1b-flush", "2bw"])
def test_what_is_not_simulated_is_estimated(schedule, monkeypatch):
    """Bytes and memory are those of the simulation, the rate is not far from it."""
    plans = [
        Plan("x", cut, schedule, 8, 1 if schedule == "pipedream" else 16)
        for cut in widths(ASKED.profile, ASKED.cluster)
    ][:6]
    simulated = [ASKED.predict(plan) for plan in plans]
    monkeypatch.setattr(predict, "MOST_FORWARDS", 0)
    again = replace(ASKED)
    for one in simulated:
        other = again.predict(one.plan)
        assert not other.is_simulated
        assert other.sent_bytes == pytest.approx(one.sent_bytes)
        assert (other.memory_bytes, other.versions) == (one.memory_bytes, one.versions)
        assert 0.8 <= other.samples_per_second / one.samples_per_second <= 3
    [found] = rank(again)
    assert "too large to simulate" in found.limit_words


def test_no_plan_is_faster_than_the_bound_of_an_answer_in_any_order_of_devices():
    """On slow links the stages of the fastest plan do not stand in the order of the devices."""
    costs = ((8, 5, 1), (0, 1, 20), (3, 5, 10), (20, 1, 0), (8, 0, 0))
    layers = tuple(Layer(f"l{n}", "Linear", 0.0, *each) for n, each in enumerate(costs))
    profile = Profile("order", ModelGraph.chain(layers), 1)
    cluster = Cluster((Level(2, 10.0), Level(2, 0.5)))
    other = Partition((Stage(0, 2, (2,)), Stage(2, 4, (0, 1)), Stage(4, 5, (3,))))
    best = optimum(profile, cluster)
    assert bottleneck(profile, cluster, other) == pytest.approx(11.5)
    assert best.seconds == best.lower_bound == pytest.approx(11.5)
    asked = Question(profile, cluster, planner="pipedream")
    [found] = rank(asked)
    assert found.bound_seconds <= 11.5
    assert (
        found.bound_seconds <= asked.predict(Plan("x", other, "pipedream", 1)).seconds_per_minibatch
    )


def test_a_question_that_is_asked_again_has_the_same_answer():
    asked = replace(ASKED, cluster=Cluster((Level(2, 1e10), Level(2, 1e9))))
    first, second = rank(asked), rank(asked)
    assert [one.prediction for one in first] == [one.prediction for one in second]
    assert first[0].is_short == second[0].is_short
