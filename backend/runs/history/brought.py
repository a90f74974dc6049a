"""The history of a run of others, as a tracker has it, and under which names it is kept here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from backend.runs.events import ACCURACY, HELD_OUT_LOSS, PERPLEXITY
from backend.runs.history.records import MetricPoint
from backend.runs.states import RunState

PARTS = ("val", "valid", "validation", "eval", "test", "held_out")
"""What others call the samples that are held out."""
USUAL = {
    **{f"{part}{sign}loss": HELD_OUT_LOSS for part in PARTS for sign in "_/."},
    **{f"{part}{sign}acc": ACCURACY for part in PARTS for sign in "_/."},
    **{f"{part}{sign}accuracy": ACCURACY for part in PARTS for sign in "_/."},
    **{f"{part}{sign}perplexity": PERPLEXITY for part in PARTS for sign in "_/."},
    **{f"train{sign}loss": "loss" for sign in "_/."},
}
"""Our names of metrics by those that are usual elsewhere."""


@dataclass(frozen=True, slots=True)
class TheirRun:
    """`metrics` by name, in order of their steps; `started` and `finished` in Unix seconds (None:
    it has not ended); `url` of its page there, "" without one."""

    tracker: str
    remote: str
    name: str
    state: RunState
    started: float
    finished: float | None
    url: str = ""
    note: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    metrics: Mapping[str, Sequence[MetricPoint]] = field(default_factory=dict)


def renamed(history: TheirRun, names: Mapping[str, str]) -> TheirRun:
    """With metrics under the names that runs here have for them: those of `names`, else the usual
    ones, where no other metric has that name already."""
    found = dict(history.metrics)
    for name in history.metrics:
        ours = names.get(name) or (USUAL.get(name.lower(), name) if name not in names else name)
        if ours not in found:
            found[ours] = found.pop(name)
    return replace(history, metrics=found)


def stepped(points: Sequence[MetricPoint]) -> list[MetricPoint]:
    """The points in order of their steps; by their times, numbered, where none has a step."""
    if len(points) > 1 and not any(point.step for point in points):
        ordered = sorted(points, key=lambda point: point.time)
        return [replace(point, step=number) for number, point in enumerate(ordered)]
    return sorted(points, key=lambda point: (point.step, point.time))
