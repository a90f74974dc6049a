"""The definitions that are kept, and what can be done with each."""

from collections.abc import Sequence

import streamlit as st

from app import services, state
from app.boundary import guarded
from app.components.grid import Column, grid
from app.components.profile_form import profile_form
from app.formats import ago, plain, size
from backend.definitions.definition import Definition


def definition_list(definitions: Sequence[Definition]) -> None:
    """One row per version, newest first, with its file and the way to profile it."""
    grid(
        "definitions",
        (
            Column("Model", 2.6, _name),
            Column("Version", 0.9, lambda d: st.markdown(f"v{d.version}")),
            Column("Digest", 1.3, lambda d: st.markdown(f":small[`{d.digest[:10]}`]")),
            Column("Size", 1.0, lambda d: st.markdown(size(d.size))),
            Column("Added", 1.2, lambda d: st.markdown(f":gray[{ago(d.created_at)}]")),
            Column("", 2.4, _actions),
        ),
        definitions,
    )


def _name(definition: Definition) -> None:
    origin = "zoo" if definition.source == "zoo" else definition.filename
    st.markdown(f"**{plain(definition.name)}** &ensp;:gray[:small[{plain(origin)}]]")


def _actions(definition: Definition) -> None:
    with st.container(horizontal=True, horizontal_alignment="right", gap="small"):
        if st.button("Source", key=f"source-{definition.id}", type="tertiary"):
            _source(definition)
        if st.button("Profile", key=f"profile-{definition.id}", icon=":material/bar_chart:"):
            _profile(definition)


@st.dialog("Source", width="large")
@guarded
def _source(definition: Definition) -> None:
    text = services.backend().definitions.source(definition.id)
    zone = state.zone()
    st.caption(
        f"{plain(definition.label)} · {size(definition.size)} · "
        f"added {definition.created_at.astimezone(zone):%Y-%m-%d %H:%M}"
    )
    st.code(text.decode("utf-8", "replace"), language="python", line_numbers=True, height=480)
    st.download_button(
        "Download",
        text,
        file_name=definition.filename,
        mime="text/x-python",
        icon=":material/download:",
        on_click="ignore",
    )


@st.dialog("Profile a model")
@guarded
def _profile(definition: Definition) -> None:
    profile_form(definition)
