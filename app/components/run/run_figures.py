"""The figures of a training run, beside what was predicted and what was aimed at."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from app.components.shell.layout import Figure
from app.formats import (
    NOTHING,
    between,
    change,
    duration,
    number,
    percent,
    rate,
    seconds,
    size,
)
from backend.comparison.runs import reached, updates_per_epoch
from backend.prediction.energy import Energy
from backend.prediction.prediction import Prediction
from backend.runs.history.records import MetricPoint
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.units import joules_text

MOST = 50.0
"""Losses above this have no perplexity that says anything."""
ALONE = "Predicted at the share of the cores that the ranks had. On cores of their own:"


@dataclass(frozen=True, slots=True)
class Readings:
    """What is known of a run now. `loss_means` are those of its newest two epochs, `waiting` is
    the measured share, over the last segment; `sent` are the bytes between stages of each epoch
    that are coded, and what they would be plain; `joules` those of a sample in each epoch."""

    loss_means: Sequence[float]
    accuracies: Sequence[MetricPoint]
    throughputs: Sequence[MetricPoint]
    waiting: float | None
    predicted_waiting: float | None
    held_out: Sequence[MetricPoint] = ()
    sent: tuple[Sequence[MetricPoint], Sequence[MetricPoint]] = ((), ())
    joules: Sequence[MetricPoint] = ()
    predicted_energy: Energy | None = None


def run_figures(
    run: Run,
    readings: Readings,
    predicted: Prediction | None,
    at_share: Prediction | None = None,
) -> list[Figure]:
    """Loss, what the run aims at (accuracy, or the held-out loss), throughput, seconds per
    minibatch, waiting. On emulated devices nothing is learned: the first two are not there.
    `at_share`: the prediction at the share of the cores that others left, where that is less."""
    speed = [
        _throughput(run, readings.throughputs, predicted, at_share),
        _minibatch(run, readings.throughputs, predicted, at_share),
        _waiting(run, readings),
        *_sent(readings, predicted),
        *_energy(readings),
    ]
    if isinstance(run.spec, TrainSpec) and run.spec.emulate:
        return speed
    by_loss = isinstance(run.spec, TrainSpec) and (
        run.spec.target_loss is not None or bool(readings.held_out and not readings.accuracies)
    )
    aim = _held_out(run, readings.held_out) if by_loss else _accuracy(run, readings.accuracies)
    return [_loss(readings.loss_means), aim, *speed]


def _loss(means: Sequence[float]) -> Figure:
    if not means:
        return Figure("Loss", NOTHING, "no minibatch yet")
    if len(means) < 2:
        return Figure("Loss", number(means[-1]), "first epoch")
    moved = means[-1] - means[-2]
    return Figure(
        "Loss",
        number(means[-1]),
        f"{moved:+.3g} this epoch".replace("-", "−"),
        "green" if moved < 0 else "gray",
        "Mean of the last epoch so far",
    )


def _accuracy(run: Run, points: Sequence[MetricPoint]) -> Figure:
    target = run.spec.target_accuracy if isinstance(run.spec, TrainSpec) else None
    value = points[-1].value if points else run.summary.accuracy
    if target is None:
        return Figure("Accuracy, held out", percent(value), "no target", "gray")
    first = reached(run, points, target)
    took = first.seconds if first else run.summary.seconds_to_target
    when = f" after {duration(took)}" if took is not None else ""
    met = value is not None and value >= target
    note = f"target {percent(target, 0)}{when}"
    return Figure("Accuracy, held out", percent(value), note, "green" if met else "gray")


def _held_out(run: Run, points: Sequence[MetricPoint]) -> Figure:
    """The held-out loss beside the target, with its perplexity."""
    target = run.spec.target_loss if isinstance(run.spec, TrainSpec) else None
    value, took = points[-1].value if points else None, run.summary.seconds_to_target
    met = value is not None and target is not None and value <= target
    note = f"target {number(target)}" if target is not None else "no target"
    if took is not None:
        note += f" after {duration(took)}"
    perplexity = f"Perplexity {exp(value):.4g}" if value is not None and value < MOST else ""
    shown = number(value) if value is not None else NOTHING
    return Figure("Loss, held out", shown, note, "green" if met else "gray", perplexity)


def _throughput(
    run: Run,
    points: Sequence[MetricPoint],
    predicted: Prediction | None,
    at_share: Prediction | None,
) -> Figure:
    value = run.summary.samples_per_second or (points[-1].value if points else None)
    note = ""
    if (wanted := at_share or predicted) and value is not None:
        expected = wanted.samples_per_second
        note = f"predicted {rate(expected)} ({change(value, expected)})"
    help = f"{ALONE} {rate(predicted.samples_per_second)}" if predicted and at_share else ""
    if likely := between(wanted.rate_range if wanted else None, rate):
        help += f" Nine of ten runs are expected at {likely}."
    return Figure("Throughput, samples", rate(value), note, help=help)


def _minibatch(
    run: Run,
    points: Sequence[MetricPoint],
    predicted: Prediction | None,
    at_share: Prediction | None,
) -> Figure:
    """While the run works, from its newest throughput."""
    value = run.summary.seconds_per_minibatch
    if value is None and points and points[-1].value and isinstance(run.spec, TrainSpec):
        value = run.spec.plan.microbatch * run.spec.plan.batch / points[-1].value
    wanted, help = at_share or predicted, "Steady state, measured."
    note = f"predicted {seconds(wanted.seconds_per_minibatch)}" if wanted else ""
    if predicted and at_share:
        help += f" {ALONE} {seconds(predicted.seconds_per_minibatch)}"
    return Figure("Per minibatch", seconds(value), note, help=help)


def _waiting(run: Run, readings: Readings) -> Figure:
    value = readings.waiting if readings.waiting is not None else run.summary.bubble
    predicted = readings.predicted_waiting
    return Figure(
        "Waiting",
        percent(value),
        f"predicted {percent(predicted)}" if predicted is not None else "",
        help="Share of rank time without compute, warm-up and drain included, last epoch shown",
    )


def _sent(readings: Readings, predicted: Prediction | None) -> list[Figure]:
    """Bytes of a minibatch between stages beside plain ones; none where nothing is coded."""
    coded, plain = readings.sent
    updates = updates_per_epoch(coded)
    if not coded or not plain or not updates or not coded[-1].value:
        return []
    help = "Between stages, measured before headers, over the last epoch."
    if predicted and max(predicted.plan.partition.replicas) == 1:
        help += f" Predicted: {size(predicted.sent_bytes)}."
    sent = size(coded[-1].value / updates)
    uncoded = f"{size(plain[-1].value / updates)} without codecs"
    return [Figure("Sent per minibatch", sent, uncoded, help=help)]


def _energy(readings: Readings) -> list[Figure]:
    """Joules of a sample beside the predicted ones; none where the hosts do not count them."""
    if not readings.joules:
        return []
    known = readings.predicted_energy
    most = "at most " if known and known.is_most else ""
    note = f"predicted {most}{joules_text(known.joules)}" if known else ""
    help = (
        "Measured over the last epoch: what the hosts' processors took, whatever ran on them, and "
        "the ranks' GPUs. Predicted are the plan's devices alone."
    )
    return [Figure("Energy of a sample", joules_text(readings.joules[-1].value), note, help=help)]
