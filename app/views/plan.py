"""Plan: how a profiled model is cut over a cluster, and what that will do."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from app.components.partition.draft import Draft, draft
from app.components.partition.partition_view import partition_view
from app.components.plan.alternatives import alternatives
from app.components.plan.memory_view import memory_view
from app.components.plan.plan_figures import plan_figures
from app.components.plan.plan_form import plan_form
from app.components.plan.plan_header import plan_actions, plan_header
from app.components.plan.plan_links import further_links
from app.components.plan.planning_view import (
    Search,
    are_running,
    are_there,
    have_begun,
    leave,
    limit_note,
    num_said,
    progress_view,
    replies_of,
    searches,
    stopped_note,
)
from app.components.plan.saved_plans import is_as_opened, opened_plan, saved_plans
from app.components.plan.stage_table import stage_table
from app.components.plan.traces_view import traces_view
from app.components.plan.wanted import Wanted
from app.components.plan.why_view import why_view
from app.components.profile.import_profile import import_menu
from app.components.shell.boundary import error_box, guarded
from app.components.shell.layout import card, figures, missing, page_header
from app.components.timeline.program_downloads import program_downloads
from app.components.timeline.timeline_view import timeline_view
from app.differences import aim_words
from app.formats import plain
from app.naming import rank_names
from app.queries import planner
from app.queries.histories import histories_of
from app.session.state import Key, Page
from app.terms import Term, explained
from backend.comparison.aims import Aim
from backend.errors import StageflowError
from backend.prediction.answer import Answer, ranked
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.profiles.profile import ONE_LAYER
from backend.runs.plans import StoredPlan

LINE = "Which layers run where."
PAINT = 0.2
"""Seconds in which a browser draws the figures, before it is busy with charts."""
FIRST_ANSWER = "a first answer, the search goes on"


@dataclass(frozen=True, slots=True)
class Found:
    """`base` is the planner's answer or the `kept` plan's, `draft` the same or changed by hand.
    `aim`: what plans are ranked by; `asked`: who is asked for `base`, and how many replies it is
    the best of; `is_said`: whether the page says that they were ended."""

    question: Question
    aim: Aim
    asked: tuple[Sequence[Search], int]
    is_said: bool
    base: Answer
    draft: Draft
    kept: StoredPlan | None


@missing("Plan", Page.PLAN, "New plan")
def page() -> None:
    """The inputs, the plans that there are, and the chosen one drawn: its title and figures first,
    in the places that they have."""
    saved = opened_plan()
    head = st.container()
    wanted = plan_form("A plan is made from a profile: what each layer costs.")
    found = _answered(wanted, saved) if wanted else None
    if wanted and found:
        shown = found.draft.answer
        kept = found.kept if shown is found.base else None
        plan = (shown or found.base).prediction.plan
        remark = FIRST_ANSWER if are_running(found.asked[0]) else ""
        with head:
            actions = plan_header(wanted, found.question, plan, kept, remark)
        _figures(found)
        _settled(found)
        with actions:
            plan_actions(wanted, found.question, shown, found.base, kept)
        _workbench(wanted, found)
    else:
        with head, page_header("Plan", LINE):
            import_menu(Page.PLAN)
    saved_plans()


@guarded
def _answered(wanted: Wanted, saved: StoredPlan | None) -> Found | None:
    """What there is to draw, with how far the planners are; None, with the reason, where nothing:
    the first answer is drawn while they search for a better one."""
    question = wanted.question
    kept = saved if saved and is_as_opened(wanted) else None
    aim = _aim(wanted)
    asked = [] if kept else searches(_questions(question, aim))
    leave(replace(question, planner=""), asked)
    have_begun(asked)
    running, said = are_running(asked), num_said(asked)
    answers = [reply.answer for reply in replies_of(asked) if reply.answer]
    if running and not answers:
        progress_view(asked, "plan")
        return None
    is_said = stopped_note(asked)
    if is_said and not answers:
        return None
    try:
        base = planner.judged(question, kept.plan) if kept else _first(asked, aim)
    except StageflowError as fault:
        error_box(fault)
        _others(question, aim)
        return None
    return Found(question, aim, (asked, said), is_said, base, draft(question, base), kept)


def _aim(wanted: Wanted) -> Aim:
    if wanted.target is None:
        return Aim(fewest=wanted.fewest)
    return Aim(wanted.target, histories_of(wanted.stored.definition_id, wanted.target))


def _questions(question: Question, aim: Aim) -> list[Question]:
    """One per planner; with a target also under the schedules of which runs tell the way to it."""
    return [each for one in aim.questions(question) for each in planner.one_by_one(one)]


def _first(asked: Sequence[Search], aim: Aim) -> Answer:
    return aim.ranked(ranked(replies_of(asked)))[0]


def _others(question: Question, aim: Aim) -> None:
    """The plans of other planners, where the one that is asked has none."""
    if question.planner:
        with card("Other planners", aim_words(aim)):
            _alternatives(_everyone(question, aim), None, aim)


def _settled(found: Found) -> None:
    """The browser draws the figures while the page waits for the last answer, and for a moment
    where it came before; all that follows is drawn once."""
    asked, drawn = found.asked
    before = st.session_state.get(Key.ANSWERED.value)
    st.session_state[Key.ANSWERED.value] = found.question
    if found.question != before and not are_running(asked):
        time.sleep(PAINT)
    if are_there(asked) and num_said(asked) > drawn:
        st.rerun()


def _figures(found: Found) -> None:
    """How fast it is, or why there is nothing to say."""
    shown, question = found.draft, found.question
    if shown.fault is not None:
        error_box(shown.fault)
    if one_layer := next((n for n in question.profile.notes if n.startswith(ONE_LAYER)), None):
        st.info(plain(one_layer), icon=":material/content_cut:")
    if shown.answer is not None:
        figures(plan_figures(shown.answer, question.cluster), "plan")
        limit_note(shown.answer, question)


def _workbench(wanted: Wanted, found: Found) -> None:
    """The partition beside the alternatives; all of it for the same plan."""
    question, shown, base = found.question, found.draft, found.base.prediction.plan
    with st.container(key="split-plan"):
        drawn, beside = st.columns([2.4, 1], gap="medium")
    with drawn:
        profile, same = question.at(base.microbatch), replace(wanted, planner="")
        partition_view(profile, question.cluster, shown.cut, base, same)
        if shown.answer is not None:
            _details(question, shown.answer.prediction, found.kept)
    with beside, card("Alternatives", aim_words(found.aim), explained(Term.NOTATION)):
        is_kept = found.kept is not None and shown.answer is found.base
        name = f"saved as {found.kept.name}" if found.kept and is_kept else ""
        everyone = _everyone(question, found.aim)
        _alternatives(everyone, shown.answer or found.base, found.aim, name)
        if not found.is_said:
            stopped_note([each for each in everyone if each[1].was_lost])
        further_links(wanted)
    if shown.answer is not None:
        others = [reply.answer for reply in replies_of(everyone) if reply.answer]
        with drawn:  # the wider column is the shorter one
            why_view(shown.answer, question, wanted, others)


def _everyone(question: Question, aim: Aim) -> list[Search]:
    """Every planner asked the same; what is there already is not asked again."""
    same = replace(question, planner="")
    found = searches(_questions(same, aim))
    leave(same, found)
    return found


def _alternatives(
    everyone: Sequence[Search], chosen: Answer | None, aim: Aim, name: str = ""
) -> None:
    """What they say, as far as they are; `name` of the chosen one where it is a kept plan."""
    there = are_there(everyone)
    alternatives(replies_of(everyone), chosen, name, aim)
    if not there:
        progress_view(everyone, "others")


def _details(question: Question, prediction: Prediction, kept: StoredPlan | None) -> None:
    plan = prediction.plan
    timeline = planner.predicted_timeline(question, plan)
    with card("Predicted timeline", "the pipeline fills, runs and drains; label: microbatch"):
        if kept is None or not traces_view(kept):
            free = planner.predicted_slack(question, plan)
            timeline_view("predicted", timeline, rank_names(plan), free)
        program_downloads(question.profile_of(plan), question.cluster, plan)
    in_order = question.profile_of(plan).in_order(plan.partition.order)
    with card("Stages", "the same as a table"):
        stage_table(in_order, question.cluster, prediction)
    memory_view(prediction, question)


page()
