"""Time to a target: seconds of a minibatch as simulated, times the minibatches that runs of the
same model and update rule took to it. Where no run tells them, it is not known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import median

from backend.comparison.alike import Yardstick, measured_by
from backend.comparison.pairs import BEST
from backend.comparison.runs import reached
from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.flush import FLUSH
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.same_updates import FLUSHING, UpdateRule, updates_of
from backend.runs.events import ACCURACY, HELD_OUT_LOSS
from backend.runs.history.records import MetricPoint
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run


@dataclass(frozen=True, slots=True)
class Target:
    """`metric` is to be `value` or better: an accuracy larger, a loss smaller."""

    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class Learnt:
    """What runs by one update rule took to a target.

    updates       minibatches to it in the median run, `least` and `most` of them
    runs          the numbers of the runs that came to it
    missed        runs that ended without it
    """

    updates: float
    least: int
    most: int
    runs: tuple[int, ...]
    missed: int


@dataclass(frozen=True, slots=True)
class TimeToTarget:
    """Seconds until a plan's training has its target, in the median and from the quickest to the
    slowest of the runs that `learnt` is of."""

    seconds: float
    least: float
    most: float
    learnt: Learnt


Histories = Mapping[UpdateRule, Learnt]


def target_of(accuracy: float | None, loss: float | None) -> Target | None:
    """The target that is asked for; None where none is. Raises `InvalidInput` for two, and for an
    accuracy that is no share."""
    if accuracy is not None and loss is not None:
        raise InvalidInput(
            "two targets are given, an accuracy and a loss", "Rank by one of them at a time."
        )
    if accuracy is not None:
        if not 0 < accuracy <= 1:
            raise InvalidInput(
                f"a target accuracy of {accuracy:g} is not above 0 and up to 1", "0.95 is 95 %."
            )
        return Target(ACCURACY, accuracy)
    if loss is not None:
        if not -inf < loss < inf:
            raise InvalidInput(f"a target loss of {loss:g} is not a number", "For example: 0.3")
        return Target(HELD_OUT_LOSS, loss)
    return None


def learnt(runs: Sequence[tuple[Run, Sequence[MetricPoint]]], target: Target) -> Histories:
    """By update rule what `runs`, the newest first, each with the points of the target's metric,
    took to it. Only runs count that learnt from the data of the newest of them; emulated ones
    learn nothing. A run that still works and has not come to it says nothing yet."""
    real = [
        (run, run.spec, points)
        for run, points in runs
        if isinstance(run.spec, TrainSpec) and not run.spec.emulate and points
    ]
    if not real:
        return {}
    data = measured_by(real[0][0], Yardstick.METRIC)
    taken: dict[UpdateRule, list[tuple[int, int]]] = {}
    missed: dict[UpdateRule, int] = {}
    for run, spec, points in real:
        if measured_by(run, Yardstick.METRIC) != data:
            continue
        rule = updates_of(spec.plan)
        first = reached(run, points, target.value, largest=target.metric == ACCURACY)
        if first is not None:
            taken.setdefault(rule, []).append((first.updates, run.id))
        elif run.state.is_final:
            missed[rule] = missed.get(rule, 0) + 1
    return {rule: _of(found, missed.get(rule, 0)) for rule, found in taken.items()}


def _of(found: Sequence[tuple[int, int]], missed: int) -> Learnt:
    counts = [updates for updates, _ in found]
    runs = tuple(number for _, number in found)
    return Learnt(median(counts), min(counts), max(counts), runs, missed)


def time_to_target(found: Prediction, histories: Histories) -> TimeToTarget | None:
    """That of a predicted plan; None where no run of its update rule has come to the target."""
    known = histories.get(updates_of(found.plan))
    if known is None:
        return None
    seconds = found.seconds_per_minibatch
    times = (known.updates * seconds, known.least * seconds, known.most * seconds)
    return TimeToTarget(*times, known)


def asked_for(question: Question, histories: Histories) -> tuple[Question, ...]:
    """The question, and where `best` may choose the schedule, the same under each rule that
    `histories` know: its schedule, or 1F1B for all that flush, and its microbatches per update."""
    if question.planner not in ("", BEST) or question.schedule:
        return (question,)
    flush = FLUSH.name
    known = {
        (flush if rule.rule == FLUSHING else rule.rule, max(rule.per_update)) for rule in histories
    }
    further = (
        replace(
            question,
            planner=BEST,
            schedule=name,
            batch=batch if schedule(name).batched else question.batch,
        )
        for name, batch in sorted(known)
    )
    return (question, *further)
