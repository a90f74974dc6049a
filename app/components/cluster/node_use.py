"""What a node has used over time."""

import time
from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.shell.layout import card
from app.components.shell.use_view import use_view
from app.session.state import Param, bound
from backend.runs.dispatch.nodes import Node
from backend.runs.use import RESOLUTIONS

SPANS = {
    "30 minutes": RESOLUTIONS[0].span,
    "6 hours": RESOLUTIONS[1].span,
    "1 week": RESOLUTIONS[2].span,
}
FIRST = next(iter(SPANS))


def node_use(nodes: Sequence[Node]) -> None:
    """Of the node that is chosen, for as long as is chosen."""
    known = [node.name for node in nodes if node.run_id is None]
    if not known:
        return
    with card("Use over time", "stronger colour: more use; after each name its use now"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            name = known[0]
            if len(known) > 1:
                name = st.selectbox("Node", known, width=280, **bound(Param.NODE)) or name
            span = st.segmented_control(
                "Span", list(SPANS), default=FIRST, required=True, **bound(Param.SPAN)
            )
        points = services.backend().use.of_node(name, time.time() - SPANS[span or FIRST])
        if len(points) > 1:
            uses = points[-1].uses
            names = {place: f"{place - 1} · {uses[place].name}" for place in range(1, len(uses))}
            use_view(points, names, "node")
        else:
            st.caption("Nothing was sampled in that time. An agent samples at each heartbeat.")
