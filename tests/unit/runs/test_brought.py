"""Histories of others under the names that runs have here."""

from hypothesis import given
from hypothesis import strategies as st

from backend.runs.events import ACCURACY, HELD_OUT_LOSS
from backend.runs.history.brought import USUAL, TheirRun, renamed, stepped
from backend.runs.history.records import MetricPoint
from backend.runs.states import RunState

NAMES = st.sampled_from(["loss", "accuracy", "f1", *USUAL])


def history(*names: str) -> TheirRun:
    """With a point of its own for each metric."""
    metrics = {name: [MetricPoint(number, 0, 0.5, 0.0)] for number, name in enumerate(names)}
    return TheirRun("mlflow", "r", "n", RunState.SUCCEEDED, 0.0, 1.0, metrics=metrics)


def test_usual_names_and_given_ones() -> None:
    found = renamed(history("train_loss", "val_loss", "eval/acc", "f1_val"), {"f1_val": "f1"})
    assert {name: points[0].step for name, points in found.metrics.items()} == {
        "loss": 0,
        HELD_OUT_LOSS: 1,
        ACCURACY: 2,
        "f1": 3,
    }


def test_a_name_that_is_given_as_it_is_stays() -> None:
    assert set(renamed(history("val_loss"), {"val_loss": "val_loss"}).metrics) == {"val_loss"}


@given(st.lists(NAMES, unique=True), st.dictionaries(NAMES, NAMES))
def test_no_metric_is_lost_or_laid_over_another(names: list[str], given: dict[str, str]) -> None:
    found = renamed(history(*names), given)
    assert sorted(p.step for points in found.metrics.values() for p in points) == list(
        range(len(names))
    )


def test_points_without_steps_are_numbered_by_their_times() -> None:
    points = [MetricPoint(0, 0, 2.0, 20.0), MetricPoint(0, 0, 1.0, 10.0)]
    assert [(p.step, p.value) for p in stepped(points)] == [(0, 1.0), (1, 2.0)]
    with_steps = [MetricPoint(3, 0, 2.0, 20.0), MetricPoint(0, 0, 1.0, 10.0)]
    assert [p.step for p in stepped(with_steps)] == [0, 3]
