"""A partition over its layers, and below it the devices that hold the stages."""

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.partition import partition
from app.charts.placement import describe, placement
from app.components.card import card
from app.formats import plain
from app.naming import partition_name
from backend.cluster.cluster import Cluster
from backend.prediction.prediction import Prediction
from backend.profiles.profile import Profile

MOST_DEVICES = 128
ALT = "Seconds and parameters of each layer, with the stages as bands over them"
DEVICES = "Which stage sits on which device"


def partition_view(profile: Profile, cluster: Cluster, prediction: Prediction) -> None:
    """Draw both, in the same hues."""
    cut = prediction.plan.partition
    with card("Partition", f"{partition_name(cut)} · {plain(describe(cluster))}"):
        st.plotly_chart(
            partition(profile, cut, prediction.stage_seconds),
            key="partition",
            config=CONFIG,
            alt=ALT,
        )
        if cluster.num_devices <= MOST_DEVICES:
            st.plotly_chart(placement(cluster, cut), key="placement", config=CONFIG, alt=DEVICES)
