"""Plans worth a choice, and what a sample costs."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.charts.pareto import pareto_chart
from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.presets import local
from backend.comparison.pareto import pareto
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.answer import Answer, by_hand
from backend.prediction.cost import money
from backend.prediction.energy import Energy
from backend.prediction.question import Question
from tests.app import seed

LAYERS = len(seed.a_profile().layers)
ONE = Plan("x", Partition((Stage(0, LAYERS, (0,)),)), "pipedream", seed.SAMPLES)
BASE = by_hand(Question(seed.a_profile(), local(2)), ONE)


def an_answer(seconds: float, joules: float | None, cost: float | None) -> Answer:
    found = replace(BASE.prediction, seconds_per_minibatch=seconds * seed.SAMPLES)
    known = None if joules is None else Energy(joules, is_most=False)
    return replace(BASE, prediction=found, energy=known, money=cost)


FIGURES = st.integers(1, 4).map(float)


@given(st.lists(st.tuples(FIGURES, FIGURES, FIGURES), min_size=1, max_size=8))
def test_the_list_is_that_of_every_pair_compared(figures: list[tuple[float, ...]]) -> None:
    expected = [
        not any(
            all(a <= b for a, b in zip(other, mine, strict=True))
            and any(a < b for a, b in zip(other, mine, strict=True))
            for other in figures
        )
        for mine in figures
    ]
    found = pareto([an_answer(*each) for each in figures])
    assert found == expected
    assert any(found)


def test_what_is_not_known_of_all_counts_for_none() -> None:
    fast, slow = an_answer(1.0, 5.0, 9.0), an_answer(2.0, 1.0, 1.0)
    assert pareto([fast, slow]) == [True, True]
    assert pareto([replace(fast, energy=None), slow]) == [True, True]
    assert pareto([replace(fast, energy=None, money=None), slow]) == [True, False]
    assert pareto([]) == []


def test_a_sample_costs_what_the_plans_own_devices_do() -> None:
    two = replace(ONE, partition=Partition((Stage(0, 2, (0,)), Stage(2, LAYERS, (2,)))))
    cluster = Cluster(
        (Level(4, 1e9),), devices=tuple(Device(price=price) for price in (1.0, None, 2.6, 9.0))
    )
    found = replace(BASE.prediction, plan=two, samples_per_second=10.0)
    assert money(found, cluster) == pytest.approx(3.6 / 3600 / 10)
    dear = replace(two, partition=Partition((Stage(0, 2, (0,)), Stage(2, LAYERS, (1,)))))
    assert money(replace(found, plan=dear), cluster) is None
    assert money(replace(found, samples_per_second=0.0), cluster) is None


def test_the_chart_has_a_full_point_for_each_plan_worth_a_choice() -> None:
    answers = [an_answer(1.0, 5.0, None), an_answer(2.0, 1.0, None), an_answer(3.0, 2.0, None)]
    drawing = pareto_chart(answers)
    assert drawing is not None
    (points,) = drawing.data
    assert list(points.marker.symbol) == ["circle", "circle", "circle-open"]
    assert list(points.y) == [5.0, 1.0, 2.0]
    assert list(points.x) == pytest.approx([1e3, 2e3, 3e3])
    assert (drawing.layout.xaxis.type, drawing.layout.yaxis.type) == (None, None)
    for slowest, ticks in ((50.0, "D2"), (500.0, 1)):
        wide = pareto_chart([*answers, an_answer(slowest, 3.0, None)])
        assert wide is not None
        assert (wide.layout.xaxis.type, wide.layout.xaxis.dtick) == ("log", ticks)
    priced = [replace(each, energy=None, money=1e-6) for each in answers]
    by_cost = pareto_chart(priced)
    assert by_cost is not None
    assert list(by_cost.data[0].y) == pytest.approx([1.0] * 3)
    assert "1.00 per million samples" in by_cost.data[0].hovertext[0]


@pytest.mark.parametrize(("joules", "cost"), list(product((None, 1.0), repeat=2)))
def test_there_is_no_chart_of_one_plan_or_of_seconds_alone(
    joules: float | None, cost: float | None
) -> None:
    each = an_answer(1.0, joules, cost)
    assert pareto_chart([each]) is None
    assert (pareto_chart([each, each]) is None) == (joules is None and cost is None)
