"""Launch: a run again with changes, or a training by a kept plan. The link holds every value."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import services
from app.components.launch.fallback_line import fallback_line
from app.components.launch.node_notice import node_notice
from app.components.launch.planned_fields import choose_planned
from app.components.launch.run_form import run_form, why_not_run
from app.components.runs.run_words import plan_label
from app.components.shell.layout import card, empty_state, missing, page_header
from app.formats import plain
from app.naming import plan_name, plan_words
from app.session import state
from app.session.state import Page, Param
from backend.prediction.question import Question
from backend.runs.plans import StoredPlan
from backend.runs.request.as_planned import as_planned
from backend.runs.request.groups import with_decay_as_before
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run


@missing("Launch", Page.RUNS, "All runs")
def page() -> None:
    """What ?run= was, or what ?plan= says, else a choice among the kept plans."""
    number = state.wanted_id(Param.RUN, "run")
    if number is not None:
        return _again(services.backend().runs.get(number))
    plans, named = services.backend().plans.list(), state.wanted_id(Param.PLAN, "plan")
    if not plans and named is None:
        page_header("Launch", "Start a training from a saved plan.")
        return empty_state(
            "No saved plan yet",
            "Plan a profiled model and save the plan; or open a run and clone it.",
            Page.PLAN,
        )
    return _by_plan(plans, named)


def _again(run: Run) -> None:
    page_header(
        f"Launch {run.name} again",
        f"As run **{run.id}** was: {plain(plan_label(run))}. Change what you want.",
    )
    node_notice()
    with card("Values"):
        spec = run.asked
        if isinstance(spec, TrainSpec):
            spec = replace(spec, optimizer=with_decay_as_before(spec.optimizer))
        run_form(spec, run.name, origin=run.id)


@missing("Launch", Page.PLAN, "New plan")
def _by_plan(plans: Sequence[StoredPlan], named: int | None) -> None:
    chosen = services.backend().plans.get(named) if named else plans[0]
    profile = services.backend().profiles.get(chosen.profile_id)
    page_header("Launch", f"Train {plain(profile.profile.name)} by plan **{chosen.id}**.")
    by_id = {plan.id: plan for plan in (chosen, *plans)}
    picked = st.selectbox(
        "Plan",
        list(by_id),
        format_func=lambda number: _described(by_id[number]),
        width=420,
    )
    if picked != chosen.id:
        state.put(Param.PLAN, picked)
        choose_planned(_spec(by_id[picked], profile.definition_id))
        st.rerun()
    spec = _spec(chosen, profile.definition_id)
    node_notice()
    made = chosen.prediction
    question = Question(profile.profile, chosen.cluster, optimizer=spec.optimizer.planned)
    fallback_line(question.under(state_precision=made.state_precision), chosen.plan)
    if why := why_not_run(profile.definition_id, chosen.plan):
        st.warning(plain(f"This plan cannot be run: {why}"), icon=":material/block:")
        return
    with card("Values"):
        run_form(spec, profile.profile.name)


def _spec(stored: StoredPlan, definition_id: int) -> TrainSpec:
    return as_planned(TrainSpec(definition_id, stored.plan, stored.id), stored.prediction)


def _described(stored: StoredPlan) -> str:
    """As "7 · 4-4-4-4 · 1f1b-flush · batch 8 · recomputed"."""
    plan = stored.plan
    return " · ".join((str(stored.id), plan_name(plan), *plan_words(plan, plan.microbatch)))


page()
