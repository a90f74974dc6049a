"""Whether the metric that ends a training by patience is one that its evaluations tell."""

from backend.runs.events import ACCURACY, HELD_OUT_LOSS, PERPLEXITY
from backend.runs.request.spec import TrainSpec
from backend.runs.request.stopping import EACH_UPDATE, watched_in_vain
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.services.runs.stores import Stores


def in_vain(stores: Stores, run: Run) -> str | None:
    """Why patience and the best checkpoint have no effect in this run, for people; None where
    they have, and before the first evaluation."""
    spec = run.spec
    if not isinstance(spec, TrainSpec) or spec.emulate:
        return None
    if not (spec.stop.patience or spec.checkpoints.best):
        return None
    told = _told_by_evaluations(stores, run.id)
    if spec.stop.metric in told or not (told or run.state is RunState.SUCCEEDED):
        return None
    return watched_in_vain(spec.stop, spec.checkpoints.best, told, run.state.is_final)


def _told_by_evaluations(stores: Stores, run_id: int) -> tuple[str, ...]:
    """Names of metrics, without those that a loss logs after each update."""
    names = [name for name in stores.metrics.names(run_id) if name not in EACH_UPDATE]
    usual = [name for name in (HELD_OUT_LOSS, ACCURACY, PERPLEXITY) if name in names]
    if not usual:
        return tuple(names)
    evaluated = {point.step for point in stores.metrics.list(run_id, usual[0])}
    return tuple(
        name
        for name in names
        if evaluated.issuperset(point.step for point in stores.metrics.last(run_id, name, 2))
    )
