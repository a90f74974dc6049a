"""The stages of a plan as a table: what the partition's picture says, in figures."""

import streamlit as st

from app.exports.stage_rows import stage_rows
from backend.cluster.cluster import Cluster
from backend.prediction.prediction import Prediction
from backend.profiles.profile import Profile

NAMES = ("from", "to", "blocks")
"""Columns as wide as the names of layers are: last, so that no figure is beyond the card's edge."""


def stage_table(profile: Profile, cluster: Cluster, prediction: Prediction) -> None:
    """One row per stage; `profile` in the partition's order of layers."""
    rows = stage_rows(profile, cluster, prediction)
    st.dataframe(
        rows,
        hide_index=True,
        key="stages",
        column_order=[*(name for name in rows if name not in NAMES), *NAMES],
        column_config={
            "stage": st.column_config.NumberColumn(width=50, pinned=True),
            "layers": None,  # from and to say it by names
            "replicas": st.column_config.NumberColumn(width=62),
            "compute": st.column_config.TextColumn(width=70, alignment="right"),
            "parameters": st.column_config.TextColumn(width=78, alignment="right"),
            "sends": st.column_config.TextColumn(width=72, alignment="right"),
            "receives back": st.column_config.TextColumn(width=98, alignment="right"),
            "devices": st.column_config.TextColumn(width=60),
            "memory": st.column_config.TextColumn(width=70, alignment="right"),
            "versions": st.column_config.NumberColumn(width=62),
        },
        alt="Layers, devices, seconds and bytes of every stage",
    )
