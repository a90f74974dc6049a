"""The definitions that are kept, and what can be done with each."""

from collections.abc import Sequence

import streamlit as st

from app.components.model.definition_actions import LOOK, remove, show
from app.components.profile.profile_form import profile_form
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.grid import Column, grid, text, when
from app.formats import plain, size
from backend.definitions.definition import Definition
from backend.definitions.forms import form_of

FACTS: tuple[Column[Definition], ...] = (
    text("Version", 0.8, lambda d: f"v{d.version}"),
    text("Digest", 1.3, lambda d: f":small[`{d.digest[:10]}`]"),
    text("Size", 0.9, lambda d: size(d.size)),
    when("Added", 1.1, lambda d: d.created_at),
)


def form_word(definition: Definition) -> str:
    """What it is, for people: "zoo", "Hugging Face" ..."""
    return "zoo" if definition.source == "zoo" else LOOK[form_of(definition.filename)].word


def definition_list(definitions: Sequence[Definition]) -> None:
    """One row per version, newest first, with the way to its page and to a profile."""
    grid(
        "definitions",
        (
            Column("Model", 2.4, _name),
            text("Form", 1.1, lambda d: f":gray[{form_word(d)}]"),
            *FACTS,
            Column("", 1.4, _profile_button),
        ),
        definitions,
    )


def weights_list(weights: Sequence[Definition]) -> None:
    """One row per file of weights."""
    grid("weights", (Column("Weights", 2.4, _name), *FACTS, Column("", 1.4, remove)), weights)


def _name(definition: Definition) -> None:
    label = f"**{plain(definition.name)}**"
    if st.button(label, type="tertiary", key=f"open-{definition.id}"):
        show(definition.id)


def _profile_button(definition: Definition) -> None:
    with st.container(horizontal=True, horizontal_alignment="right"):
        barred = why_not(definition.project_id)
        if st.button(
            "Profile", key=f"profile-{definition.id}", icon=":material/bar_chart:", **closed(barred)
        ):
            _profile(definition)


@st.dialog("Profile a model", width="medium")
@guarded
def _profile(definition: Definition) -> None:
    profile_form(definition)


def back() -> None:
    """The way from one model to all of them."""
    if st.button("All models", icon=":material/arrow_back:", type="tertiary"):
        show(None)
