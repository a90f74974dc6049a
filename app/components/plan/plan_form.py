"""What a plan is asked for: the usual inputs side by side, the others in one control."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import services
from app.components.cluster.cluster_form import cluster_form
from app.components.plan.more_options import more_options, options_note
from app.components.plan.wanted import ALL, BEST, Wanted
from app.components.shell.layout import empty_state
from app.components.shell.number_field import whole_field
from app.components.shell.pick import check_named, pick
from app.session import state
from app.session.state import Page, Param
from app.terms import Term, explained
from backend.comparison.pairs import MOST_BATCH
from backend.pipeline.schedules.catalog import plannable_schedules
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.catalog import title
from backend.prediction.question import PLANNER_NAMES
from backend.runs.profiles import StoredProfile

DEFAULT_BATCH = 4
PLANNERS = (BEST, *(name for name in PLANNER_NAMES if name != BEST), "")
OWN = "Chosen by the planner"


def plan_form(advice: str, *, choosing: bool = True) -> Wanted | None:
    """Draw the inputs; the newest profile is the default. Not `choosing`: planner, schedule and
    microbatches are asked elsewhere. All inputs are in the URL. None, with `advice`, where there is
    no profile, and with the fault where the cluster is described wrongly. Raises `NotFound` where
    the URL names a profile, a planner or a schedule that does not exist."""
    profiles = with_named(Param.PROFILE, services.backend().profiles.list())
    if not profiles:
        empty_state("No profile yet", f"{advice} Profile a model first.", Page.MODELS)
        return None
    if choosing:
        check_named("planner", Param.PLANNER, [name or ALL for name in PLANNERS])
        check_named("schedule", Param.SCHEDULE, [each.name for each in plannable_schedules()])
    with st.container(border=True, key="plan-form", gap="small"):
        with st.container(key="panels-plan"):
            stored = pick("Profile", profiles, Param.PROFILE, lambda p: p.id, _describe)
            with st.container():
                cluster = cluster_form()
        with st.container(horizontal=True, vertical_alignment="bottom"):
            asked = _choices() if choosing else {}
            asked |= more_options(stored, profiles)
        if cluster is None:
            return None
        wanted = Wanted(stored, cluster, **asked)
        options_note(wanted)
    return wanted


def with_named(param: Param, listed: Sequence[StoredProfile]) -> Sequence[StoredProfile]:
    """`listed`, and the profile that the URL names where another project has it. Raises
    `NotFound`."""
    number = state.wanted_id(param, "profile")
    if number is None or any(each.id == number for each in listed):
        return listed
    return [*listed, services.backend().profiles.get(number)]


def _choices() -> dict[str, Any]:
    planner = pick(
        "Planner",
        PLANNERS,
        Param.PLANNER,
        lambda name: name or ALL,
        lambda name: title(name) if name else "All planners: the fastest",
        help="The algorithm that cuts the model into stages. Best searches partitions, "
        "schedules, microbatch sizes, recomputation "
        "and parallel pipelines for the most samples per second.",
    )
    schedule = pick(
        "Schedule",
        ["", *(member.name for member in plannable_schedules())],
        Param.SCHEDULE,
        str,
        lambda name: schedule_named(name).title if name else OWN,
        help="The order in which each device computes forwards and backwards.\n\n"
        + explained(Term.ONE_F_ONE_B, Term.TWO_BW, Term.GPIPE, Term.FLUSH),
    )
    batch = whole_field(
        "Microbatches per update",
        Param.BATCH,
        1,
        MOST_BATCH,
        DEFAULT_BATCH,
        "How many microbatches one update of the weights takes, under schedules that update once "
        "per batch. PipeDream's schedules update after every microbatch.",
        width=180,
    )
    return {"planner": planner, "schedule": schedule, "batch": batch}


def _describe(stored: StoredProfile) -> str:
    own = f"{stored.name} · " if stored.name else ""
    return f"{stored.id} · {own}{stored.profile.name} · microbatch {stored.profile.microbatch}"
