"""Name, note and tags of what is kept: plans, profiles and clusters have them alike."""

from collections.abc import Callable

import streamlit as st

from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.formats import plain, shorten
from app.session import state
from backend.runs.clusters import StoredCluster
from backend.runs.history.labels import MAX_NOTE, Change
from backend.runs.plans import StoredPlan
from backend.runs.profiles import StoredProfile

Kept = StoredPlan | StoredProfile | StoredCluster
SHOWN = 60  # characters of a note in a list


def labels_form(noun: str, kept: Kept, most: int, label: Callable[[int, Change], object]) -> None:
    """A menu that changes them; `noun` says what is kept, `most` how long its name may be."""
    with st.popover(
        "Edit",
        icon=":material/edit:",
        key=f"edit-{noun}-{kept.id}",
        **closed(why_not(kept.project_id)),
    ):
        _form(noun, kept, most, label)


@guarded
def _form(noun: str, kept: Kept, most: int, label: Callable[[int, Change], object]) -> None:
    with st.form(f"labels-{noun}-{kept.id}", border=False):
        name = st.text_input("Name", kept.name, max_chars=most)
        note = st.text_area("Note", kept.note, max_chars=MAX_NOTE, height=100)
        tags = st.text_input("Tags", ", ".join(kept.tags), placeholder="baseline, paper")
        if not st.form_submit_button("Save changes", type="primary"):
            return
    label(kept.id, Change(name=name, note=note, tags=tuple(tags.split(","))))
    state.done(f"The {noun} is changed")


def tags_text(kept: Kept) -> str:
    """Its tags as badges, and the beginning of its note, in Markdown; "" without either."""
    badges = [f":blue-badge[{plain(tag)}]" for tag in kept.tags]
    note = [f":gray[:small[{plain(shorten(kept.note, SHOWN))}]]"] if kept.note else []
    return " ".join(badges + note)


def labels_line(kept: Kept) -> None:
    """Tags and the whole note below the head of its page; nothing without them."""
    if kept.tags:
        st.markdown(" ".join(f":blue-badge[{plain(tag)}]" for tag in kept.tags))
    if kept.note:
        st.caption(plain(kept.note))
