"""Runs of sweeps that end before they are done, because others tell that they may."""

from collections.abc import Iterator, Sequence

from backend.runs.run import Run
from backend.runs.states import RunState
from backend.runs.sweeps.median import falls_behind
from backend.runs.sweeps.report import is_larger
from backend.runs.sweeps.sweep import Sweep
from backend.services.runs.stores import Stores


def tend(stores: Stores) -> int:
    """Look at every open sweep, and end what its rules say; how many runs. Twice is as once: a run
    that has ended is not ended again."""
    if not stores.sweeps.has_open():
        return 0
    return sum(_tend(sweep, stores) for sweep in stores.sweeps.open())


def end_early(sweep: Sweep, run: Run, why: str, stores: Stores) -> bool:
    """Cancel a run that has not ended, and note why."""
    ended = stores.runs.cancel_queued(run.id) or stores.runs.request_cancel(run.id)
    if ended:
        number = next(each.number for each in sweep.runs if each.run_id == run.id)
        stores.sweeps.explain(sweep.id, number, why)
    return ended


def _tend(sweep: Sweep, stores: Stores) -> int:
    runs = stores.runs.several(sweep.run_ids)
    waiting = [run for run in runs if not run.state.is_final]
    if not waiting:
        stores.sweeps.close(sweep.id)
        return 0
    return sum(
        end_early(sweep, run, why, stores)
        for run, why in (*_reached(sweep, runs), *_behind(sweep, runs, stores))
        if not run.cancel_requested
    )


def _reached(sweep: Sweep, runs: Sequence[Run]) -> Iterator[tuple[Run, str]]:
    """All others, once one has reached the target."""
    first = next((run for run in runs if run.summary.seconds_to_target is not None), None)
    if first is None or not sweep.spec.early.first:
        return
    for run in runs:
        if not run.state.is_final:
            yield run, f"run {first.id} reached the target"


def _behind(sweep: Sweep, runs: Sequence[Run], stores: Stores) -> Iterator[tuple[Run, str]]:
    early, larger = sweep.spec.early, is_larger(sweep.spec.early)
    running = [run for run in runs if run.state is RunState.RUNNING]
    done = [run.id for run in runs if run.state is RunState.SUCCEEDED]
    if not early.median or larger is None or not running:
        return
    told = stores.metrics.of_several([*done, *(run.id for run in running)], early.metric)
    for run in running:
        others = [told.get(id_, ()) for id_ in done]
        if why := falls_behind(told.get(run.id, ()), others, larger, early.grace):
            yield run, why
