"""Links to what is planned: to give away, and to the other pages that plan."""

from urllib.parse import urlencode

import streamlit as st

from app.components.plan.wanted import Wanted
from app.session import state
from app.session.links import page_link
from app.session.state import Page, Param
from backend.cluster.document import write_cluster

NOT_COMPARED = (Param.PLANNER, Param.SCHEDULE, Param.BATCH)


def share_plan(wanted: Wanted, planner: str) -> None:
    """The link in a box that can be copied. It names what the page would take by default,
    too, so that it shows the same after newer profiles have come."""
    params = wanted.params | {
        Param.CLUSTER: state.text(Param.CLUSTER) or write_cluster(wanted.cluster),
        Param.PLANNER: planner,
        Param.CUT: state.text(Param.CUT),
        Param.CODECS: state.text(Param.CODECS),
    }
    kept = {name.value: str(value) for name, value in params.items() if value}
    st.markdown("Everybody who opens it on this server sees this plan, with your changes.")
    st.code(_address(Page.PLAN, kept), language=None, wrap_lines=True)


def _address(page: Page, params: dict[str, str]) -> str:
    """The address of `page` on the server that the visitor uses."""
    here = (st.context.url or "").split("?")[0].rstrip("/")
    place = here.rsplit("/", 1)[0] if here.count("/") > 2 else here
    return f"{place}/{page.path}?{urlencode(params)}"


def further_links(wanted: Wanted) -> None:
    """To compare it under schedules, and to ask about other clusters, with the same inputs."""
    asked = {param.value: str(value) for param, value in wanted.params.items() if value}
    without = {name: value for name, value in asked.items() if name not in NOT_COMPARED}
    with st.container(horizontal=True):
        page_link(Page.SCHEDULES, "Compare schedules", ":material/view_timeline:", **without)
        page_link(Page.WHAT_IF, "What if…", ":material/query_stats:", **asked)
