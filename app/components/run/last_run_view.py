"""A run beside the last finished one of the same plan: a regression is said in words."""

import streamlit as st

from app import services
from app.differences import beside_words
from app.formats import plain, sentence
from app.session.links import page_link
from app.session.state import Page
from backend.runs.run import Run


def last_run_view(run: Run) -> None:
    """Nothing while the run works, and where no run before it did the same."""
    last = services.backend().runs.beside_last(run)
    if last is None or not last.figures:
        return
    worse = [plain(beside_words(figure)) for figure in last.regressions]
    others = [plain(beside_words(f)) for f in last.figures if f not in last.regressions]
    if worse:
        said = f"**Worse than the last run of this plan:** {'; '.join(worse)}."
        st.warning(said, icon=":material/trending_down:")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        said = f"{sentence('; '.join(others))}." if others else ""
        st.caption(f"Beside the last run of the same plan, definition and data. {said}")
        page_link(Page.RUN, f"{plain(last.name)} · run {last.run_id}", id=last.run_id)
        page_link(Page.COMPARE, "Compare", ":material/compare:", runs=f"{last.run_id},{run.id}")
