"""What can be done with a kept plan: give it another name, delete it."""

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.confirm import confirm
from app.formats import plain
from app.session import state
from app.session.state import Param
from backend.runs.plans import MAX_NAME, StoredPlan


def kept_plan(kept: StoredPlan) -> None:
    """Buttons for the head of the page while a kept plan is shown as it was kept."""
    barred = why_not(kept.project_id)
    with st.popover("Rename", icon=":material/edit:", **closed(barred)):
        _rename(kept)

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


@guarded
def _rename(kept: StoredPlan) -> None:
    with st.form("rename-plan", border=False):
        name = st.text_input("Name", kept.name, max_chars=MAX_NAME)
        if not st.form_submit_button("Rename the plan", type="primary"):
            return
    services.backend().plans.rename(kept.id, name)
    state.done(f"Plan {kept.id} has a new name")
