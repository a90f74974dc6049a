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


def predicted_timeline(profile: Profile, cluster: Cluster, plan: Plan) -> Timeline:
    """What the plan's program does from an empty pipeline to an empty one, in the segment
    from which its figures were predicted."""
    return segment_timeline(profile, cluster, plan, steady_shape(plan).microbatches)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs={Profile: hash})
def segment_timeline(
    profile: Profile, cluster: Cluster, plan: Plan, num_microbatches: int
) -> Timeline:
    """The same for a segment of at most `num_microbatches`. Raises `InvalidInput` where
    these are too few for the plan."""
    return predicted_program(profile, cluster, plan, num_microbatches)[1]
