"""A run beside the last ones of its plan: what is worse, and by how much it varies anyway."""

from dataclasses import replace
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.differences import beside_words
from backend.comparison.last_run import (
    LARGER_IS_BETTER,
    FigureBeside,
    LastRun,
    beside_last,
    does_the_same,
)
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import DataSpec, ProfileSpec, TrainSpec
from backend.runs.run import Run, RunSummary
from tests.unit.comparison.test_comparison_of_runs import PLAN, run

SPEC = TrainSpec(1, PLAN)


def ended(speed: float, loss: float = 0.1, run_id: int = 1, epochs: int = 4) -> Run:
    summary = RunSummary(samples_per_second=speed, loss=loss, epochs=epochs)
    return replace(run(SPEC, run_id), summary=summary)


def beside(now: Run, *earlier: Run, recent: dict[str, tuple[float, ...]] | None = None) -> LastRun:
    found = beside_last(now, earlier, lambda _, name: (recent or {}).get(name, ()))
    assert found is not None
    return found


def test_slower_by_a_fourth_is_a_regression_and_is_said() -> None:
    found = beside(ended(1010.0, run_id=2), ended(1322.0))
    (slower,) = found.regressions
    assert (slower.name, slower.before, slower.spread) == ("throughput", 1322.0, 0.05)
    assert slower.change == pytest.approx(1010 / 1322 - 1)
    assert beside_words(slower) == (
        "throughput 1,010/s, 24\u00a0% slower than its 1,322/s, more than it varies (5.0\u00a0%)"
    )


def test_what_varies_as_much_by_itself_is_none() -> None:
    now, last = ended(1010.0, run_id=2), ended(1322.0)
    assert not beside(now, last, recent={"throughput": (1000.0, 1300.0)}).regressions
    assert not beside(now, last, ended(1000.0)).regressions  # as slow as the one before
    assert "as before" in beside_words(beside(now, last, ended(1000.0)).figures[0])


def test_faster_and_a_smaller_loss_are_beyond_their_spread_and_not_worse() -> None:
    found = beside(ended(2000.0, 0.05), ended(1000.0, 0.1))
    assert [figure.is_beyond for figure in found.figures] == [True, True]
    assert not found.regressions
    assert "faster" in beside_words(found.figures[0])
    assert "lower" in beside_words(found.figures[1])
    share = FigureBeside("accuracy", 0.9, 0.95, 0.01)
    assert beside_words(share).startswith("accuracy 90.0\u00a0%, 5.0 points lower than its 95.0")


def test_losses_are_compared_after_as_many_epochs_by_the_same_rule_alone() -> None:
    assert [f.name for f in beside(ended(1.0), ended(1.0, epochs=2)).figures] == ["throughput"]
    adam = replace(SPEC, optimizer=OptimizerSpec("adam"))
    other = replace(ended(1.0), spec=adam)
    assert [f.name for f in beside(ended(1.0), other).figures] == ["throughput"]


def test_a_loss_that_still_falls_in_one_run_alone_hides_nothing() -> None:
    now, last = ended(1.0, 0.4, run_id=2), ended(1.0, 0.1)
    epochs = {now.id: (0.9, 0.6, 0.4), last.id: (0.102, 0.101, 0.1)}
    found = beside_last(now, [last], lambda each, name: epochs[each.id] if name == "loss" else ())
    assert found is not None
    assert [figure.name for figure in found.regressions] == ["loss"]


def test_what_is_learnt_steadily_does_not_count_as_variation() -> None:
    now, last = ended(1.0, 0.6, run_id=2), ended(1.0, 0.4)
    falling = {now.id: (1.0, 0.9, 0.8, 0.7, 0.6), last.id: (0.8, 0.7, 0.6, 0.5, 0.4)}
    found = beside_last(now, [last], lambda each, name: falling[each.id] if name == "loss" else ())
    assert found is not None
    assert [figure.name for figure in found.regressions] == ["loss"]


def test_after_a_few_epochs_nothing_is_said_to_be_as_before() -> None:
    now, last = ended(1.0, 0.6, run_id=2), ended(1.0, 0.4)
    loss = beside(now, last, recent={"loss": (2.0, 0.5)}).figures[1]
    assert not loss.is_worse
    assert beside_words(loss) == (
        "loss 0.6, before 0.4: it still changes too much from epoch to epoch to say which is better"
    )


def test_what_is_not_known_or_not_finite_is_left_out() -> None:
    assert beside(ended(1.0, nan), ended(1.0, nan)).figures[0].name == "throughput"
    assert beside(run(SPEC), run(SPEC)).figures == ()
    assert beside_last(run(SPEC), (), lambda *_: ()) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(SPEC, definition_id=2),
        replace(SPEC, data=DataSpec("digits")),
        replace(SPEC, plan=replace(PLAN, schedule="gpipe")),
        replace(SPEC, precision="bfloat16"),
        replace(SPEC, emulate=1.0),
    ],
)
def test_another_definition_data_or_schedule_is_not_the_same(other: TrainSpec) -> None:
    assert not does_the_same(run(SPEC), run(other))
    assert does_the_same(run(other), run(replace(other, seed=7, epochs=1)))


def test_a_profile_does_the_same_as_no_run() -> None:
    assert not does_the_same(run(ProfileSpec(1)), run(ProfileSpec(1)))


@given(
    st.sampled_from(["throughput", "loss", "accuracy"]),
    st.floats(0.01, 1e6),
    st.floats(0.01, 1e6),
    st.floats(0.01, 1.0),
)
def test_of_two_runs_one_at_most_is_the_worse(
    name: str, one: float, other: float, spread: float
) -> None:
    there, back = FigureBeside(name, one, other, spread), FigureBeside(name, other, one, spread)
    assert not (there.is_worse and back.is_worse)
    if there.is_worse:
        assert (one < other) == (name in LARGER_IS_BETTER)
