"""Plan: how a profiled model is cut over a cluster, and what that will do."""

from collections.abc import Sequence

import streamlit as st

from app import planner, services, state
from app.boundary import guarded
from app.charts.placement import describe
from app.components.alternatives import alternatives
from app.components.card import card
from app.components.empty_state import empty_state
from app.components.figures import figures
from app.components.launch_form import launch_form
from app.components.page_header import page_header
from app.components.partition_view import partition_view
from app.components.plan_figures import plan_figures
from app.components.plan_form import Wanted, plan_form
from app.components.timeline_view import timeline_view
from app.formats import plain
from app.naming import plan_name, rank_names
from app.state import Page, Param
from backend.cluster.document import write_cluster
from backend.planning.plan import Plan
from backend.prediction.propose import Proposal


def page() -> None:
    """The inputs, the plans that there are, and the chosen one drawn."""
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
        return
    row, below = st.container(), st.container()
    with below, st.container(key="split-plan"):
        drawn, beside = st.columns([2.6, 1], gap="medium")
    with beside:
        chosen = _choose(found)
    with head:
        _header(wanted, chosen)
    with row:
        figures(plan_figures(chosen, found, wanted.cluster), "plan")
    with drawn:
        partition_view(wanted.stored.profile, wanted.cluster, chosen.prediction)
        _timeline(wanted, chosen.prediction.plan)


def _open_saved() -> None:
    """?plan=: put what a saved plan was made for into the URL, once."""
    number = state.number(Param.PLAN)
    if number is None:
        return
    saved = services.backend().plans.get(number)
    for param, value in (
        (Param.PROFILE, saved.profile_id),
        (Param.CLUSTER, write_cluster(saved.cluster)),
        (Param.SCHEDULE, saved.plan.schedule),
        (Param.BATCH, saved.plan.batch),
        (Param.PLANNER, saved.plan.planner),
        (Param.PLAN, None),
    ):
        state.put(param, value)


@guarded
def _propose(wanted: Wanted) -> list[Proposal]:
    return planner.proposals(
        wanted.stored.profile, wanted.cluster, wanted.schedule, wanted.batch, wanted.optimizer
    )


def _choose(found: Sequence[Proposal]) -> Proposal:
    with card("Alternatives", "ranked by simulation"):
        chosen = alternatives(found)
    with card("Why this one"):
        st.markdown(plain(chosen.reason))
    return chosen


def _header(wanted: Wanted, chosen: Proposal) -> None:
    stored = wanted.stored
    line = (
        f"profile **{stored.id}** · microbatch **{stored.profile.microbatch}** · "
        f"**{plain(plan_name(chosen.prediction.plan))}** · {plain(describe(wanted.cluster))}"
    )
    title = f"{plain(stored.profile.name)} on {wanted.cluster.num_devices} × "
    with page_header(title + plain(wanted.cluster.device.name), line):
        if st.button("Save plan", icon=":material/bookmark:"):
            _save(wanted, chosen)
        with st.popover("Launch run", icon=":material/play_arrow:", type="primary"):
            _launch(wanted, chosen)


@guarded
def _save(wanted: Wanted, chosen: Proposal) -> int:
    plans = services.backend().plans
    saved = plans.save(wanted.stored.id, wanted.cluster, chosen.prediction)
    st.toast(f"Plan {saved.id} is saved", icon=":material/check:")
    return saved.id


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


def _timeline(wanted: Wanted, plan: Plan) -> None:
    timeline = planner.predicted_timeline(wanted.stored.profile, wanted.cluster, plan)
    with card("Predicted timeline", "one pipeline filled, run and drained; label = microbatch"):
        timeline_view("predicted", timeline, rank_names=rank_names(plan))


page()
