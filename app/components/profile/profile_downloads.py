"""A profile in every form that it can be taken away in."""

from functools import partial

import streamlit as st

from app.components.profile.layer_table import layers_csv
from app.components.shell.download import download
from backend.profiles.document import write_profile
from backend.profiles.graph_txt import write_graph
from backend.runs.profiles import StoredProfile


def profile_downloads(stored: StoredProfile) -> None:
    """A menu of files; each is written when it is asked for."""
    stem = f"{stored.profile.name}-profile-{stored.id}"
    with st.popover("Download", icon=":material/download:"):
        for label, write, suffix, mime in (
            ("JSON: everything", write_profile, ".json", "application/json"),
            ("CSV: a row per layer", layers_csv, ".csv", "text/csv"),
            ("graph.txt: PipeDream's", write_graph, ".txt", "text/plain"),
        ):
            data = partial(write, stored.profile)
            download(label, data, stem + suffix, mime, in_menu=True)
