"""The machines that run jobs, when each was last seen, and the runs that wait for one."""

from collections.abc import Mapping, Sequence
from itertools import groupby

import streamlit as st

from app.components.runs.run_words import plan_label, run_link
from app.components.shell.grid import Column, grid, small, text, when
from app.formats import NOTHING, SPACE, clock, percent, plain, size
from backend.cluster.cluster import Device
from backend.runs.dispatch.nodes import Node
from backend.runs.history.listing import QueuedRun
from backend.runs.use import Use

OFF = (
    "Difference from the database's clock, which runs, leases and queues use. The times of log "
    "lines and curves are the node's. Synchronise its clock (NTP)."
)


def node_list(nodes: Sequence[Node], held: Mapping[str, int]) -> None:
    """One row per node, the freshest sign of life first; `held` of its devices runs have now."""
    grid(
        "nodes",
        (
            Column("Node", 1.6, _name),
            Column("State", 1.5, lambda node: _state(node, held.get(node.name, 0))),
            text("Devices", 1.8, lambda node: plain(devices(node.devices))),
            Column("In use", 2.8, _use),
            small("Versions", 2.0, versions),
            when("Last seen", 1.3, lambda node: node.heartbeat_at),
        ),
        nodes,
    )


def _name(node: Node) -> None:
    st.markdown(f"**{plain(node.name)}**")
    if node.run_id is not None:
        st.caption(f"reserved for run {node.run_id}")
    elif node.address:
        st.caption(plain(node.address))
    if node.alive and node.is_off:
        st.markdown(f":orange[:small[:material/schedule: {clock(node.ahead)}]]", help=OFF)


def devices(found: Sequence[Device]) -> str:
    """As "2 × cpu, 4.00 GiB each"."""
    parts = []
    for (name, memory), group in groupby(found, lambda device: (device.name, device.memory)):
        each = f", {size(memory)} each" if memory else ""
        parts.append(f"{len(list(group))} × {name}{each}")
    return "; ".join(parts) or NOTHING


def versions(node: Node) -> str:
    """As "python 3.11.2 · torch 2.13.0"."""
    return " · ".join(f"{name} {version}" for name, version in node.versions.items()) or NOTHING


def use_text(use: Use) -> str:
    """As "machine 43 % · 3.10 GiB of 15.6 GiB · 54 °C"; what is not known is left out."""
    parts = [f"{use.name} {percent(use.share, 0)}" if use.share is not None else use.name]
    if use.memory is not None and use.total is not None:
        parts.append(f"{size(use.memory)} of {size(use.total)}")
    if use.celsius is not None:
        parts.append(f"{use.celsius:.0f}{SPACE}°C")
    return " · ".join(parts)


def _use(node: Node) -> None:
    """That of a silent node is history."""
    if not (node.use and node.alive):
        st.markdown(NOTHING)
        return
    for use in node.use:
        st.markdown(f":small[{plain(use_text(use))}]")
        if use.share is not None:
            st.progress(min(1.0, max(0.0, use.share)))


def _state(node: Node, held: int) -> None:
    total = len(node.devices)
    if not node.alive:
        st.badge("silent", icon=":material/power_off:", color="red")
    elif not held:
        st.badge("free", icon=":material/check_circle:", color="green")
    elif held < total:
        st.badge(f"{total - held} of {total} free", icon=":material/play_circle:", color="blue")
    else:
        st.badge("busy", icon=":material/play_circle:", color="blue")


def queue_list(queue: Sequence[QueuedRun]) -> None:
    """In the order in which agents take them."""
    grid(
        "queue",
        (
            text("", 0.4, lambda q: f"**{q.place}**"),
            Column("Run", 2.4, lambda q: run_link(q.run)),
            small("Job", 2.0, lambda q: plan_label(q.run)),
            small("Owner", 1.0, lambda q: q.run.owner),
            when("Waiting since", 1.4, lambda q: q.run.created_at),
            small("Why", 3.7, lambda q: _why(q, queue[0])),
        ),
        queue,
    )


def _why(queued: QueuedRun, first: QueuedRun) -> str:
    """What holds up everybody is said once."""
    same = queued is not first and queued.reason == first.reason
    return "For the same reason." if same else queued.reason
