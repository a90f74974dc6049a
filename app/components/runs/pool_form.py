"""Let the jobs of a pool carry a run."""

from typing import TypeVar

import streamlit as st

from app import services
from app.formats import count
from backend.runs.pools.pool import Pool
from backend.runs.request.spec import PoolSpec

MINUTE = 60.0
Number = TypeVar("Number", int, float)


def pool_choice(before: str, key: str) -> str:
    """The name of the pool that is chosen; "" for the nodes' agents, and where there is none."""
    pools = {pool.name: pool for pool in services.backend().pools.list()}
    if not pools:
        return ""
    names = ["", *pools]
    return st.selectbox(
        "Runs on",
        names,
        names.index(before) if before in pools else 0,
        format_func=lambda name: _told(pools.get(name)),
        help="A node's agent takes the run itself. A pool submits a job to its cluster's queue; "
        "a run that outlasts the job goes on in the next one.",
        key=f"{key}-pool",
    )


def pool_form(before: PoolSpec | None, key: str) -> PoolSpec | None:
    """The pool that is chosen, with what a job asks for; None where there is none."""
    name = pool_choice(before.name if before else "", key)
    if not name:
        return None
    left, middle, right = st.columns(3)
    kept = before or PoolSpec(name)
    with left:
        note = "The plan's devices are numbered through, machine by machine."
        machines = _number("Machines of a job", 1, kept.nodes, 1, note, f"{key}-machines")
    with middle:
        note = "0 = as many as the run needs."
        each = _number("Devices of each", 0, kept.devices, 1, note, f"{key}-each")
    with right:
        note, asked = "0 = as long as the pool lets a job run.", kept.seconds / MINUTE
        minutes = _number("Minutes of a job", 0.0, asked, 30.0, note, f"{key}-minutes")
    return PoolSpec(name, machines, each, minutes * MINUTE)


def _number(label: str, least: Number, value: Number, step: Number, note: str, key: str) -> Number:
    return st.number_input(label, least, None, value, step, help=note, key=key)


def _told(pool: Pool | None) -> str:
    if pool is None:
        return "Agents of nodes"
    state = f"{pool.room.free} of {count(pool.room.total, 'device')} free"
    return f"Pool {pool.name}: {state if pool.alive else 'silent'}"  # an option is no Markdown
