"""Several runs side by side, as plain values: what differs, curves on one axis, who was first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from typing import Any

from backend.codec import to_plain
from backend.runs.history.records import MetricPoint
from backend.runs.request.groups import groups_text
from backend.runs.request.spec import ImportedSpec, StoredSpec, TrainSpec
from backend.runs.run import Run, RunSummary

ABSENT = "—"
USUAL = ("accuracy", "loss", "throughput")
"""Metrics that a summary has a field for."""
SAID = ("epochs", "seed", "optimizer.name", "optimizer.learning_rate")
"""What everybody asks of a training, usual or not."""
OF_PLAN = ("planned_in", "tracing", "granularity")
"""What nobody chooses beside the plan: it comes with that."""


class CurveAxis(StrEnum):
    """What a curve is drawn over."""

    UPDATES = "minibatches"
    EPOCHS = "epochs"
    SAMPLES = "samples"
    SECONDS = "wall clock"


@dataclass(frozen=True, slots=True)
class Reached:
    """When a run first had the accuracy: seconds since its start (None where it had it from
    the run that it goes on from), minibatches, epochs."""

    seconds: float | None
    updates: int
    epochs: int


def parameters(spec: StoredSpec) -> dict[str, str]:
    """What was asked for, by dotted names: "optimizer.learning_rate" -> "0.01"."""
    if isinstance(spec, ImportedSpec):
        return {**spec.parameters, "definition_id": str(spec.definition_id), "kind": spec.kind}
    found = _flat(to_plain(StoredSpec, spec))
    if isinstance(spec, TrainSpec):
        found = {k: v for k, v in found.items() if not k.startswith("plan.partition")}
        found["optimizer.groups"] = groups_text(spec.optimizer.groups) or ABSENT
        splits = (f"{each.layer} by {each.kind}" for each in spec.plan.splits)
        found["plan.splits"] = ", ".join(splits) or ABSENT
        found["plan.partition"] = spec.plan.partition.label
        found["plan.stages"] = str(len(spec.plan.partition.stages))
        found["plan.devices"] = str(sum(s.replicas for s in spec.plan.partition.stages))
    return found


def chosen(spec: TrainSpec) -> dict[str, str]:
    """What somebody chose beside the plan: the parameters that are not as usual."""
    usual = parameters(TrainSpec(spec.definition_id, spec.plan, spec.plan_id))
    return {
        name: value
        for name, value in parameters(spec).items()
        if value != usual.get(name) and name not in OF_PLAN
    }


def as_usual(spec: TrainSpec) -> dict[str, str]:
    """Those of `SAID` that have their usual values."""
    unlike, every = chosen(spec), parameters(spec)
    return {name: every[name] for name in SAID if name not in unlike}


def differing(runs: Sequence[Run]) -> dict[str, tuple[str, ...]]:
    """The parameters whose values are not the same in all runs, one value per run."""
    return {name: values for name, values in every(runs).items() if len(set(values)) > 1}


def every(runs: Sequence[Run]) -> dict[str, tuple[str, ...]]:
    """All parameters, by name."""
    columns = [parameters(run.spec) for run in runs]
    names = sorted({name for column in columns for name in column})
    return {name: tuple(column.get(name, ABSENT) for column in columns) for name in names}


def _flat(value: Any, name: str = "") -> dict[str, str]:
    match value:
        case dict():
            parts = (_flat(item, f"{name}.{key}" if name else key) for key, item in value.items())
            return {key: text for part in parts for key, text in part.items()}
        case list():
            return {name: ", ".join(map(str, value)) or ABSENT}
        case None | "":
            return {name: ABSENT}
        case _:
            return {name: str(value)}


def positions(
    run: Run, points: Sequence[MetricPoint], axis: CurveAxis, updates_per_epoch: float | None
) -> list[float]:
    """Where the points lie on the axis: minibatches done, epochs, samples, or seconds since
    the run started (below 0: what it took over from the run that it goes on from)."""
    match axis:
        case CurveAxis.UPDATES:
            return [point.step + 1 for point in points]
        case CurveAxis.EPOCHS:
            length = updates_per_epoch or 1.0
            return [(point.step + 1) / length for point in points]
        case CurveAxis.SAMPLES:
            return [(point.step + 1) * samples_per_update(run) for point in points]
        case CurveAxis.SECONDS:
            origin = run.started_at.timestamp() if run.started_at else 0.0
            return [point.time - origin for point in points]


def so_far(run: Run, newest: Mapping[str, float]) -> RunSummary:
    """The run's summary; while it works, the newest of its metrics where that says nothing yet."""
    known = run.summary
    if run.state.is_final:
        return known
    speed = newest.get("throughput")
    return replace(
        known,
        accuracy=known.accuracy if known.accuracy is not None else newest.get("accuracy"),
        loss=known.loss if known.loss is not None else newest.get("loss"),
        metrics=known.metrics or {n: v for n, v in newest.items() if n not in USUAL},
        samples_per_second=known.samples_per_second or speed,
        seconds_per_minibatch=known.seconds_per_minibatch
        or (samples_per_update(run) / speed if speed else None),
    )


def samples_per_update(run: Run) -> int:
    """Samples of one minibatch; 1 where the run does not train."""
    if not isinstance(run.spec, TrainSpec):
        return 1
    return run.spec.plan.microbatch * run.spec.plan.batch


def updates_per_epoch(ends: Sequence[MetricPoint]) -> float | None:
    """Minibatches of an epoch, from a metric that is told at each epoch's end, and maybe before
    it: the last point of an epoch that another one has come after stands at its end."""
    newest = ends[-1].epoch if ends else 0
    closed = [point for point in ends if point.epoch < newest] or ends
    last = closed[-1] if closed else None
    return (last.step + 1) / (last.epoch + 1) if last else None


def smooth(values: Sequence[float], weight: float) -> list[float]:
    """Exponential moving average without the bias of its start; `weight` 0 (none) up to 1.
    What is not finite is passed on and leaves the average as it is.
    Source: Kingma, Ba, "Adam", ICLR 2015, section 3 (bias correction)."""
    average, total, smoothed = 0.0, 0.0, []
    for value in values:
        if not isfinite(value):
            smoothed.append(value)
            continue
        average = weight * average + (1 - weight) * value
        total = weight * total + (1 - weight)
        smoothed.append(average / total)
    return smoothed


def reached(
    run: Run, points: Sequence[MetricPoint], target: float, *, largest: bool = True
) -> Reached | None:
    """When a metric was first `target` or better; None where it was not."""
    origin = run.started_at.timestamp() if run.started_at else 0.0
    for point in points:
        if point.value >= target if largest else point.value <= target:
            seconds = point.time - origin
            return Reached(seconds if seconds >= 0 else None, point.step + 1, point.epoch + 1)
    return None


def best(values: Sequence[float | None], *, largest: bool) -> set[int]:
    """Which of the values are the best: none where fewer than two are known, or all are equal."""
    known = {n: value for n, value in enumerate(values) if value is not None and isfinite(value)}
    if len(known) < 2 or len(set(known.values())) == 1:
        return set()
    top = (max if largest else min)(known.values())
    return {n for n, value in known.items() if value == top}
