"""Where a training is to run: on any node, on several at once, or on emulated devices."""

from dataclasses import replace

import streamlit as st

from app import services
from app.components.runs.pool_form import pool_form
from app.formats import count, plain
from app.naming import start_words
from backend.errors import InvalidInput
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import shares
from backend.runs.request.spec import TrainSpec


def place_form(spec: TrainSpec) -> TrainSpec:
    """`spec` with the place that is chosen; a warning where its plan does not fit there."""
    nodes = {node.name: node for node in services.backend().nodes.alive()}
    before = list(spec.nodes)
    with st.expander("Where it runs", expanded=bool(before or spec.pool)):
        if pool := pool_form(spec.pool, "place"):
            spec = replace(spec, pool=pool, nodes=(), whole_nodes=False)
            if words := start_words(services.backend().pools.list(), spec):
                st.caption(plain(words))
            return spec
        names = [*nodes, *(name for name in before if name not in nodes)]
        chosen = st.multiselect(
            "Nodes",
            names,
            before,
            format_func=lambda name: _node(name, nodes),
            help="The plan's devices are numbered from node to node in this order. With none "
            "chosen the first node with enough free devices runs all ranks.",
            key="place-nodes",
        )
        whole = st.checkbox(
            "Exclusive use of its nodes",
            spec.whole_nodes,
            help="No other run shares its nodes, however few devices this one uses: for "
            "measurements that others would disturb. It waits until the nodes are free.",
            key="place-whole",
        )
        replan = st.checkbox(
            "Continue with fewer nodes",
            spec.replan,
            help="Where a node stays away for a minute, the run goes on by a plan for those that "
            "are left, from its newest checkpoint: the same updates of the same samples. It takes "
            "the larger plan again, at a checkpoint, when the node is back and that pays.",
            key="place-replan",
        )
        emulate = st.number_input(
            "Emulation: seconds per profiled second",
            min_value=0.0,
            value=spec.emulate,
            step=0.5,
            help="0 computes. Otherwise nothing is computed or learned: ranks wait as long as the "
            "plan's profile and cluster say, so that any number of ranks fits on one machine.",
            key="place-emulate",
        )
        spec = replace(
            spec,
            pool=None,
            nodes=tuple(chosen),
            emulate=float(emulate),
            whole_nodes=bool(whole),
            replan=bool(replan),
        )
        if problem := _unfit(spec, nodes):
            st.warning(plain(problem), icon=":material/warning:")
    return spec


def _unfit(spec: TrainSpec, nodes: dict[str, Node]) -> str:
    """Why the plan does not fit the nodes that are alive; "" where it does."""
    if spec.nodes:
        try:
            shares(spec, list(nodes.values()))
        except InvalidInput as fault:
            return f"{fault}. {fault.advice}"
        return ""
    needed = spec.plan.partition.num_devices
    most = max((len(node.devices) for node in nodes.values()), default=0)
    if spec.emulate or not most or needed <= most:
        return ""
    return (
        f"The plan uses {needed} devices and no node has more than {most}: on one node its ranks "
        "share them and are slower than planned. Choose several nodes, or emulate."
    )


def _node(name: str, nodes: dict[str, Node]) -> str:
    return (
        f"{name} ({count(len(nodes[name].devices), 'device')})"
        if name in nodes
        else f"{name} (away)"
    )
