"""Peak memory per device against its limit, as bars."""

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.memory import limits_of, memory, parts
from app.components.shell.layout import card
from backend.planning.memory import memory_parts
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.prediction.shapes import steady_shape

ALT = "Peak memory of each stage's devices beside what a device has"


SWATCH = "display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 5px"
LEGEND = (
    '<span style="white-space: nowrap; margin-right: 8px; font-size: 13px">'
    f'<span style="background: {{1}}; {SWATCH}"></span>{{0}}</span>'
)


def memory_view(prediction: Prediction, question: Question) -> None:
    """One bar per pipeline rank of what its devices hold; without a limit the bars alone."""
    plan, cut = prediction.plan, prediction.plan.partition
    limits = limits_of(question.cluster, prediction)
    profile = question.at(plan.microbatch)
    held = memory_parts(profile, plan, steady_shape(plan), question.optimizer)
    said = "dotted: the device's memory" if any(limits) else "limit not known"
    with card("Memory per device", said):
        st.plotly_chart(
            memory(cut, held[: cut.pipeline_size], limits),
            key="memory",
            config=CONFIG,
            alt=ALT,
        )
        st.html(" ".join(LEGEND.format(*each) for each in parts(held).items()))
