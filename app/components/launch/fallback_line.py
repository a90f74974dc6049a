"""What becomes of a training if machines go, before it is launched."""

from functools import partial

import streamlit as st

from app.formats import plain
from app.naming import fallback_words
from app.queries import planner
from app.queries.background import end_others, under_way
from backend.cluster.fewer import machines
from backend.planning.plan import Plan
from backend.prediction.question import Question

PATIENCE = 3.0
"""Seconds for which the page waits for the plans; the run has them in any case."""


def fallback_line(question: Question, plan: Plan) -> None:
    """A line for a cluster of several machines: how fast it goes on without one, and two."""
    if len(machines(question.cluster)) == 1:
        return
    search = under_way(planner.for_fewer, question, plan)
    end_others((question, plan), {search: partial(planner.for_fewer.clear, question, plan)})
    if not search.wait(PATIENCE):
        st.caption("Plans for fewer machines are being computed: the run will name them.")
    elif search.items:
        st.caption(plain(f"{fallback_words(search.items)}."))
