"""A best is one among runs of the same data, metric, update or work."""

from dataclasses import replace

import pytest

from backend.comparison.alike import Yardstick, best_alike, differ_in
from backend.planning.plan import Plan
from backend.runs.request.spec import DataSpec, ProfileSpec, TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from tests.unit.comparison.test_comparison_of_runs import PLAN, run

SPEC = TrainSpec(1, PLAN)
FILE = DataSpec("csv", path="/data/a.csv")
HALVED: Plan = replace(PLAN, batch=2)


def winners(
    specs: list[TrainSpec], values: list[float], yardstick: Yardstick, *, largest: bool = True
) -> set[int]:
    runs: list[Run] = [run(spec, number) for number, spec in enumerate(specs)]
    return best_alike(runs, values, yardstick, largest=largest)


def test_runs_of_other_data_have_a_best_of_their_own() -> None:
    other = replace(SPEC, data=DataSpec("digits"))
    assert winners([SPEC, SPEC, other], [0.8, 0.9, 0.99], Yardstick.DATA) == {1}
    assert winners([SPEC, SPEC, other, other], [0.8, 0.9, 0.7, 0.6], Yardstick.DATA) == {1, 2}
    assert winners([SPEC, other], [0.8, 0.9], Yardstick.DATA) == set()


def test_two_models_of_one_file_share_data_and_no_loss() -> None:
    one, other = (TrainSpec(number, PLAN, data=FILE) for number in (1, 2))
    assert winners([one, other], [0.8, 0.9], Yardstick.DATA) == {1}
    assert winners([one, other], [0.8, 0.9], Yardstick.METRIC) == set()


def test_two_models_with_data_of_their_own_share_nothing() -> None:
    assert winners([SPEC, TrainSpec(2, PLAN)], [1.0, 2.0], Yardstick.DATA) == set()


def test_an_emulated_run_is_no_faster_than_a_real_one() -> None:
    assert winners([SPEC, replace(SPEC, emulate=1.0)], [1.0, 2.0], Yardstick.DATA) == set()


def test_seconds_of_updates_of_other_sizes_are_not_compared() -> None:
    smaller = replace(SPEC, plan=HALVED)
    assert winners([SPEC, smaller], [2.0, 1.0], Yardstick.UPDATE, largest=False) == set()
    assert winners([SPEC, smaller], [2.0, 1.0], Yardstick.DATA, largest=False) == {1}


def test_the_shortest_is_one_of_those_that_did_the_work() -> None:
    runs = [run(SPEC, 1), run(SPEC, 2), replace(run(SPEC, 3), state=RunState.FAILED)]
    assert best_alike(runs, [9.0, 8.0, 1.0], Yardstick.WORK, largest=False) == {1}
    fewer = replace(SPEC, epochs=1)
    assert winners([SPEC, fewer], [9.0, 1.0], Yardstick.WORK, largest=False) == set()


@pytest.mark.parametrize("yardstick", Yardstick)
def test_runs_that_do_not_train_are_compared_with_none(yardstick: Yardstick) -> None:
    profiles = [run(ProfileSpec(1), number) for number in (1, 2)]
    assert best_alike(profiles, [1.0, 2.0], yardstick, largest=True) == set()
    assert differ_in([run(SPEC), *profiles], yardstick)
    assert not differ_in([run(SPEC), run(SPEC)], yardstick)
