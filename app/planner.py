"""Plans and timelines, computed once per question while the server runs."""

import streamlit as st

from backend.cluster.cluster import Cluster
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Plan
from backend.prediction.predict import predicted_program
from backend.prediction.propose import Proposal, propose
from backend.prediction.shapes import steady_shape
from backend.profiles.profile import Profile

KEPT = 64


@st.cache_resource(show_spinner="Planning…", max_entries=KEPT, hash_funcs={Profile: hash})
def proposals(
    profile: Profile, cluster: Cluster, schedule: str, batch: int, optimizer: str
) -> list[Proposal]:
    """One per planner, best first. Raises `PlanDoesNotFit` where none fits."""
    return propose(profile, cluster, schedule=schedule, batch=batch, optimizer=optimizer)


@st.cache_resource(show_spinner="Simulating…", max_entries=KEPT, hash_funcs={Profile: hash})
def predicted_timeline(profile: Profile, cluster: Cluster, plan: Plan) -> Timeline:
    """What the plan's program does from an empty pipeline to an empty one."""
    shape = steady_shape(plan)
    return predicted_program(profile, cluster, plan, shape.microbatches)[1]
