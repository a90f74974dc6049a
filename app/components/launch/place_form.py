"""Where a training is to run: on any node, on several at once, or on emulated devices."""

from dataclasses import dataclass

import streamlit as st

from app import services
from app.formats import plain
from backend.errors import InvalidInput
from backend.planning.plan import Plan
from backend.runs.dispatch.nodes import Node
from backend.runs.request.spec import TrainSpec


@dataclass(frozen=True, slots=True)
class Where:
    """As in `TrainSpec`."""

    nodes: tuple[str, ...]
    emulate: float


def place_form(plan: Plan, present: TrainSpec | None = None) -> Where:
    """What is chosen, beginning with what `present` says; a word on what does not fit."""
    nodes = {node.name: node for node in services.backend().nodes.list() if node.alive}
    before = list(present.nodes) if present else []
    with st.expander("Where it runs", icon=":material/dns:", expanded=bool(before)):
        names = [*nodes, *(name for name in before if name not in nodes)]
        chosen = st.multiselect(
            "Nodes",
            names,
            before,
            format_func=lambda name: _node(name, nodes),
            help="Several at once: the plan's devices are numbered through, in this order. "
            "None chosen: the first node that is free carries all ranks.",
            key="place-nodes",
        )
        emulate = st.number_input(
            "Emulate: seconds per second of the profile",
            min_value=0.0,
            value=present.emulate if present else 0.0,
            step=0.5,
            help="0 computes. Else nothing is computed or learned: ranks wait as long as the "
            "plan's profile and cluster say, so that any number of them fits on one machine.",
            key="place-emulate",
        )
        where = Where(tuple(chosen), float(emulate))
        if problem := unfit(plan, where, nodes):
            st.warning(plain(problem), icon=":material/warning:")
    return where


def unfit(plan: Plan, where: Where, nodes: dict[str, Node]) -> str:
    """Why the plan does not fit the nodes that are there; "" where it does."""
    if where.nodes:
        try:
            services.backend().dispatch.shares(TrainSpec(0, plan, nodes=where.nodes))
        except InvalidInput as fault:
            return f"{fault}. {fault.advice}"
        return ""
    needed = plan.partition.num_devices
    most = max((len(node.devices) for node in nodes.values()), default=0)
    if where.emulate or not most or needed <= most:
        return ""
    return (
        f"The plan uses {needed} devices and no node has more than {most}: on one node its ranks "
        "share them and are slower than planned. Choose several nodes, or emulate."
    )


def _node(name: str, nodes: dict[str, Node]) -> str:
    return f"{name} ({len(nodes[name].devices)} devices)" if name in nodes else f"{name} (away)"
