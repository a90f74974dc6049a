"""Who waits for a node, and why."""

from collections.abc import Sequence

import streamlit as st

from app.components.runs.run_words import plan_label
from app.components.shell.grid import Column, grid
from app.formats import ago, plain
from app.session.links import target
from app.session.state import Page
from backend.runs.history.listing import QueuedRun


def queue_list(queue: Sequence[QueuedRun]) -> None:
    """In the order in which agents take them."""
    grid(
        "queue",
        (
            Column("", 0.4, lambda q: st.markdown(f"**{q.place}**")),
            Column("Run", 2.4, _name),
            Column("What", 2.0, lambda q: st.markdown(f":small[{plain(plan_label(q.run))}]")),
            Column("Owner", 1.0, lambda q: st.markdown(f":small[{plain(q.run.owner)}]")),
            Column("Waits since", 1.1, lambda q: st.markdown(f":gray[{ago(q.run.created_at)}]")),
            Column("Why", 4.0, lambda q: st.markdown(f":small[{plain(_why(q, queue[0]))}]")),
        ),
        queue,
    )


def _why(queued: QueuedRun, first: QueuedRun) -> str:
    """What holds up everybody is said once."""
    same = queued is not first and queued.reason == first.reason
    return "For the same reason." if same else queued.reason


def _name(queued: QueuedRun) -> None:
    st.page_link(
        target(Page.RUN),
        label=f"**{queued.run.id}** · {plain(queued.run.name)}",
        query_params={"id": str(queued.run.id)},
    )
