"""Ctrl+K: a search over everything, and the keys that there are."""

import streamlit as st

from app import services
from app.components.shell.boundary import guarded
from app.formats import plain
from app.queries.everything import search
from app.session.links import page_link

KEYS = (
    "**Keys** &ensp; `Ctrl+K` search &ensp; `Tab` `Enter` choose a result &ensp; `Esc` close  \n"
    "On a timeline &ensp; `W` `S` zoom &ensp; `A` `D` move &ensp; `0` all &ensp; `,` `.` actions "
    "&ensp; `?` help"
)


def search_everything() -> None:
    """A button in the sidebar, which opens the search."""
    with st.sidebar:
        asked = st.button(
            "Search",
            icon=":material/search:",
            shortcut="Ctrl+K",
            key="search-everything",
            type="tertiary",
        )
    if asked:
        _dialog()


@st.dialog("Search everything")
@guarded
def _dialog() -> None:
    text = st.text_input(
        "Name or number",
        placeholder="a run, sweep, plan, profile, model, cluster, node or page",
        icon=":material/search:",
        key="search-text",
    )
    hits = search(services.backend(), text or "")
    for hit in hits:
        label = f":gray[{hit.kind}] &ensp; {plain(hit.label)}"
        page_link(hit.page, label, None, **dict(hit.params))
    if text and not hits:
        st.caption("Nothing has this in its name.")
    st.caption(KEYS)
