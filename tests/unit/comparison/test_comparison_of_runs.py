"""What differs between runs, curves on one axis, who was first, which is best."""

from dataclasses import replace
from datetime import UTC, datetime
from math import inf, isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.comparison.runs import (
    CurveAxis,
    as_usual,
    best,
    chosen,
    differing,
    every,
    positions,
    reached,
    smooth,
    so_far,
    updates_per_epoch,
)
from backend.planning.channels.layer_split import LayerSplit
from backend.planning.channels.types import LayerType
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.history.records import MetricPoint
from backend.runs.request.optimizer_spec import OptimizerSpec, ParameterGroup
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState

START = datetime(2026, 3, 1, tzinfo=UTC)
PLAN = Plan("even", Partition((Stage(0, 1, (0, 1)), Stage(1, 2, (2,)))), "1f1b-flush", 8, 4)
POINTS = [
    MetricPoint(9, 0, 0.5, START.timestamp() + 30),
    MetricPoint(19, 1, 0.8, START.timestamp() + 50),
]


def run(spec=None, run_id: int = 1) -> Run:
    return Run(
        id=run_id,
        name="a",
        spec=spec or TrainSpec(1, PLAN),
        state=RunState.SUCCEEDED,
        attempt=1,
        node="here",
        created_at=START,
        started_at=START,
        finished_at=START,
        progress=None,
        summary=RunSummary(),
        error=None,
        cancel_requested=False,
    )


def test_only_what_differs_is_shown() -> None:
    first = run()
    second = run(replace(TrainSpec(1, PLAN), optimizer=OptimizerSpec("adam", 0.02), seed=7))
    assert differing([first, second]) == {
        "optimizer.learning_rate": ("0.01", "0.02"),
        "optimizer.name": ("momentum", "adam"),
        "seed": ("0", "7"),
    }
    assert differing([first, first]) == {}


def test_what_somebody_chose_is_what_is_not_usual() -> None:
    rule = OptimizerSpec("adam", 0.02, groups=(ParameterGroup("head", 10.0),))
    plain, changed = (
        TrainSpec(1, PLAN, tracing="captured"),
        TrainSpec(1, PLAN, epochs=3, optimizer=rule, weights_path="base"),
    )
    assert chosen(plain) == {}
    assert as_usual(plain) == {
        "epochs": "10",
        "seed": "0",
        "optimizer.name": "momentum",
        "optimizer.learning_rate": "0.01",
    }
    assert as_usual(changed) == {"seed": "0"}
    assert chosen(changed) == {
        "epochs": "3",
        "optimizer.groups": "head=10",
        "optimizer.learning_rate": "0.02",
        "optimizer.name": "adam",
        "weights_path": "base",
    }


def test_plans_are_compared_by_their_form() -> None:
    other = replace(PLAN, partition=Partition((Stage(0, 2, (0,)),)), schedule="gpipe")
    shown = differing([run(), run(TrainSpec(1, other))])
    assert shown["plan.partition"] == ("2-1", other.partition.label)
    assert shown["plan.devices"] == ("3", "1")
    halved = LayerSplit("head", LayerType.OUTPUTS)
    split = differing([run(), run(TrainSpec(1, replace(PLAN, splits=(halved,))))])
    assert split["plan.splits"] == ("—", "head by output channels")
    assert shown["plan.schedule"] == ("1f1b-flush", "gpipe")
    assert not any("devices.0" in name or "stages." in name for name in shown)


def test_a_parameter_that_a_run_does_not_have_is_a_dash() -> None:
    shown = every([run(), run(ProfileSpec(1, 16))])
    assert shown["repetitions"] == ("—", "20")
    assert shown["epochs"] == ("10", "—")
    assert shown["target_accuracy"] == ("—", "—")


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (CurveAxis.UPDATES, [10, 20]),
        (CurveAxis.EPOCHS, [1.0, 2.0]),
        (CurveAxis.SAMPLES, [320, 640]),
        (CurveAxis.SECONDS, [30.0, 50.0]),
    ],
)
def test_positions(axis: CurveAxis, expected: list[float]) -> None:
    length = updates_per_epoch(POINTS)
    assert positions(run(), POINTS, axis, length) == expected


def test_epochs_of_a_run_without_an_evaluation() -> None:
    assert updates_per_epoch([]) is None
    assert positions(run(), POINTS, CurveAxis.EPOCHS, None) == [10.0, 20.0]


def test_epochs_of_a_run_that_is_evaluated_between_their_ends() -> None:
    between = [MetricPoint(step, step // 10, 0.5, 0.0) for step in (3, 7, 9, 13, 17, 19, 23)]
    assert updates_per_epoch(between) == 10
    assert updates_per_epoch(between[:2]) == 8  # all that is known


def test_what_a_live_run_tells_beside_accuracy_and_loss_is_in_its_summary() -> None:
    newest = {"accuracy": 0.5, "loss": 1.0, "throughput": 8.0, "f1": 0.25}
    assert so_far(replace(run(), state=RunState.RUNNING), newest).metrics == {"f1": 0.25}


def test_time_to_accuracy() -> None:
    found = reached(run(), POINTS, 0.5)
    assert found is not None
    assert (found.seconds, found.updates, found.epochs) == (30.0, 10, 1)
    assert reached(run(), POINTS, 0.9) is None
    assert reached(run(), [], 0.0) is None


def test_what_was_reached_before_the_run_began_took_it_no_time() -> None:
    early = [replace(point, time=point.time - 1e6) for point in POINTS]
    found = reached(run(), early, 0.5)
    assert found is not None
    assert (found.seconds, found.updates) == (None, 10)


finite = st.floats(-1e6, 1e6)


@given(st.lists(finite, max_size=30), st.floats(0, 0.99))
def test_a_smoothed_curve_stays_between_the_values(values: list[float], weight: float) -> None:
    smoothed = smooth(values, weight)
    assert len(smoothed) == len(values)
    for number, value in enumerate(smoothed):
        seen = values[: number + 1]
        assert min(seen) - 1e-6 <= value <= max(seen) + 1e-6


@given(st.lists(finite, min_size=1, max_size=30))
def test_without_smoothing_nothing_changes(values: list[float]) -> None:
    assert smooth(values, 0.0) == pytest.approx(values)


def test_smoothing_has_no_bias_and_passes_on_what_is_no_number() -> None:
    assert smooth([3.0, 3.0, 3.0], 0.9) == pytest.approx([3.0, 3.0, 3.0])
    assert smooth([1.0, 3.0], 0.5) == pytest.approx([1.0, 7 / 3])
    smoothed = smooth([1.0, nan, 1.0], 0.5)
    assert isnan(smoothed[1])
    assert smoothed[2] == pytest.approx(1.0)


def test_the_best() -> None:
    assert best([0.9, None, 0.95], largest=True) == {2}
    assert best([3.0, 1.0, 1.0, nan, inf], largest=False) == {1, 2}
    assert best([1.0, 1.0], largest=True) == set()
    assert best([1.0, None], largest=True) == set()
    assert best([], largest=False) == set()
