"""Plans and timelines, computed once per question while the server runs."""

from collections.abc import Sequence
from math import inf

import streamlit as st

from app.keys import BY_PROFILE
from backend.cluster.cluster import Cluster
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Plan
from backend.prediction.answer import Answer, judge
from backend.prediction.bottleneck import explain
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import predict, predicted_program
from backend.prediction.prediction import Prediction
from backend.prediction.propose import Proposal, propose
from backend.prediction.search import Question
from backend.prediction.shapes import steady_shape
from backend.profiles.profile import Profile

KEPT = 64


@st.cache_resource(show_spinner="Planning…", max_entries=KEPT, hash_funcs=BY_PROFILE)
def proposals(
    profile: Profile, cluster: Cluster, schedule: str, batch: int, optimizer: str
) -> list[Proposal]:
    """One per planner, best first. Raises `PlanDoesNotFit` where none fits."""
    return propose(profile, cluster, schedule=schedule, batch=batch, optimizer=optimizer)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_PROFILE)
def predicted(profile: Profile, cluster: Cluster, plan: Plan, optimizer: str) -> Prediction:
    """What one plan will do. Raises `PlanDoesNotFit` and `InvalidInput`."""
    return predict(profile, cluster, plan, optimizer)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_PROFILE)
def judged(
    profile: Profile,
    cluster: Cluster,
    prediction: Prediction,
    schedule: str,
    batch: int,
    optimizer: str,
) -> Answer:
    """A prediction beside its bound, with the reasons for the plan."""
    return judge(Question(profile, cluster, schedule, batch, optimizer), prediction)


def by_hand(
    profile: Profile, cluster: Cluster, plan: Plan, optimizer: str, found: Sequence[Proposal]
) -> Proposal:
    """`plan` as a proposal beside those that were `found`. Raises as `predicted`."""
    prediction = predicted(profile, cluster, plan, optimizer)
    base = found[0].prediction.samples_per_second / (found[0].speedup or inf)
    return Proposal(
        prediction,
        prediction.samples_per_second / base if base else None,
        explain(PlanDurations(profile, plan.partition, cluster), plan, steady_shape(plan)),
    )


def predicted_timeline(profile: Profile, cluster: Cluster, plan: Plan) -> Timeline:
    """What the plan's program does from an empty pipeline to an empty one, in the segment
    from which its figures were predicted."""
    return segment_timeline(profile, cluster, plan, steady_shape(plan).microbatches)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_PROFILE)
def segment_timeline(
    profile: Profile, cluster: Cluster, plan: Plan, num_microbatches: int
) -> Timeline:
    """The same for a segment of at most `num_microbatches`. Raises `InvalidInput` where
    these are too few for the plan."""
    return predicted_program(profile, cluster, plan, num_microbatches)[1]
