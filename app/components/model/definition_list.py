"""The definitions that are stored, and what can be done with each."""

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import streamlit as st

from app import services
from app.components.profile.profile_form import profile_form
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.confirm import confirm
from app.components.shell.download import download
from app.components.shell.grid import Column, grid, text, when
from app.formats import plain, size
from app.session import state
from app.session.links import page_link
from app.session.state import Page, Param
from backend.definitions.definition import Definition
from backend.definitions.forms import Form, form_of


class FormLook(NamedTuple):
    """How the files of a form are shown: a word, the media type, the language of their text."""

    word: str
    mime: str = "application/octet-stream"
    language: str = ""


LOOK: dict[Form, FormLook] = {
    "python": FormLook("Python", "text/x-python", "python"),
    "huggingface": FormLook("Hugging Face", "application/json", "json"),
    "program": FormLook("program"),
    "weights": FormLook("weights"),
}


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
    page_link(Page.MODELS, f"**{plain(definition.name)}**", id=definition.id)


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


def show(definition_id: int | None) -> NoReturn:
    """Go on with the page of one definition; None: of all. A link from a page to itself would
    lose its parameters at the next rerun."""
    state.put(Param.ID, definition_id)
    st.rerun()


def download_file(definition: Definition) -> None:
    """The file as it was uploaded."""
    data = services.later(lambda its: its.definitions.source(definition.id))
    mime = LOOK[form_of(definition.filename)].mime
    download("Download", data, definition.filename, mime, key=f"download-{definition.id}")


def clone(definition: Definition) -> None:
    """The same file under another name, of which it is the first version."""
    barred = why_not(definition.project_id)
    with st.popover("Clone", icon=":material/content_copy:", **closed(barred)):
        name = st.text_input("Name of the copy", f"{definition.name} copy", max_chars=100)
        if st.button("Create copy", type="primary", key=f"clone-{definition.id}"):
            _clone(definition, name)


@guarded
def _clone(definition: Definition, name: str) -> None:
    made = services.backend().definitions.clone(definition.id, name)
    state.notify(f"{made.label} is created")
    show(made.id)


def remove(definition: Definition) -> None:
    """Deleting asks once more; where runs or profiles need the file it says which."""

    def delete() -> None:
        services.backend().definitions.delete(definition.id)
        state.notify(f"{definition.label} is deleted")
        show(None)

    confirm(
        "Delete the model",
        "delete",
        f"Delete **{plain(definition.label)}** and its file for good?",
        "Delete the model",
        delete,
        key=f"delete-{definition.id}",
        barred=why_not(definition.project_id),
    )
