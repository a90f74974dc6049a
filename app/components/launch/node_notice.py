"""A warning where no node can run jobs."""

import streamlit as st

from app import services
from app.formats import ago, plain


def node_notice() -> None:
    """A warning with the command that starts a node agent, when none is alive."""
    backend = services.backend()
    nodes = backend.nodes.list()
    if any(node.alive for node in nodes) or any(pool.alive for pool in backend.pools.list()):
        return
    last = (
        f" The last one, {plain(nodes[0].name)}, was last seen {ago(nodes[0].heartbeat_at)}."
        if nodes
        else ""
    )
    st.warning(
        f"No node agent is alive, so runs wait in the queue.{last} "
        "Start one with `stageflow worker`, or everything at once with `stageflow up`.",
        icon=":material/power_off:",
    )
