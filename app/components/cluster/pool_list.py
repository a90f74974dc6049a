"""The pools: what each has, what of it is free, and the jobs of ours there."""

from collections.abc import Mapping, Sequence

import streamlit as st

from app.components.shell.grid import Column, grid, small, text, when
from app.formats import NOTHING, count, duration, plain
from app.naming import machines_words
from app.session import state
from app.session.state import Page
from backend.cluster.document import write_cluster
from backend.runs.pools.job import JobState
from backend.runs.pools.pool import Pool

Jobs = Mapping[str, Mapping[JobState, int]]


def pool_list(pools: Sequence[Pool], jobs: Jobs) -> None:
    """A row each; `jobs` by pool."""
    grid(
        "pools",
        (
            text("Pool", 1.6, lambda pool: f"**{plain(pool.name)}** :gray[{plain(pool.kind)}]"),
            Column("State", 1.5, _state),
            text("Machines", 2.2, lambda pool: plain(machines_words(pool.room.machines))),
            Column("Free", 1.4, _free),
            small("Longest job", 1.1, lambda pool: longest(pool)),
            small("Jobs", 1.5, lambda pool: job_words(jobs.get(pool.name, {}))),
            when("Last seen", 1.0, lambda pool: pool.heartbeat_at),
            Column("", 1.3, _plan),
        ),
        pools,
    )


def longest(pool: Pool) -> str:
    """How long a job may take."""
    return duration(pool.room.longest) if pool.room.longest else "any"


def job_words(jobs: Mapping[JobState, int]) -> str:
    """As "2 running · 1 waiting"."""
    waiting = sum(jobs.get(state, 0) for state in (JobState.SUBMITTING, JobState.WAITING))
    told = {
        "running": jobs.get(JobState.RUNNING, 0),
        "waiting": waiting,
        "held": jobs.get(JobState.HELD, 0),
    }
    return " · ".join(f"{number} {word}" for word, number in told.items() if number) or NOTHING


def _plan(pool: Pool) -> None:
    if pool.room.total and st.button(
        "Plan",
        key=f"plan-on-{pool.name}",
        icon=":material/account_tree:",
        help="For its machines, with assumed links between them: correct those on the Plan page.",
    ):
        state.go(Page.PLAN, cluster=write_cluster(pool.room.cluster()))


def _state(pool: Pool) -> None:
    if not pool.alive:
        st.badge(
            "silent",
            icon=":material/power_off:",
            color="red",
            help="No process submits its jobs. Start `stageflow pool` again where it ran; running "
            "jobs continue.",
        )
    elif pool.fault:
        st.badge("does not answer", icon=":material/error:", color="orange", help=plain(pool.fault))
    else:
        st.badge("alive", icon=":material/check_circle:", color="green")


def _free(pool: Pool) -> None:
    free, total = pool.room.free, pool.room.total
    st.markdown(f"{free} of {count(total, 'device')}" if total else NOTHING)
    if total:
        st.progress(1 - free / total)
