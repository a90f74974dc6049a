"""What is planned, in a line, and what one may do with the plan: share, save, launch."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import services
from app.components.launch.run_form import run_form, why_not_run
from app.components.plan.kept_plan import kept_plan
from app.components.plan.plan_links import share_plan
from app.components.plan.wanted import Wanted
from app.components.profile.import_profile import import_menu
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.labels_form import labels_line
from app.components.shell.layout import page_header
from app.formats import plain
from app.naming import cluster_words, plan_name
from app.session.state import Page
from backend.planning.plan import Plan
from backend.prediction.answer import Answer
from backend.prediction.question import Question
from backend.runs.plans import MAX_NAME, StoredPlan
from backend.runs.request.as_planned import as_planned
from backend.runs.request.spec import TrainSpec

CARRIED = (
    "Times are estimated for a device that nobody measured. Profile the model there to save or "
    "launch a plan."
)


def plan_header(
    wanted: Wanted, question: Question, plan: Plan, kept: StoredPlan | None, remark: str = ""
) -> DeltaGenerator:
    """Title and line; what comes back takes the buttons. `kept` where it is shown as kept, `remark`
    where more is to come."""
    own = f"**{plain(kept.name)}**, plan {kept.id} · " if kept else ""
    profile = plain(wanted.stored.name) or wanted.stored.id
    line = (
        f"{own}profile **{profile}** · microbatch **{plan.microbatch}** · "
        f"**{plain(plan_name(plan))}** · {plain(cluster_words(question.cluster))}"
    )
    cluster = question.cluster
    title = f"{question.profile.name} on {cluster.num_devices} × {cluster.device_names}"
    row = page_header(title, line, remark)
    if kept is not None:
        labels_line(kept)
    return row


def plan_actions(
    wanted: Wanted,
    question: Question,
    chosen: Answer | None,
    base: Answer,
    kept: StoredPlan | None,
) -> None:
    """The buttons. `chosen` is the plan that is shown; None where it does not fit."""
    with st.popover("Share", icon=":material/link:"):
        share_plan(wanted, base.prediction.plan.planner)
    import_menu(Page.PLAN)
    if kept is not None:
        kept_plan(kept)
    if chosen is not None:
        _actions(wanted, question, chosen, why_not_kept(wanted))


def why_not_kept(wanted: Wanted) -> str | None:
    """Why no plan of this question is kept; None where one may be."""
    return CARRIED if wanted.device else why_not(wanted.stored.project_id)


def _actions(wanted: Wanted, question: Question, chosen: Answer, barred: str | None) -> None:
    with st.popover("Save plan", icon=":material/bookmark:", **closed(barred)):
        _save(wanted, question, chosen)
    why = barred or why_not_run(wanted.stored.definition_id, chosen.prediction.plan)
    with st.popover("Launch run", icon=":material/play_arrow:", type="primary", **closed(why)):
        _launch(wanted, question, chosen)


@guarded
def _save(wanted: Wanted, question: Question, chosen: Answer) -> None:
    with st.form("save-plan", border=False, clear_on_submit=True):
        name = st.text_input("Name", placeholder=chosen.prediction.plan.label, max_chars=MAX_NAME)
        if not st.form_submit_button("Save", type="primary", icon=":material/bookmark:"):
            return
    plans = services.backend().plans
    saved = plans.save(wanted.stored.id, question.cluster, chosen.prediction, name.strip())
    st.toast(f"Plan {saved.id} is saved", icon=":material/check:")


@guarded
def _launch(wanted: Wanted, question: Question, chosen: Answer) -> None:
    stored, prediction = wanted.stored, chosen.prediction
    run_form(
        as_planned(TrainSpec(stored.definition_id, prediction.plan), prediction),
        stored.profile.name,
        save_plan=lambda: services.backend().plans.save(stored.id, question.cluster, prediction).id,
    )
