"""The finished runs that did the same as a run, before it."""

from functools import partial

from backend.comparison.last_run import LOSS, RECENT, LastRun, beside_last, does_the_same
from backend.runs.history.listing import RunFilter, RunOrder
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.services.runs.stores import Stores

LOOKED_AT, TAKEN = 20, 5
"""Runs of the plan that are looked at, and those among them that a spread is taken of."""


def beside_last_of(stores: Stores, run: Run) -> LastRun | None:
    """`run` beside the last one; None while it works, and where no other did the same."""
    if not isinstance(run.spec, TrainSpec) or run.spec.plan_id is None or not run.state.is_final:
        return None
    wanted = RunFilter(states=(RunState.SUCCEEDED,), kind=run.kind, plan_id=run.spec.plan_id)
    found = stores.runs.page(wanted, RunOrder(), LOOKED_AT, 0).runs
    earlier = [other for other in found if other.id < run.id and does_the_same(run, other)]
    return beside_last(run, earlier[:TAKEN], partial(_recent, stores))


def _recent(stores: Stores, run: Run, name: str) -> tuple[float, ...]:
    """The figure in each of the last epochs."""
    if name == LOSS:
        return tuple(stores.metrics.epoch_means(run.id, name, RECENT))
    return tuple(point.value for point in stores.metrics.last(run.id, name, RECENT))
