"""What one is looking at, in one line, with the page's actions at its right."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator


def page_header(title: str, line: str = "") -> DeltaGenerator:
    """Draw title and line; the container that comes back takes the buttons."""
    with st.container(
        horizontal=True, vertical_alignment="bottom", key="page-header", gap="medium"
    ):
        with st.container(width="stretch", gap=None):
            st.title(title, anchor=False)
            if line:
                st.caption(line)
        return st.container(horizontal=True, width="content", gap="small")
