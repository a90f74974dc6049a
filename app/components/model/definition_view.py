"""One definition: what it is, its parameters, its file, its profiles."""

import streamlit as st

from app import services
from app.components.model.definition_list import LOOK, back, clone, download_file, form_word, remove
from app.components.profile.import_profile import import_form
from app.components.profile.profile_form import profile_form
from app.components.shell.boundary import guarded
from app.components.shell.grid import Column, grid, small, text, when
from app.components.shell.labels_form import tags_text
from app.components.shell.layout import card, page_header
from app.formats import ago, count, plain, seconds, size
from app.session.links import page_link
from app.session.state import Page
from backend.definitions.definition import Definition
from backend.definitions.forms import Description
from backend.runs.profiles import StoredProfile


def definition_view(definition: Definition) -> None:
    """The page of one model or file of weights."""
    found = services.backend().definitions.describe(definition.id)
    back()
    _header(definition, found)
    if found.form == "weights":
        with card("What is in it"):
            _facts(definition, found)
        return
    with st.container(key="split-model"):
        left, right = st.columns([1.5, 1], gap="medium")
    with left:
        with card("What is in it", "read from the file, which was not run"):
            _facts(definition, found)
        _profiles(definition)
        _file(definition, found)
    with right:
        with card("Profile it"):
            guarded(profile_form)(definition)
        with card("Import a profile", "measured elsewhere"):
            import_form(definition)


def _header(definition: Definition, found: Description) -> None:
    parts = [
        f"version **{definition.version}**",
        form_word(definition),
        plain(found.task),
        size(definition.size),
        f"added {ago(definition.created_at)}",
    ]
    line = " · ".join(part for part in parts if part)
    with page_header(definition.name, line):
        download_file(definition)
        clone(definition)
        remove(definition)


def _facts(definition: Definition, found: Description) -> None:
    facts = [("file", definition.filename), ("task", found.task), *found.facts]
    for name, value in facts:
        if value:
            st.markdown(f":gray[{plain(name)}] &ensp;{plain(value)}")
    st.caption(f"SHA-256 `{definition.digest}`")
    if found.parameters:
        st.caption("Parameters, with their defaults")
        rows = {
            "parameter": [each.name for each in found.parameters],
            "kind": [each.kind for each in found.parameters],
            "default": [str(each.default) for each in found.parameters],
        }
        if any(each.choices for each in found.parameters):
            choices = [", ".join(filter(None, each.choices)) for each in found.parameters]
            rows["choices"] = choices
        st.dataframe(rows, hide_index=True, key="parameters", alt="Parameters and defaults")


def _profiles(definition: Definition) -> None:
    stored = services.backend().profiles.list(definition.id)
    with card("Profiles", count(len(stored), "profile") if stored else ""):
        if not stored:
            st.caption("None yet.")
            return
        grid(
            "profiles",
            (
                Column("Profile", 1.0, _open),
                text("Samples", 0.9, lambda p: str(p.profile.microbatch)),
                text("Device", 1.6, lambda p: plain(p.profile.device)),
                text("Layers", 0.7, lambda p: str(len(p.profile.layers))),
                text("Compute", 1.1, lambda p: seconds(p.profile.compute)),
                small("Parameters", 1.6, _given),
                when("Created", 1.1, lambda p: p.created_at),
            ),
            stored,
        )


def _open(stored: StoredProfile) -> None:
    own = f" · {plain(stored.name)}" if stored.name else ""
    label = f"**{stored.id}**{own}" + (" partial" if stored.profile.is_partial else "")
    page_link(Page.PROFILE, label, id=stored.id)
    if said := tags_text(stored):
        st.markdown(said)


def _given(stored: StoredProfile) -> str:
    return ", ".join(f"{name}={value}" for name, value in stored.profile.parameters.items())


def _file(definition: Definition, found: Description) -> None:
    if not (language := LOOK[found.form].language):
        return
    text = services.backend().definitions.source(definition.id).decode("utf-8", "replace")
    with card("File", plain(definition.filename)):
        st.code(text, language=language, line_numbers=True, height=480)
