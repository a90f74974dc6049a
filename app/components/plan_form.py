"""What a plan is asked for: profile, cluster, schedule, batch, optimizer; all in the URL."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import streamlit as st

from app import state
from app.components.cluster_form import cluster_form
from app.components.pick import pick
from app.state import Param
from backend.cluster.cluster import Cluster
from backend.pipeline.schedules.catalog import SCHEDULES, training_schedules
from backend.runs.profiles import StoredProfile

OptimizerName = Literal["momentum", "sgd", "adam"]
OPTIMIZERS: tuple[OptimizerName, ...] = get_args(OptimizerName)
DEFAULT_BATCH = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """`batch` counts microbatches per update of a schedule that flushes."""

    stored: StoredProfile
    cluster: Cluster
    schedule: str
    batch: int
    optimizer: OptimizerName


@dataclass(frozen=True, slots=True)
class Asked:
    """A model's profile on a cluster."""

    stored: StoredProfile
    cluster: Cluster
    optimizer: OptimizerName


def plan_form(profiles: Sequence[StoredProfile]) -> Wanted | None:
    """Draw the inputs side by side; the newest of `profiles` is the default. None, with the
    fault said, where the cluster is described wrongly."""
    with st.container(border=True, key="panels-plan"):
        asked = asked_form(profiles)
        with st.container(horizontal=True):
            schedule = _schedule()
            batch = _batch() if SCHEDULES[schedule].batched else 1
    if asked is None:
        return None
    return Wanted(asked.stored, asked.cluster, schedule, batch, asked.optimizer)


def asked_form(profiles: Sequence[StoredProfile]) -> Asked | None:
    """Profile, optimizer and cluster alone."""
    with st.container(horizontal=True):
        stored = pick("Profile", profiles, Param.PROFILE, lambda p: p.id, _describe)
        optimizer = pick("Optimizer", OPTIMIZERS, Param.OPTIMIZER, str, str, width=130)
    with st.container():
        cluster = cluster_form()
    return None if cluster is None else Asked(stored, cluster, optimizer)


def _schedule() -> str:
    names = [member.name for member in training_schedules()]
    return pick("Schedule", names, Param.SCHEDULE, str, lambda name: SCHEDULES[name].title)


def _batch() -> int:
    batch = st.number_input(
        "Batch",
        1,
        1024,
        min(state.number(Param.BATCH) or DEFAULT_BATCH, 1024),
        help="Microbatches per update of the weights",
        key="batch-input",
        width=110,
    )
    state.put(Param.BATCH, batch)
    return int(batch)


def _describe(stored: StoredProfile) -> str:
    return f"{stored.id} · {stored.profile.name} · microbatch {stored.profile.microbatch}"
