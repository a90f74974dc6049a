"""The links between registered devices: as they were measured, and the way to measure them."""

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.grid import grid, text
from app.formats import ago, bandwidth, count, plain, seconds
from app.session import state
from app.session.state import Page
from backend.cluster.document import write_cluster
from backend.links.link_test import Link, LinkState, LinkTest
from backend.runs.dispatch.nodes import Node
from backend.runs.pools.pool import Pool

WORDS = {
    LinkState.QUEUED: "waiting for the nodes",
    LinkState.RUNNING: "measuring",
    LinkState.DONE: "",
    LinkState.FAILED: "failed",
}


def links_view(nodes: Sequence[Node], pools: Sequence[Pool]) -> None:
    """The newest test's figures per pair of machines, and a plan on them."""
    test = services.backend().links.tests.latest()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        is_on = test is not None and not test.state.is_final
        barred = "The links are being measured." if is_on else why_not()
        if nodes and st.button("Measure links", icon=":material/speed:", **closed(barred)):
            _ask(partial(services.backend().links.ask, nodes))
        for pool in pools:
            words, key = f"Measure in {plain(pool.name)}", f"links-of-{pool.name}"
            if st.button(words, key=key, icon=":material/speed:", **closed(barred)):
                _ask(partial(services.backend().links.ask_pool, pool))
        if (
            test is not None
            and test.state is LinkState.DONE
            and st.button("Plan on these links", icon=":material/account_tree:")
        ):
            state.go(Page.PLAN, cluster=write_cluster(test.cluster()))
    if test is None:
        st.caption("Not measured yet: plans use the link speeds of the chosen cluster.")
    elif test.error:
        st.warning(
            plain(f"The links could not be measured: {test.error}."), icon=":material/error:"
        )
    else:
        _result(test)


def _result(test: LinkTest) -> None:
    nodes = count(len(test.members), "machine" if test.pool else "node")
    word = f" · {WORDS[test.state]}" if WORDS[test.state] else ""
    st.caption(f"{count(test.num_devices, 'device')} on {nodes}, {ago(test.created_at)}{word}")
    if not test.links:
        return
    grid(
        "links",
        (
            text("From", 1.5, lambda row: plain(row[0])),
            text("To", 1.5, lambda row: plain(row[1])),
            text("Bandwidth, one way", 1.2, lambda row: bandwidth(row[2].bandwidth)),
            text("Latency", 1.0, lambda row: seconds(row[2].latency)),
        ),
        pairs(test),
    )


def pairs(test: LinkTest) -> list[tuple[str, str, Link]]:
    """(node, node, the middle of their links), those within a node included."""
    names = [member.node for member in test.members]
    found = []
    for one, name in enumerate(names):
        for other in range(one, len(names)):
            if (link := test.between(one, other)) is not None:
                found.append((name, "within itself" if one == other else names[other], link))
    return found


@guarded
def _ask(ask: Callable[[], object]) -> None:
    ask()
    st.rerun()
