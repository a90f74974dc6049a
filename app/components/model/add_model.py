"""The ways a model comes in: a file of one's own, in any form, or one from the zoo."""

from hashlib import sha256

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.components.shell.download import download
from app.formats import plain
from app.session import state
from backend.definitions.forms import FORMS, MAX_BYTES, MEBIBYTE
from backend.definitions.python_file import CONTRACT
from backend.definitions.zoo import ZooEntry, zoo_file

EXAMPLE = "vgg_digits"
LARGEST = max(MAX_BYTES.values()) // MEBIBYTE
FORMS_FOR_PEOPLE = """
| file | what it is |
|---|---|
| `.py` | a Python file with a factory, `def model()` |
| `.json` | the `config.json` of a Hugging Face model; it needs no weights |
| `.pt2` | a program saved by `torch.export.save` |
| `.safetensors` | weights for a model that is stored here |
"""


def upload() -> None:
    """A file, checked without running it, and a name for it."""
    with st.form("upload", clear_on_submit=True, border=False):
        file = st.file_uploader(
            "Python file, Hugging Face config, program or weights",
            type=[suffix.removeprefix(".") for suffix in FORMS],
            max_upload_size=LARGEST,
        )
        name = st.text_input("Name", placeholder="the file's name", max_chars=100)
        barred = why_not()
        pressed = st.form_submit_button(
            "Add model", icon=":material/add:", type="primary", **closed(barred)
        )
    if pressed and file is None:
        st.warning("Choose a file first.", icon=":material/upload_file:")
    elif pressed and file is not None:
        _keep(file.name, file.getvalue(), name)
    _contract()


@guarded
def _keep(filename: str, data: bytes, name: str) -> None:
    kept = services.backend().definitions.add(filename, data, name.strip() or None)
    state.done(f"{kept.label} is added")


def _contract() -> None:
    with st.expander("What a file must hold"):
        st.markdown(FORMS_FOR_PEOPLE)
        st.markdown(CONTRACT)
        st.caption(
            "The dashboard reads the file and never runs it; a node runs it in its own process. "
            "The same content is stored once; new content under an existing name is a new version."
        )
        example = zoo_file(EXAMPLE)
        download("Download an example", example.read_bytes, example.name, "text/x-python")


def zoo() -> None:
    """The bundled models, each with one button until it is kept as it is bundled."""
    definitions = services.backend().definitions
    kept = {(found.name, found.digest) for found in definitions.list()}
    with st.container(key="panels-zoo"):
        barred = why_not()
        for entry in definitions.zoo():
            digest = sha256(zoo_file(entry.name).read_bytes()).hexdigest()
            _entry(entry, barred, is_kept=(entry.name, digest) in kept)


def _entry(entry: ZooEntry, barred: str | None, *, is_kept: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", wrap=False):
        with st.container(gap=None):
            st.markdown(f"**{plain(entry.name)}**")
            st.caption(plain(entry.title))
        if is_kept:
            st.badge("added", icon=":material/check:", color="green")
        elif st.button("Add", key=f"zoo-{entry.name}", icon=":material/add:", **closed(barred)):
            _add(entry.name)


@guarded
def _add(name: str) -> None:
    kept = services.backend().definitions.add_zoo(name)
    state.done(f"{kept.label} is added")
