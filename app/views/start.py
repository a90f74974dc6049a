"""Start: what Stageflow does, step by step, and the example done by one click."""

import streamlit as st

from app import services
from app.components.launch.node_notice import node_notice
from app.components.profile.import_profile import import_menu
from app.components.run.tour_view import tour_view
from app.components.runs.run_table import newest_runs
from app.components.shell.layout import card, page_header
from app.components.shell.step_list import ChecklistStep, step_list
from app.session.state import Page
from backend.bootstrap import Backend
from backend.runs.history.listing import RunFilter
from backend.runs.states import RunState

NEWEST = 5  # runs


def page() -> None:
    """The four steps with what is done of them, the example, and the newest runs."""
    page_header("Start", "From a model to a pipeline that trains it, in four steps.")
    node_notice()
    with st.container(key="split-start"):
        own, example = st.columns([1.5, 1], gap="medium")
    with own, card("With a model of your own"):
        step_list(_steps(services.backend()))
        st.caption("A profile that was measured elsewhere, such as PipeDream's graph.txt:")
        import_menu(Page.PLAN)
    with example, card("With the bundled example", "one click"):
        st.caption(
            "A VGG-style network learns handwritten digits on two processes of a node: profiled, "
            "planned and trained by one click. Then look at its run: measured beside predicted."
        )
        tour_view()
    newest_runs(services.backend().runs.list(limit=NEWEST).runs)


def _steps(backend: Backend) -> tuple[ChecklistStep, ...]:
    trained = RunFilter(kind="train", states=(RunState.SUCCEEDED,))
    return (
        ChecklistStep(
            "Add a model",
            "A Python file of your own, or one of the zoo.",
            Page.MODELS,
            done=bool(backend.definitions.list()),
        ),
        ChecklistStep(
            "Profile it",
            "A node measures time and size of every layer. On Models, press Profile.",
            Page.MODELS,
            done=bool(backend.profiles.list()),
        ),
        ChecklistStep(
            "Plan it",
            "Which layers run where, under which schedule, and what that will do.",
            Page.PLAN,
            done=bool(backend.plans.list()),
        ),
        ChecklistStep(
            "Train by the plan",
            "On the plan's page press Launch run, and follow it beside its prediction.",
            Page.LAUNCH,
            done=bool(backend.runs.list(trained, limit=1).total),
        ),
    )


page()
