"""Nothing here yet: what this place is for and what to do next."""

import streamlit as st

from app.session.state import Page


def empty_state(title: str, advice: str, to: Page | None = None, label: str = "") -> None:
    """A quiet box with a sentence and, where it helps, the button that leads there."""
    with st.container(border=True, key=f"empty-{title}", gap="small"):
        st.markdown(f"**{title}**")
        st.caption(advice)
        if to is not None and st.button(
            label, icon=":material/arrow_forward:", type="primary", key=f"go-{title}"
        ):
            st.switch_page(to.value)
