"""Why a plan is as it is: what holds it back, what moving a cut would do, how far the bound is."""

import streamlit as st

from app import planner
from app.components.card import card
from app.components.plan_form import Wanted
from app.formats import percent, plain, seconds, times
from backend.prediction.answer import Answer
from backend.prediction.prediction import Prediction


def why_view(wanted: Wanted, prediction: Prediction) -> None:
    """The reasons as a list, then the distance to the lower bound in a sentence."""
    found = planner.judged(
        wanted.stored.profile,
        wanted.cluster,
        prediction,
        wanted.schedule,
        wanted.batch,
        wanted.optimizer,
    )
    with card("Why this one"), st.container(key="quiet-why", gap="small"):
        st.markdown("\n".join(f"- {plain(reason)}" for reason in found.reasons))
        st.caption(distance(found))


def distance(found: Answer) -> str:
    """How much faster any plan could be at most, and what one device alone does."""
    spent = found.prediction.seconds_per_minibatch
    return (
        f"No plan takes less than **{seconds(found.bound_seconds)}** per minibatch: all compute, "
        f"evenly on all devices. This one takes {seconds(spent)}; another saves at most "
        f"**{percent(found.gap)}**. It is {times(found.over_one_device)} as fast as one device."
    )
