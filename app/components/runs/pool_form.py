"""Let the jobs of a pool carry a run."""

import streamlit as st

from app import services
from app.formats import count, plain
from backend.runs.pools.pool import Pool
from backend.runs.request.spec import PoolSpec

MINUTE = 60.0


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
    machines = left.number_input(
        "Machines of a job",
        min_value=1,
        value=kept.nodes,
        help="The plan's devices are numbered through, machine by machine.",
        key=f"{key}-machines",
    )
    each = middle.number_input(
        "Devices of each",
        min_value=0,
        value=kept.devices,
        help="0 = as many as the run needs.",
        key=f"{key}-each",
    )
    minutes = right.number_input(
        "Minutes of a job",
        min_value=0.0,
        value=kept.seconds / MINUTE,
        step=30.0,
        help="0 = as long as the pool lets a job run.",
        key=f"{key}-minutes",
    )
    return PoolSpec(name, int(machines), int(each), float(minutes) * MINUTE)


def _told(pool: Pool | None) -> str:
    if pool is None:
        return "Agents of nodes"
    state = f"{pool.room.free} of {count(pool.room.total, 'device')} free"
    return plain(f"Pool {pool.name}: {state if pool.alive else 'silent'}")
