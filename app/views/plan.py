"""Plan: how a profiled model is cut over a cluster, and what that will do."""

from collections.abc import Sequence

import streamlit as st

from app import planner, services, state
from app.boundary import guarded
from app.charts.placement import describe
from app.components.allowed import why_not
from app.components.alternatives import alternatives, chosen_planner
from app.components.card import card
from app.components.empty_state import empty_state
from app.components.error_box import error_box
from app.components.figures import figures
from app.components.launch_form import launch_form
from app.components.memory_view import memory_view
from app.components.missing import missing
from app.components.page_header import page_header
from app.components.partition_view import partition_view
from app.components.plan_figures import plan_figures
from app.components.plan_form import Wanted, plan_form
from app.components.saved_plans import saved_plans
from app.components.share import share_plan
from app.components.stage_table import stage_table
from app.components.timeline_view import timeline_view
from app.components.why_view import why_view
from app.cuts import write_cut
from app.draft import Draft, draft
from app.formats import plain
from app.naming import BY_HAND, plan_name, rank_names
from app.state import Page, Param
from backend.cluster.document import write_cluster
from backend.prediction.prediction import Prediction
from backend.prediction.propose import Proposal


def page() -> None:
    """The inputs, the plans that there are, and the chosen one drawn."""
    with missing("Plan", Page.PLAN, "Plan anew"):
        _page()


def _page() -> None:
    profiles = services.backend().profiles.list()
    if not profiles:
        page_header("Plan", "Which layers run where.")
        empty_state(
            "No profile yet",
            "A plan is made from a profile: what each layer costs. Profile a model first.",
            Page.MODELS,
            "Go to Models",
        )
        return
    _open_saved()
    head = st.container()
    wanted = plan_form(profiles)
    found = _propose(wanted) if wanted else None
    if wanted is None or found is None:
        with head:
            page_header("Plan", "Which layers run where.")
        saved_plans()
        return
    base = chosen_planner(found)
    shown = draft(wanted, base, found)
    with head:
        _header(wanted, shown.proposal, base)
    _workbench(wanted, found, shown, base)
    saved_plans()


def _workbench(wanted: Wanted, found: Sequence[Proposal], shown: Draft, base: Proposal) -> None:
    """Figures, then the partition beside the alternatives; all of it for the same plan."""
    if shown.fault is not None:
        error_box(shown.fault)
    if shown.proposal is not None:
        figures(plan_figures(shown.proposal, found, wanted.cluster), "plan")
    with st.container(key="split-plan"):
        drawn, beside = st.columns([2.6, 1], gap="medium")
    question = (wanted.stored.id, wanted.cluster, wanted.schedule, wanted.batch)
    planned = base.prediction.plan.partition
    with drawn:
        partition_view(wanted.stored.profile, wanted.cluster, shown.cut, planned, question)
        if shown.proposal is not None:
            _details(wanted, shown.proposal.prediction)
    with beside:
        with card("Alternatives", "ranked by simulation"):
            alternatives(found, shown.proposal or base)
        if shown.proposal is not None:
            why_view(wanted, shown.proposal.prediction)
            memory_view(shown.proposal.prediction, wanted.cluster)


def _details(wanted: Wanted, prediction: Prediction) -> None:
    profile, plan = wanted.stored.profile, prediction.plan
    timeline = planner.predicted_timeline(profile, wanted.cluster, plan)
    with card("Predicted timeline", "one pipeline filled, run and drained; label = microbatch"):
        timeline_view("predicted", timeline, rank_names=rank_names(plan))
    in_order = profile.in_order(plan.partition.order)
    with card("Stages", "the same in figures"):
        stage_table(in_order, wanted.cluster, prediction)


def _open_saved() -> None:
    """?plan=: put what a saved plan was made for into the URL, once."""
    number = state.number(Param.PLAN)
    if number is None:
        return
    saved = services.backend().plans.get(number)
    by_hand = saved.plan.planner == BY_HAND
    for param, value in (
        (Param.PROFILE, saved.profile_id),
        (Param.CLUSTER, write_cluster(saved.cluster)),
        (Param.SCHEDULE, saved.plan.schedule),
        (Param.BATCH, saved.plan.batch),
        (Param.PLANNER, None if by_hand else saved.plan.planner),
        (Param.CUT, write_cut(saved.plan.partition) if by_hand else None),
        (Param.PLAN, None),
    ):
        state.put(param, value)


@guarded
def _propose(wanted: Wanted) -> list[Proposal]:
    return planner.proposals(
        wanted.stored.profile, wanted.cluster, wanted.schedule, wanted.batch, wanted.optimizer
    )


def _header(wanted: Wanted, chosen: Proposal | None, base: Proposal) -> None:
    stored = wanted.stored
    plan = (chosen or base).prediction.plan
    line = (
        f"profile **{stored.id}** · microbatch **{stored.profile.microbatch}** · "
        f"**{plain(plan_name(plan))}** · {plain(describe(wanted.cluster))}"
    )
    title = f"{plain(stored.profile.name)} on {wanted.cluster.num_devices} × "
    with page_header(title + plain(wanted.cluster.device.name), line):
        with st.popover("Share", icon=":material/link:"):
            share_plan(wanted, base.prediction.plan.planner)
        if chosen is not None:
            barred = why_not(stored.project_id)
            off = barred is not None
            with st.popover("Save plan", icon=":material/bookmark:", disabled=off, help=barred):
                _save(wanted, chosen)
            with st.popover(
                "Launch run",
                icon=":material/play_arrow:",
                type="primary",
                disabled=off,
                help=barred,
            ):
                _launch(wanted, chosen)


@guarded
def _save(wanted: Wanted, chosen: Proposal) -> None:
    with st.form("save-plan", border=False, clear_on_submit=True):
        name = st.text_input("Name", placeholder=chosen.prediction.plan.label, max_chars=120)
        if not st.form_submit_button("Save", type="primary", icon=":material/bookmark:"):
            return
    plans = services.backend().plans
    saved = plans.save(wanted.stored.id, wanted.cluster, chosen.prediction, name.strip())
    st.toast(f"Plan {saved.id} is saved", icon=":material/check:")


@guarded
def _launch(wanted: Wanted, chosen: Proposal) -> None:
    stored = wanted.stored
    launch_form(
        stored.definition_id,
        chosen.prediction.plan,
        lambda: services.backend().plans.save(stored.id, wanted.cluster, chosen.prediction).id,
        wanted.optimizer,
        stored.profile.name,
    )


page()
