"""Why a plan cannot be run, before anybody asks for it."""

from backend.errors import InvalidInput
from backend.planning.plan import Plan
from backend.runs.request.combinations import check_combinations
from backend.runs.request.spec import TrainSpec


def why_not_run(definition_id: int, plan: Plan) -> str | None:
    """What the runtime cannot do of `plan`, and what to do about it; None where it can."""
    try:
        check_combinations(TrainSpec(definition_id, plan))
    except InvalidInput as fault:
        return f"{fault}. {fault.advice}"
    return None
