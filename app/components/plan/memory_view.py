"""Peak memory per device against its limit, as bars."""

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.memory import memory, parts
from app.components.shell.layout import card
from app.components.shell.legend import legend
from backend.planning.memory import replica_parts
from backend.planning.room import least_room
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.shapes import steady_shape

ALT = "Peak memory of each stage's devices beside what a device has"


def memory_view(prediction: Prediction, question: Question) -> None:
    """One bar per pipeline rank of what its devices hold; without a limit the bars alone."""
    plan, cut = prediction.plan, prediction.plan.partition
    profile = question.at(plan.microbatch)
    held = replica_parts(profile, plan, steady_shape(plan), question.optimizer)
    rooms = least_room(held, question.cluster, cut)
    known = any(room.device.memory for room in rooms)
    said = "dotted: the device's memory" if known else "limit not known"
    with card("Memory per device", said):
        st.plotly_chart(
            memory(cut, rooms),
            key="memory",
            config=CONFIG,
            alt=ALT,
        )
        legend(parts([room.held for room in rooms]))
