"""Models: what can be profiled and trained, and how a model comes in."""

import streamlit as st

from app import services
from app.components.model import add_model
from app.components.model.definition_list import definition_list, weights_list
from app.components.model.definition_view import definition_view
from app.components.shell.layout import card, empty_state, missing, page_header
from app.formats import count
from app.session import state
from app.session.state import Page, Param


@missing("Models", Page.MODELS, "All models")
def page() -> None:
    """The one that ?id= names, else the kept definitions beside the ways to add one."""
    definitions = services.backend().definitions
    state.hold(Param.ID)
    wanted = state.wanted_id(Param.ID, "model")
    if wanted is not None:
        definition_view(definitions.get(wanted))
        return
    page_header("Models", "Upload a model or take one of the zoo; then profile, plan and train it.")
    with st.container(key="split-models"):
        kept, adding = st.columns([2.2, 1], gap="medium")
    with kept:
        _kept()
        with card("Zoo", "published models, with their sizes as parameters"):
            add_model.zoo()
    with adding, card("Upload"):
        add_model.upload()


def _kept() -> None:
    definitions = services.backend().definitions
    found, weights = definitions.list(), definitions.weights()
    if found:
        with card("Models", f"{count(len(found), 'version')}, newest first"):
            definition_list(found)
    else:
        empty_state(
            "No model yet",
            "Add one from the zoo with one click, or upload a file of your own: Python, a Hugging "
            "Face config.json, or a program of torch.export. "
            "Then profile it: a node times its layers, and the plan is made from that.",
        )
    if weights:
        with card("Weights", "to begin a training with"):
            weights_list(weights)


page()
