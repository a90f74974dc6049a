"""How far a sweep is, and which of its runs is the best so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean

from backend.runs.remaining import remaining
from backend.runs.request.spec import StopSpec
from backend.runs.request.stopping import is_larger_better
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.runs.sweeps.sweep import Early, Sweep, Value


@dataclass(frozen=True, slots=True)
class SweepResult:
    """One run: `metric` is the last value of the sweep's, `seconds` from its start to its end;
    None where there is none yet, or where the run was deleted."""

    number: int
    run_id: int | None
    values: Mapping[str, Value]
    state: RunState | None
    metric: float | None
    samples_per_second: float | None
    seconds: float | None
    ended: str


@dataclass(frozen=True, slots=True)
class SweepReport:
    """`best` is the number of the best run by the metric; None where no run has it, or nobody
    knows which values are better. `seconds_left` until all have ended; None before one has."""

    sweep: Sweep
    results: tuple[SweepResult, ...]
    best: int | None
    num_ended: int
    num_live: int
    seconds_left: float | None


def report(
    sweep: Sweep, runs: Mapping[int, Run], latest: Mapping[int, Sequence[float]], now: datetime
) -> SweepReport:
    """`latest`: by run, what it has told of the metric, in order."""
    results = tuple(
        SweepResult(
            each.number,
            run.id if run else None,
            each.values,
            run.state if run else None,
            _metric(sweep.spec.early, run, latest),
            run.summary.samples_per_second if run else None,
            _seconds(run) if run else None,
            each.ended,
        )
        for each in sweep.runs
        for run in [runs.get(each.run_id or 0)]
    )
    found = [run for run in runs.values() if run.id in sweep.run_ids]
    return SweepReport(
        sweep,
        results,
        _best(sweep.spec.early, results),
        sum(run.state.is_final for run in found),
        sum(run.state.is_live for run in found),
        _seconds_left(found, now),
    )


def is_larger(early: Early) -> bool | None:
    """Whether larger values of the sweep's metric are better; None where nobody has said."""
    return is_larger_better(StopSpec(metric=early.metric, better=early.better))


def _metric(early: Early, run: Run | None, latest: Mapping[int, Sequence[float]]) -> float | None:
    if run is None:
        return None
    told = latest.get(run.id)
    return run.summary.reached.get(early.metric, told[-1] if told else None)


def _best(early: Early, results: Sequence[SweepResult]) -> int | None:
    larger = is_larger(early)
    told = {each.number: each.metric for each in results if each.metric is not None}
    if larger is None or not told:
        return None
    return (max if larger else min)(told, key=told.__getitem__)


def _seconds(run: Run) -> float | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds()


def _seconds_left(runs: Sequence[Run], now: datetime) -> float | None:
    """Those that wait take as long as those that were done have taken, as many at once as are
    live."""
    open_ = [run for run in runs if not run.state.is_final]
    took = [s for run in runs if run.state is RunState.SUCCEEDED and (s := _seconds(run))]
    if not open_:
        return 0.0
    if not took:
        return None
    usual = fmean(took)
    live = [run for run in open_ if run.state.is_live]
    going = sum(usual if (left := remaining(run, now)) is None else left for run in live)
    return (going + usual * (len(open_) - len(live))) / max(1, len(live))
