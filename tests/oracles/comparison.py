"""Measured beside predicted and where time went, span by span: `app.charts.deviations` is held
against it."""

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Forward,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.timeline import Span, Timeline


@dataclass(frozen=True, slots=True)
class Deviation:
    """One action, measured and predicted. `seconds` is measured minus predicted duration,
    `share` the same over the predicted one (None where nothing was predicted for it)."""

    measured: Span
    predicted: Span

    @property
    def seconds(self) -> float:
        return self.measured.seconds - self.predicted.seconds

    @property
    def share(self) -> float | None:
        predicted = self.predicted.seconds
        return self.seconds / predicted if predicted > 0 else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two timelines joined on (rank, index): `deviations` of the actions that keep a rank busy, in
    order; `unmatched` actions are in one of the two only, or differ."""

    deviations: tuple[Deviation, ...]
    unmatched: int

    @property
    def median_share(self) -> float | None:
        """Median of the deviations' absolute shares; None where there is none."""
        shares = [abs(d.share) for d in self.deviations if d.share is not None]
        return median(shares) if shares else None

    def largest(self, count: int = 10) -> tuple[Deviation, ...]:
        """The `count` deviations with the most seconds, either way."""
        return tuple(sorted(self.deviations, key=lambda d: -abs(d.seconds))[:count])


def compare(measured: Timeline, predicted: Timeline) -> Comparison:
    """`measured` beside `predicted`. They may cover different actions: a segment that was
    cancelled is compared as far as it went."""
    plan = {(span.rank, span.index): span for span in predicted.spans}
    pairs = [(span, plan.get((span.rank, span.index))) for span in measured.spans]
    joined = [
        Deviation(span, other) for span, other in pairs if other and other.action == span.action
    ]
    return Comparison(
        deviations=tuple(d for d in joined if not isinstance(d.measured.action, Send | Recv)),
        unmatched=len(measured.spans) + len(plan) - 2 * len(joined),
    )


def attribution(timeline: Timeline) -> tuple[dict[str, float], ...]:
    """Per rank the seconds by cause; they add up to the makespan.

    Waiting is time inside a receive; sends overlap with compute and count nowhere. Idle is
    what is left: fill, drain, and in a predicted timeline the wait for the others of an
    all-reduce, which a measured one has inside the all-reduce.
    """
    spent: list[defaultdict[str, float]] = [defaultdict(float) for _ in range(timeline.num_ranks)]
    for span in timeline.spans:
        if cause := _cause(span.action):
            spent[span.rank][cause] += span.seconds
    makespan = timeline.makespan
    return tuple({**causes, "idle": max(0.0, makespan - sum(causes.values()))} for causes in spent)


def _cause(action: Action) -> str | None:
    match action:
        case Forward():
            return "forward"
        case Recompute():
            return "recompute"
        case Backward():
            return "backward"
        case BackwardInput():
            return "backward, inputs"
        case BackwardWeight():
            return "backward, weights"
        case Step():
            return "optimizer"
        case AllReduce():
            return "all-reduce"
        case Average():
            return "averaging"
        case Recv():
            return "waiting"
        case Send():
            return None
