"""Peak memory per device against its limit, as bars."""

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.memory import memory
from app.components.shell.card import card
from backend.cluster.cluster import Cluster
from backend.prediction.prediction import Prediction

ALT = "Peak memory of each stage's devices beside what a device has"


def memory_view(prediction: Prediction, cluster: Cluster) -> None:
    """One bar per pipeline rank; without a limit the bars alone."""
    cut = prediction.plan.partition
    limits = limits_of(cluster, prediction)
    said = "dotted: what the device has" if any(limits) else "its limit is not known"
    with card("Memory per device", said):
        st.plotly_chart(
            memory(cut, prediction.memory_bytes[: cut.pipeline_size], limits),
            key="memory",
            config=CONFIG,
            alt=ALT,
        )


def limits_of(cluster: Cluster, prediction: Prediction) -> list[float | None]:
    """Per pipeline rank the memory of its smallest device, None where that is not known."""
    found: list[float | None] = []
    for stage in prediction.plan.partition.stages[: prediction.plan.partition.pipeline_size]:
        memories = [cluster.at(device).memory for device in stage.devices]
        known = [memory for memory in memories if memory is not None]
        found.append(min(known) if known else None)
    return found
