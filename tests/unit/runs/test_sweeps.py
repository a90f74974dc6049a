"""Sweeps: which runs they have, how axes are written, which runs fall behind."""

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput, NotFound
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.spec import TrainSpec
from backend.runs.sweeps.axes import BATCH, read_axis, varied
from backend.runs.sweeps.median import FEWEST, falls_behind
from backend.runs.sweeps.sweep import MOST, SweepAxis, SweepSpec

PLAN = Plan("by-hand", Partition((Stage(0, 2, (0,)), Stage(2, 4, (1,)))), "pipedream", 16)
BASE = TrainSpec(1, PLAN, 1)


def no_plan(number: int) -> Plan:
    raise NotFound(f"no plan {number}")


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_grid_has_every_combination_once(sizes: list[int]) -> None:
    axes = tuple(SweepAxis(f"a{n}", tuple(range(size))) for n, size in enumerate(sizes))
    points = SweepSpec(BASE, axes).points()
    assert len(points) == prod(sizes)
    assert len({tuple(point.items()) for point in points}) == prod(sizes)
    assert all(point[axis.name] in axis.values for point in points for axis in axes)


@given(st.integers(0, 99), st.integers(1, 40))
def test_a_random_search_is_told_by_its_seed_and_stays_in_its_ranges(seed: int, draws: int) -> None:
    texts = ("lr=log:1e-4:0.1", "momentum=even:0.5:0.9", "seed=whole:0:3", "optimizer=sgd,adam")
    spec = SweepSpec(BASE, tuple(map(read_axis, texts)), draws, seed)
    points = spec.points()
    assert points == spec.points()
    assert len(points) == draws
    for point in points:
        assert 1e-4 * (1 - 1e-9) <= float(point["lr"]) <= 0.1 * (1 + 1e-9)
        assert 0.5 <= float(point["momentum"]) <= 0.9
        assert point["seed"] in (0, 1, 2, 3)
        assert point["optimizer"] in ("sgd", "adam")


def test_values_that_were_drawn_before_are_no_further_run() -> None:
    assert len(SweepSpec(BASE, (read_axis("lr=0.1,0.01"),), draws=50).points()) == 2


@pytest.mark.parametrize(
    ("axes", "draws", "said"),
    [
        ((SweepAxis("lr", tuple(range(MOST + 1))),), 0, f"has {MOST + 1} runs"),
        (
            (SweepAxis("lr", tuple(range(9**4))), SweepAxis("seed", tuple(range(9**4)))),
            0,
            "43,046,721 runs",
        ),
        ((SweepAxis("lr", (1, 2)),), MOST + 1, f"has {MOST + 1} runs"),
    ],
)
def test_a_sweep_is_bounded(axes: tuple[SweepAxis, ...], draws: int, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        SweepSpec(BASE, axes, draws).points()
    assert str(MOST) in refused.value.advice


@pytest.mark.parametrize(
    "text", ["", "lr", "lr=", "=1", "lr=log:0:1", "lr=even:2:1", "lr=log:a:b", "lr=, ,"]
)
def test_what_is_no_axis_says_how_one_is_written(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_axis(text)
    assert "=" in refused.value.advice


def test_axes_are_read_as_they_are_meant() -> None:
    assert read_axis(" lr = 0.1, 1e-2 ").values == (0.1, 0.01)
    assert read_axis("set.bias=true,false,2,on").values == (True, False, 2, "on")
    assert read_axis("seed=whole:1:9") == SweepAxis("seed", (), 1, 9, whole=True)


def test_a_grid_has_no_range_and_no_axis_twice() -> None:
    with pytest.raises(InvalidInput, match="no ranges: lr"):
        SweepSpec(BASE, (read_axis("lr=log:0.1:1"),))
    for axes in ((), (SweepAxis("lr", (1,)), SweepAxis("lr", (2,)))):
        with pytest.raises(InvalidInput, match="each once"):
            SweepSpec(BASE, axes)


def test_values_become_a_training() -> None:
    other = replace(PLAN, microbatch=4)
    values = {"plan": 7, "schedule": "gpipe", "microbatch": 8, "lr": 0.5, "seed": 3, "set.depth": 2}
    found = varied(BASE, values, {7: other}.__getitem__)
    assert found.plan == replace(other, schedule="gpipe", microbatch=8, batch=BATCH)
    assert (found.plan_id, found.optimizer.learning_rate) == (7, 0.5)
    assert (found.seed, found.parameters) == (3, {"depth": 2})
    back = varied(found, {"schedule": "pipedream"}, no_plan)
    assert back.plan.batch == 1
    assert varied(found, {"schedule": "gpipe", "batch": 9}, no_plan).plan.batch == 9


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rate": 1}, "no setting 'rate'"),
        ({"set.": 1}, "no setting"),
        ({"lr": "fast"}, "learning_rate"),
        ({"schedule": "none such"}, "none such"),
        ({"plan": "x"}, "plan cannot be"),
        ({"epochs": 1.5}, "epochs"),
    ],
)
def test_a_value_that_cannot_be_names_its_setting(values: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        varied(BASE, values, no_plan)


DONE = ([3.0, 2.0, 1.0], [3.0, 1.0, 0.5], [2.0, 2.0, 2.0])
"""Means up to the second: 2.5, 2.0, 2.0. Their median is 2."""


@pytest.mark.parametrize(
    ("own", "behind"),
    [([4.0], False), ([4.0, 3.0], True), ([4.0, 2.0], False), ([1.5, 9.0], False)],
)
def test_the_median_rule_is_viziers(own: list[float], behind: bool) -> None:
    assert bool(falls_behind(own, DONE, larger=False, grace=2)) is behind
    turned = [[-value for value in values] for values in DONE]
    assert bool(falls_behind([-value for value in own], turned, larger=True, grace=2)) is behind


def test_nobody_is_behind_few_others_or_before_its_time() -> None:
    assert not falls_behind([9.0, 9.0], DONE[: FEWEST - 1], larger=False, grace=2)
    assert not falls_behind([9.0, 9.0], DONE, larger=False, grace=3)
    assert not falls_behind([], DONE, larger=False, grace=0)
    assert not falls_behind([9.0, 9.0], (*DONE[:2], []), larger=False, grace=2)
    assert "its best is 9, the median of 3 runs 2" in falls_behind([9.0] * 2, DONE, False, 2)
