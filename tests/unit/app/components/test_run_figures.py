"""Figures of a run, its remaining time, and its log as text."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.components.plan.plan_figures import plan_figures
from app.components.run.log_view import found
from app.components.run.run_figures import Readings, run_figures
from app.components.runs.run_words import plan_label, took
from app.exports.catalog import log_text
from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.answer import Answer
from backend.prediction.energy import Energy
from backend.prediction.prediction import Prediction
from backend.runs.history.records import LogLine, MetricPoint
from backend.runs.remaining import remaining
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec
from backend.runs.run import Run, RunProgress, RunSummary
from backend.runs.states import RunState

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PLAN = Plan("straight", Partition((Stage(0, 1, (0,)), Stage(1, 3, (1,)))), "pipedream", 16)
SPEC = TrainSpec(1, PLAN, target_accuracy=0.9)


def a_run(spec: RunSpec = SPEC, **changes: object) -> Run:
    fields: dict[str, object] = {
        "id": 7,
        "name": "net",
        "spec": spec,
        "state": RunState.RUNNING,
        "attempt": 1,
        "node": "node-1",
        "created_at": NOW,
        "started_at": NOW,
        "finished_at": None,
        "progress": None,
        "summary": RunSummary(),
        "error": None,
        "cancel_requested": False,
    }
    return Run(**(fields | changes))


def a_prediction(
    partition: Partition = PLAN.partition, rate: float = 1000.0, sent: float = 100.0
) -> Prediction:
    plan = Plan("straight", partition, "pipedream", 16)
    stages = len(partition.stages)
    return Prediction(
        plan, 0.016, rate, 0.05, sent, (4e6,) * stages, (0.01,) * stages, stages - 1, (2,) * stages
    )


def points(*values: float, per_epoch: int = 2) -> list[MetricPoint]:
    return [MetricPoint(i, i // per_epoch, value, float(i)) for i, value in enumerate(values)]


def test_the_loss_is_the_mean_of_the_epoch_and_falls_in_green() -> None:
    readings = Readings((1.5, 0.5), points(0.95), [], None, None)
    loss, accuracy, *_ = run_figures(a_run(), readings, None)
    assert (loss.value, loss.note, loss.tone) == ("0.5", "−1 this epoch", "green")
    assert accuracy.tone == "green"


def test_a_missed_target_is_no_alarm_and_nothing_is_invented() -> None:
    empty = Readings([], points(0.5), [], None, None)
    loss, accuracy, throughput, minibatch, waiting = run_figures(a_run(), empty, None)
    assert accuracy.tone == "gray"
    assert [f.value for f in (loss, throughput, minibatch, waiting)] == ["—"] * 4


@pytest.mark.parametrize(("value", "tone"), [(0.6, "gray"), (0.5, "green"), (0.4, "green")])
def test_a_target_loss_takes_the_place_of_the_accuracy(value: float, tone: str) -> None:
    spec = TrainSpec(1, PLAN, target_loss=0.5)
    readings = Readings([], [], [], None, None, held_out=points(0.9, value))
    run = a_run(spec, summary=RunSummary(seconds_to_target=30.0))
    figure = run_figures(run, readings, None)[1]
    assert (figure.label, figure.value, figure.tone) == ("Loss, held out", f"{value:g}", tone)
    assert figure.note.startswith("target 0.5 after 30")
    assert figure.help.startswith("Perplexity ")


def test_without_classes_the_held_out_loss_takes_the_place_of_the_accuracy() -> None:
    readings = Readings([], [], [], None, None, held_out=points(0.9, 0.7))
    figure = run_figures(a_run(TrainSpec(1, PLAN)), readings, None)[1]
    assert (figure.label, figure.value, figure.note) == ("Loss, held out", "0.7", "no target")


def test_measured_stands_beside_predicted() -> None:
    run = a_run(summary=RunSummary(samples_per_second=970.0, seconds_per_minibatch=0.0165))
    readings = Readings([], [], [], 0.068, 0.051)
    _, _, throughput, minibatch, waiting = run_figures(run, readings, a_prediction())
    assert throughput.note == "predicted 1,000/s (−3.0\u00a0%)"
    assert minibatch.note == "predicted 16.0\u00a0ms"
    assert waiting.note == "predicted 5.1\u00a0%"


def test_an_emulated_run_has_no_loss_and_no_accuracy() -> None:
    readings = Readings([], [], [], 0.068, 0.051)
    shown = run_figures(a_run(TrainSpec(1, PLAN, 3, emulate=4.0)), readings, a_prediction())
    assert [figure.label for figure in shown] == ["Throughput, samples", "Per minibatch", "Waiting"]


def test_the_remaining_time_of_a_training_is_at_its_recent_pace() -> None:
    run = a_run(progress=RunProgress("train", 10, 40))
    losses = [MetricPoint(step, 0, 1.0, 0.5 * step) for step in range(10)]
    assert remaining(run, NOW + timedelta(hours=1), losses) == pytest.approx(15)


def test_the_remaining_time_of_a_profile_is_at_its_mean_pace() -> None:
    run = a_run(ProfileSpec(1), progress=RunProgress("layers", 4, 16))
    assert remaining(run, NOW + timedelta(seconds=10)) == pytest.approx(30)


@pytest.mark.parametrize("progress", [None, RunProgress("layers", 0, 16), RunProgress("x", 0, 0)])
def test_without_a_pace_no_time_is_promised(progress: RunProgress | None) -> None:
    assert remaining(a_run(progress=progress), NOW) is None


def test_a_row_says_what_a_run_does_and_how_long() -> None:
    assert plan_label(a_run()) == "1-1 · pipedream"
    assert plan_label(a_run(ProfileSpec(1, 8))) == "profile · microbatch 8"
    assert took(a_run(finished_at=NOW + timedelta(seconds=72))) == "1\u00a0min\u00a012\u00a0s"
    assert took(a_run(started_at=None)) == "—"


def test_the_log_is_searched_whatever_the_case_and_written_in_utc() -> None:
    lines = [LogLine(1, 0.25, None, "Loading"), LogLine(2, 1.0, 1, "update 3 loss nan")]
    assert found(lines, "LOSS") == lines[1:]
    assert log_text(lines).splitlines() == [
        "1970-01-01T00:00:00.250+00:00 agent Loading",
        "1970-01-01T00:00:01.000+00:00 rank1 update 3 loss nan",
    ]


def test_a_plan_is_compared_with_data_parallelism() -> None:
    cluster = Cluster((Level(2, 1e9),), Device("gpu", 5e6))
    ours = Answer(a_prediction(rate=1300.0), 1.3, 2.0, 2000.0, 0.01, 0.01, ("because",), 0.1)
    theirs = replace(ours, prediction=a_prediction(Partition((Stage(0, 3, (0, 1)),)), 1000.0))
    throughput, _, _, memory, sent, staleness = plan_figures(ours, cluster)
    assert (throughput.note, throughput.tone) == ("1.30× data parallel", "green")
    assert memory.note == "977\u00a0KiB free"
    assert (sent.note, sent.tone) == ("−95\u00a0% vs data parallel", "green")
    assert staleness.value == "1\u00a0update"
    assert plan_figures(theirs, cluster)[0].note == "data parallelism"


def test_without_data_parallelism_the_reason_is_said() -> None:
    ours = Answer(a_prediction(), None, 2.0, None, 0.01, 0.01, ("because",), 0.1)
    cluster = Cluster((Level(2, 1e9),))
    assert plan_figures(ours, cluster)[0].note == "data parallel does not fit"


def test_energy_is_shown_where_it_is_counted_beside_the_predicted_one():
    readings = Readings([], [], [], None, None, joules=points(0.5, 0.25))
    assert run_figures(a_run(), readings, None)[-1].note == ""
    predicted = Energy(0.125, is_most=True)
    figure = run_figures(a_run(), replace(readings, predicted_energy=predicted), None)[-1]
    assert (figure.label, figure.value) == ("Energy of a sample", "250 mJ")
    assert figure.note == "predicted at most 125 mJ"
