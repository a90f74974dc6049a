"""Slow ranks, named, with the plan that their measured speeds lead to."""

import streamlit as st

from app import services
from app.components.cluster.kept_clusters import keep_form
from app.differences import pace_words
from app.formats import plain, sentence
from app.queries.segments import paces_of
from app.session.links import page_link
from app.session.state import Page
from backend.cluster.document import write_cluster
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run


def straggler_view(run: Run) -> None:
    """Nothing where every rank computes about as long as its plan says."""
    found = paces_of(run)
    if found is None or not isinstance(run.spec, TrainSpec) or run.spec.plan_id is None:
        return
    said = pace_words(run, found)
    if not said:
        return
    profile_id = services.backend().plans.get(run.spec.plan_id).profile_id
    advice = " Make a new profile on these devices." if found.are_all_slow else ""
    if not run.state.is_final and not run.summary.cores:
        advice += " Whether others use their cores is known when the run has ended."
    st.warning(f"**{plain(sentence(f'{said}.'))}**{advice}", icon=":material/speed:")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        page_link(
            Page.PLAN,
            "Plan with the measured speeds",
            ":material/account_tree:",
            profile=profile_id,
            cluster=write_cluster(found.cluster),
            batch=run.spec.plan.batch,
        )
        with st.popover("Save the measured cluster", icon=":material/dns:"):
            keep_form(found.cluster, None)
