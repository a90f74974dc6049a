"""What a plan was made for, in fields that stand already: another plan was chosen beside them."""

import streamlit as st

from app.components.launch.fields import Fields
from app.session import state
from app.session.state import Param
from backend.runs.request.spec import TrainSpec

LAST = "launch-planned"
"""The key of what the fields followed last."""


def follow_plan(spec: TrainSpec, fields: Fields) -> None:
    """Before the fields are drawn: what `spec` was planned with, where the plan before was made for
    something else. The launch page says by itself when another plan is chosen."""
    planned = planned_values(spec)
    if not fields.bound and st.session_state.get(LAST, planned) != planned:
        for param, value in planned.items():
            st.session_state[fields.key(param)] = value
    st.session_state[LAST] = planned


def choose_planned(spec: TrainSpec) -> None:
    """The same into fields whose values are in the URL."""
    for param, value in planned_values(spec).items():
        state.choose(param, value)


def planned_values(spec: TrainSpec) -> dict[Param, object]:
    """The values of the fields that a plan decides."""
    return {
        Param.OPTIMIZER: spec.optimizer.name,
        Param.RATE: spec.optimizer.learning_rate,
        Param.EMA: spec.optimizer.ema,
        Param.STATE_PRECISION: spec.state_precision,
        Param.PRECISION: spec.precision,
    }
