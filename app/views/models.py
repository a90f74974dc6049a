"""Models: what can be profiled and trained, and how a model comes in."""

import streamlit as st

from app import services
from app.components import add_model
from app.components.card import card
from app.components.definition_list import definition_list
from app.components.empty_state import empty_state
from app.components.page_header import page_header
from app.formats import count


def page() -> None:
    """The kept definitions beside the ways to add one."""
    definitions = services.backend().definitions.list()
    page_header("Models", "A model is a Python file. Profile it, plan it, train it.")
    with st.container(key="split-models"):
        kept, adding = st.columns([2.2, 1], gap="medium")
    with kept:
        if definitions:
            with card("Kept models", f"{count(len(definitions), 'version')}, newest first"):
                definition_list(definitions)
        else:
            empty_state(
                "No model yet",
                "Add one from the zoo with one click, or upload a Python file of your own. "
                "Then profile it: a node times its layers, and the plan is made from that.",
            )
    with adding:
        with card("Upload"):
            add_model.upload()
        with card("Zoo"):
            add_model.zoo()


page()
