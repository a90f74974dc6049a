"""What can be done with one definition: take it away, copy it, delete it."""

from typing import NamedTuple, NoReturn

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.confirm import confirm
from app.components.shell.download import download
from app.formats import plain
from app.session import state
from app.session.state import Param
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
        if st.button("Make the copy", type="primary", key=f"clone-{definition.id}"):
            _clone(definition, name)


@guarded
def _clone(definition: Definition, name: str) -> None:
    made = services.backend().definitions.clone(definition.id, name)
    state.notify(f"{made.label} is kept")
    show(made.id)


def remove(definition: Definition) -> None:
    """Deleting asks once more; where runs or profiles need the file it says which."""

    def delete() -> None:
        services.backend().definitions.delete(definition.id)
        state.notify(f"{definition.label} is deleted")
        show(None)

    confirm(
        "Delete",
        "delete",
        f"Delete **{plain(definition.label)}** and its file for good?",
        "Delete it",
        delete,
        key=f"delete-{definition.id}",
        barred=why_not(definition.project_id),
    )
