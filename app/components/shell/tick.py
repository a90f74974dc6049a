"""Boxes that choose things of a list for as long as the visit lasts."""

import streamlit as st

from app.session.state import Key


def ticked(kind: Key) -> set[int]:
    """The numbers of what is ticked of this kind, on every page of its list."""
    found: set[int] = st.session_state.setdefault(kind.value, set())
    return found


def tick_box(label: str, key: str, kind: Key, ids: set[int]) -> None:
    """A box that is ticked where all of these are; a click ticks all or none of them."""

    def clicked() -> None:
        chosen = ticked(kind)
        change = chosen.update if st.session_state[key] else chosen.difference_update
        change(ids)

    is_ticked = bool(ids) and ids <= ticked(kind)
    # what is put here overwrites a click on its way, so a box that is new and empty is left alone
    if st.session_state.get(key, False) != is_ticked:
        st.session_state[key] = is_ticked
    st.checkbox(label, key=key, label_visibility="collapsed", on_change=clicked)
