"""The same question on the other pages that plan."""

import streamlit as st

from app.components.plan.wanted import Wanted
from app.session.links import page_link
from app.session.state import Page, Param

NOT_COMPARED = (Param.PLANNER, Param.SCHEDULE, Param.BATCH)


def further_links(wanted: Wanted) -> None:
    """To compare it under schedules, and to ask about other clusters, with the same inputs."""
    asked = {param.value: str(value) for param, value in wanted.params.items() if value}
    without = {name: value for name, value in asked.items() if name not in NOT_COMPARED}
    with st.container(horizontal=True):
        page_link(Page.SCHEDULES, "Compare schedules", ":material/view_timeline:", **without)
        page_link(Page.WHAT_IF, "What if…", ":material/query_stats:", **asked)
