"""A profile in every form that it can be taken away in."""

from collections.abc import Callable

import streamlit as st

from app.components.profile.layer_table import layers_csv
from backend.profiles.document import write_profile
from backend.profiles.graph_txt import write_graph
from backend.runs.profiles import StoredProfile


def profile_downloads(stored: StoredProfile) -> None:
    """A menu of files; each is written when it is asked for."""
    found, stem = stored.profile, f"{stored.profile.name}-profile-{stored.id}"
    forms: dict[str, tuple[Callable[[], str | bytes], str, str]] = {
        "JSON: everything": (lambda: write_profile(found), f"{stem}.json", "application/json"),
        "CSV: a row per layer": (lambda: layers_csv(found), f"{stem}.csv", "text/csv"),
        "graph.txt: PipeDream's": (lambda: write_graph(found), f"{stem}.txt", "text/plain"),
    }
    with st.popover("Download", icon=":material/download:"):
        for label, (data, file_name, mime) in forms.items():
            st.download_button(
                label,
                data=data,
                file_name=file_name,
                mime=mime,
                on_click="ignore",
                width="stretch",
            )
