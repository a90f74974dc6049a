"""A run beside the last finished ones of the same plan: what is worse by more than it varies.

Memory is not among the figures: what ranks really held is not measured.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean, linear_regression

from backend.runs.events import ACCURACY, HELD_OUT_LOSS
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

THROUGHPUT, LOSS = "throughput", "loss"
LEAST = {THROUGHPUT: 0.05}
"""Shares by which two runs of one plan may differ in any case: their cores are rarely idle."""
LEAST_LEARNT = 0.01
LEARNT = (LOSS, HELD_OUT_LOSS, ACCURACY)
LARGER_IS_BETTER = (THROUGHPUT, ACCURACY)
RECENT = 5
"""Epochs whose values say by how much a figure still varies at the end of a run."""
ON_A_LINE = 4
"""Values from which on a line through them is taken out: what is learnt steadily is no variation.
"""
TOO_MUCH = 0.5
"""A figure that varies by such a share says nothing yet: a run of a few epochs."""

_VALUES: Mapping[str, Callable[[Run], float | None]] = {
    THROUGHPUT: lambda run: run.summary.samples_per_second,
    LOSS: lambda run: run.summary.loss,
    HELD_OUT_LOSS: lambda run: run.summary.metrics.get(HELD_OUT_LOSS),
    ACCURACY: lambda run: run.summary.accuracy,
}


@dataclass(frozen=True, slots=True)
class FigureBeside:
    """A figure of a run and of the last one. `spread`: the share of `before` by which it varies,
    over the last epochs of both and among the earlier runs. What is learnt still moves there: it
    varies by as much as in the one run where it moves less."""

    name: str
    now: float
    before: float
    spread: float

    @property
    def change(self) -> float:
        """By which share of `before` it is more (above 0) or less."""
        return self.now / self.before - 1

    @property
    def is_beyond(self) -> bool:
        return abs(self.change) > self.spread

    @property
    def is_open(self) -> bool:
        """Whether it varies too much to be compared."""
        return not self.is_beyond and self.spread >= TOO_MUCH

    @property
    def is_worse(self) -> bool:
        """Beyond its spread, to the worse."""
        return self.is_beyond and (self.change < 0) == (self.name in LARGER_IS_BETTER)


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last finished run of the same plan, definition and data, and what is beside it."""

    run_id: int
    name: str
    figures: tuple[FigureBeside, ...]

    @property
    def regressions(self) -> tuple[FigureBeside, ...]:
        return tuple(figure for figure in self.figures if figure.is_worse)


def does_the_same(run: Run, other: Run) -> bool:
    """Whether both train the same definition by the same plan and schedule on the same data."""
    return (key := _same_work(run)) is not None and key == _same_work(other)


def beside_last(
    run: Run,
    earlier: Sequence[Run],
    recent: Callable[[Run, str], Sequence[float]],
) -> LastRun | None:
    """`run` beside the first of `earlier`, the finished ones that do the same, the newest first;
    None without any. `recent`: a figure in each of the last epochs of a run."""
    if not earlier:
        return None
    last = earlier[0]
    figures = []
    for name, value in _VALUES.items():
        now, before = value(run), value(last)
        if now is None or not before or not isfinite(now / before):
            continue
        if name in LEARNT and not _learns_alike(run, last):
            continue
        others = [found for each in earlier if (found := value(each)) is not None]
        varied = [_variation(recent(each, name)) for each in (run, last)]
        within = min(varied) if name in LEARNT else max(varied)
        spread = max(LEAST.get(name, LEAST_LEARNT), within, _range(others))
        figures.append(FigureBeside(name, now, before, spread))
    return LastRun(last.id, last.name, tuple(figures))


def _same_work(run: Run) -> tuple[object, ...] | None:
    spec = run.spec
    if not isinstance(spec, TrainSpec):
        return None
    how = (spec.precision, spec.state_precision, spec.emulate, spec.parameters)
    return spec.definition_id, spec.plan, spec.data, *how


def _learns_alike(run: Run, other: Run) -> bool:
    """Whether they have come equally far by the same rule."""
    one, two = run.spec, other.spec
    if not isinstance(one, TrainSpec) or not isinstance(two, TrainSpec):
        return False
    alike = (one.optimizer, one.local_head) == (two.optimizer, two.local_head)
    return alike and run.summary.epochs == other.summary.epochs


def _variation(values: Sequence[float]) -> float:
    """The range about a line through them; of a few values, from the least to the most."""
    known = [value for value in values if isfinite(value)]
    if len(known) < ON_A_LINE:
        return _range(known)
    slope, start = linear_regression(range(len(known)), known)
    apart = [value - (start + slope * place) for place, value in enumerate(known)]
    mean = abs(fmean(known))
    return (max(apart) - min(apart)) / mean if mean else 0.0


def _range(values: Sequence[float]) -> float:
    """From the least to the most, as a share of the mean."""
    known = [value for value in values if isfinite(value)]
    mean = sum(known) / len(known) if known else 0.0
    return abs((max(known) - min(known)) / mean) if mean else 0.0
