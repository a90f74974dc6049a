"""What was predicted of a run: the plan that is kept with it, and its figures."""

from app import services
from backend.errors import StageflowError
from backend.prediction.prediction import Prediction
from backend.runs.plans import StoredPlan
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run


def prediction_of(run: Run) -> Prediction | None:
    """The figures that were predicted when the run's plan was kept."""
    stored = plan_of(run)
    return stored.prediction if stored else None


def plan_of(run: Run) -> StoredPlan | None:
    """The kept plan that the run was launched from, if there is one."""
    if not isinstance(run.spec, TrainSpec) or run.spec.plan_id is None:
        return None
    try:
        return services.backend().plans.get(run.spec.plan_id)
    except StageflowError:
        return None
