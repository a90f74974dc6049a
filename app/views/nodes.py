"""Nodes: the machines that run jobs, what they do now, and who waits for them."""

import streamlit as st

from app import services
from app.components.cluster.holding_list import holding_list
from app.components.cluster.kept_clusters import cluster_list
from app.components.cluster.links_view import links_view
from app.components.cluster.node_list import node_list, queue_list
from app.components.cluster.node_use import node_use
from app.components.cluster.pool_list import pool_list
from app.components.launch.node_notice import node_notice
from app.components.shell.boundary import guarded
from app.components.shell.layout import Figure, card, empty_state, figures, page_header
from app.formats import count
from app.server.sessions import refresh_interval
from backend.runs.states import RunState
from backend.services.runs.occupancy import SHOWN, holdings, queue

REFRESH, REFRESH_USE = 3.0, 10.0


def page() -> None:
    """Live, so that a node that starts appears by itself."""
    page_header("Nodes", "The machines that run jobs, and the queue.")
    st.fragment(_live, run_every=refresh_interval(REFRESH))()
    st.fragment(_use, run_every=refresh_interval(REFRESH_USE))()
    _kept()


@guarded
def _use() -> None:
    node_use(services.backend().nodes.list())


@guarded
def _kept() -> None:
    if clusters := services.backend().clusters.list():
        with card("Clusters", "saved by name, for plans"):
            cluster_list(clusters)


@guarded
def _live() -> None:
    backend = services.backend()
    nodes = backend.nodes.list()
    pools = backend.pools.list()
    if not nodes and not pools:
        empty_state(
            "No node yet",
            "Start an agent on a machine with devices: `stageflow worker`, or everything on this "
            "machine at once: `stageflow up`. It appears here within seconds. Where a cluster has "
            "a queue of its own, let its jobs carry runs: `stageflow pool`.",
        )
    else:
        node_notice()
    waiting = queue(backend.runs)
    alive = [node for node in nodes if node.alive]
    held = holdings(backend.runs)
    num_held = {node: sum(len(each.devices) for each in found) for node, found in held.items()}
    busy = sum(num_held.get(node.name, 0) for node in alive)
    queued = backend.runs.count().get(RunState.QUEUED, 0)
    devices = sum(len(node.devices) for node in alive)
    if nodes or waiting:
        figures(
            (
                Figure("Nodes alive", count(len(alive)), f"of {count(len(nodes))} known"),
                Figure("Devices", count(devices), "of nodes that are alive"),
                Figure("Held", count(busy), f"{count(max(0, devices - busy), 'device')} free"),
                Figure("Queue", count(queued), "runs that wait"),
            ),
            "nodes",
        )
    if nodes:
        with card("Nodes", "the latest report first"):
            node_list(nodes, num_held)
        if held:
            with card("Held devices", "by which run, and until when at its recent rate"):
                holding_list(held)
    if pools:
        with card("Pools", "clusters whose jobs carry runs"):
            pool_list(pools, backend.pools.counts())
    if nodes or pools:
        with card("Links", "bandwidth and latency between devices"):
            links_view(nodes, pools)
    with card("Queue", f"the first {SHOWN}" if queued > SHOWN else ""):
        if waiting:
            queue_list(waiting)
        else:
            st.caption("No run is waiting.")


page()
