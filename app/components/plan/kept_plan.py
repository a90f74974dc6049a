"""What can be done with a kept plan: change its name, note and tags; delete it."""

from app import services
from app.components.shell.allowed import why_not
from app.components.shell.confirm import confirm
from app.components.shell.labels_form import labels_form
from app.formats import plain
from app.session import state
from app.session.state import Param
from backend.runs.plans import MAX_NAME, StoredPlan


def kept_plan(kept: StoredPlan) -> None:
    """Buttons for the head of the page while a kept plan is shown as it was kept."""
    barred = why_not(kept.project_id)
    labels_form("plan", kept, MAX_NAME, services.backend().plans.label)

    def delete() -> None:
        services.backend().plans.delete(kept.id)
        state.put(Param.PLAN, None)
        state.done(f"Plan {kept.id} is deleted")

    confirm(
        "Delete",
        "delete",
        f"Delete plan {kept.id}, **{plain(kept.name)}**, for good?",
        "Delete the plan",
        delete,
        key="delete-plan",
        barred=barred,
    )
