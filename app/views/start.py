"""Start: what Stageflow does, step by step, and the example done by one click."""

import streamlit as st

from app import services
from app.components.card import card
from app.components.newest_runs import SHOWN, newest_runs
from app.components.node_notice import node_notice
from app.components.page_header import page_header
from app.components.step_list import Step, step_list
from app.components.tour_view import tour_view
from app.state import Page
from backend.bootstrap import Backend
from backend.runs.listing import RunFilter
from backend.runs.states import RunState


def page() -> None:
    """The four steps with what is done of them, the example, and the newest runs."""
    page_header("Start", "From a model to a pipeline that trains it, in four steps.")
    node_notice()
    with st.container(key="split-start"):
        own, example = st.columns([1.5, 1], gap="medium")
    with own, card("With a model of your own"):
        step_list(_steps(services.backend()))
    with example, card("With the bundled example", "one click"):
        st.caption(
            "A VGG-style network learns handwritten digits on two processes of a node: profiled, "
            "planned and trained by one click. Then look at its run: measured beside predicted."
        )
        tour_view()
    newest_runs(services.backend().runs.list(limit=SHOWN).runs)


def _steps(backend: Backend) -> tuple[Step, ...]:
    trained = RunFilter(kind="train", states=(RunState.SUCCEEDED,))
    return (
        Step(
            "Add a model",
            "A Python file of your own, or one of the zoo.",
            Page.MODELS,
            done=bool(backend.definitions.list()),
        ),
        Step(
            "Profile it",
            "A node times and sizes every layer. On Models, press Profile.",
            Page.MODELS,
            done=bool(backend.profiles.list()),
        ),
        Step(
            "Plan it",
            "Which layers run where, under which schedule, and what that will do.",
            Page.PLAN,
            done=bool(backend.plans.list()),
        ),
        Step(
            "Train by the plan",
            "On the plan's page press Launch run, and follow it beside its prediction.",
            Page.LAUNCH,
            done=bool(backend.runs.list(trained, limit=1).total),
        ),
    )


page()
