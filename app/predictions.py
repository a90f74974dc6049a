"""What was predicted of a run: kept with it, or simulated again from its plan."""

from app import planner, services
from app.charts.timeline import num_microbatches
from backend.errors import StageflowError
from backend.pipeline.timeline import Timeline
from backend.prediction.prediction import Prediction
from backend.runs.plans import StoredPlan
from backend.runs.run import Run
from backend.runs.spec import TrainSpec


def prediction_of(run: Run) -> Prediction | None:
    """The figures that were predicted when the run's plan was kept."""
    stored = _plan(run)
    return stored.prediction if stored else None


def predicted_beside(run: Run, segment: int, measured: Timeline) -> Timeline | None:
    """The predicted timeline of a measured segment: as it is stored at the run's end, before
    that simulated for as many microbatches. None where the run names no plan that is kept."""
    backend = services.backend()
    stored = _plan(run)
    kept = backend.runs.timeline(run.id, "predicted", segment)
    if kept is not None or stored is None:
        return kept
    try:
        profile = backend.profiles.get(stored.profile_id).profile
        return planner.segment_timeline(
            profile, stored.cluster, stored.plan, num_microbatches(measured)
        )
    except StageflowError:
        return None


def _plan(run: Run) -> StoredPlan | None:
    if not isinstance(run.spec, TrainSpec) or run.spec.plan_id is None:
        return None
    try:
        return services.backend().plans.get(run.spec.plan_id)
    except StageflowError:
        return None
