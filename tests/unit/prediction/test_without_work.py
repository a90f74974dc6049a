"""What a person is told of waiting, and of devices that a plan leaves without work."""

from dataclasses import replace

import pytest

from app.components.plan.why_view import distance
from backend.cluster.cluster import Cluster, Level
from backend.prediction.answer import Answer, cut_by_hand, rank
from backend.prediction.bottleneck import WAITING
from backend.prediction.question import Question
from backend.prediction.without_work import idle_words, with_all_devices
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-3, 2e-3, 2**10, 2**10) for n in range(6))
QUESTION = Question(Profile("even", ModelGraph.chain(LAYERS), 8), Cluster((Level(3, 1e9),)))


def by_cut(cut: str, schedule: str = "pipedream", batch: int = 4) -> Answer:
    return cut_by_hand(replace(QUESTION, planner="", schedule=schedule, batch=batch), cut)


def test_what_a_pipeline_waits_while_it_fills_and_drains_is_said_with_its_share() -> None:
    """Two equal stages and four microbatches: (m + p - 1) / m of the stage's time."""
    [said] = [each for each in by_cut("3x1-6x1", "1f1b-flush").reasons if WAITING in each]
    assert said.endswith("20 %: the pipeline fills and drains at every update.")


def test_nothing_is_said_where_the_bottleneck_never_waits() -> None:
    assert not [each for each in by_cut("3x1-6x1").reasons if WAITING in each]


def test_the_fastest_plan_on_all_devices_is_named_where_one_has_no_work() -> None:
    two, three, one = by_cut("3x1-6x1"), by_cut("2x1-4x1-6x1"), by_cut("6x1")
    full = with_all_devices([two, three, one], 3)
    assert full is three
    assert idle_words(two, full, 3).startswith("A faster plan gives all 3 devices work: 1-1-1 · ")
    assert idle_words(three, full, 3) == ""
    assert with_all_devices([two, one], 3) is None
    assert idle_words(two, None, 3).startswith("No planner found a plan that fits and gives all 3")


def test_how_far_the_bound_is_above_twice_is_a_factor() -> None:
    answer = by_cut("3x1-6x1")
    for bound, words in (
        (answer.prediction.seconds_per_minibatch / 4, "at most **4.0×** as fast is possible"),
        (answer.prediction.seconds_per_minibatch / 1.5, "at most **50.0 %** faster is possible"),
        (answer.prediction.seconds_per_minibatch, "no plan is faster"),
    ):
        said = distance(replace(answer, bound_seconds=bound), QUESTION.cluster)
        assert words in said.replace("\u00a0", " ")


def test_the_devices_of_all_sites_have_work() -> None:
    cluster = Cluster((Level(1, 1e9), Level(3, 1e6, sites=True)))
    asked = replace(QUESTION, cluster=cluster, planner="", sites="diloco", schedule="gpipe")
    apart = cut_by_hand(asked, "6x1")
    assert idle_words(apart, None, 3) == ""
    assert with_all_devices([apart], 3) is apart


def test_a_slower_plan_on_all_devices_is_said_to_be_slower() -> None:
    fast = rank(replace(QUESTION, planner="best"))[0]
    two = replace(
        by_cut("3x1-6x1"),
        prediction=replace(fast.prediction, plan=by_cut("3x1-6x1").prediction.plan),
    )
    slower = by_cut("4x1-5x1-6x1")
    assert "work is slower: 1-1-1 · pipedream" in idle_words(two, slower, 3)


def test_what_is_possible_at_most_is_a_share_of_the_rate() -> None:
    found = by_cut("3x1-6x1")
    assert found.headroom == pytest.approx(1 / (1 - found.gap) - 1)
    assert found.headroom == pytest.approx(0.5, rel=0.01)
