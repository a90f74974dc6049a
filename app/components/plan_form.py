"""What a plan is asked for: profile, cluster, schedule, batch, optimizer; all in the URL."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from app import state
from app.components.cluster_form import cluster_form
from app.components.pick import pick
from app.state import Param
from backend.cluster.cluster import Cluster
from backend.pipeline.schedules.catalog import SCHEDULES, training_schedules
from backend.runs.profiles import StoredProfile

OPTIMIZERS = ("momentum", "sgd", "adam")
DEFAULT_BATCH = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """`batch` counts microbatches per update of a schedule that flushes."""

    stored: StoredProfile
    cluster: Cluster
    schedule: str
    batch: int
    optimizer: str


def plan_form(profiles: Sequence[StoredProfile]) -> Wanted:
    """Draw the inputs in one row; the newest of `profiles` is the default."""
    first, second, third = st.columns([1.3, 1.3, 1.4], gap="medium")
    with first:
        stored = pick("Profile", profiles, Param.PROFILE, lambda p: p.id, _describe)
        optimizer = pick("Optimizer", OPTIMIZERS, Param.OPTIMIZER, str, str)
    with second:
        cluster = cluster_form()
    with third:
        schedule = pick(
            "Schedule",
            [member.name for member in training_schedules()],
            Param.SCHEDULE,
            str,
            lambda name: SCHEDULES[name].title,
        )
        batch = _batch() if SCHEDULES[schedule].flushes else 1
    return Wanted(stored, cluster, schedule, batch, optimizer)


def _batch() -> int:
    batch = st.number_input(
        "Microbatches per update",
        1,
        1024,
        min(state.number(Param.BATCH) or DEFAULT_BATCH, 1024),
        key="batch-input",
    )
    state.put(Param.BATCH, batch)
    return int(batch)


def _describe(stored: StoredProfile) -> str:
    return f"{stored.id} · {stored.profile.name} · microbatch {stored.profile.microbatch}"
