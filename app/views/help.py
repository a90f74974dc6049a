"""Help: the terms that plans, schedules and runs are described with."""

import streamlit as st

from app.components.shell.layout import card, page_header
from app.terms import TERMS


def page() -> None:
    """Every term with its explanation."""
    page_header("Help", "The terms of the pages. Most are also explained where they appear.")
    with card("Terms"), st.container(key="quiet-terms"):
        rows = (f"| **{term.value}** | {said} |" for term, said in TERMS.items())
        st.markdown("\n".join(("| | |", "|---|---|", *rows)))


page()
