"""Actions that are asked about once more."""

from collections.abc import Callable

import streamlit as st

from app.components.shell.allowed import closed
from app.components.shell.boundary import guarded


def confirm(
    label: str,
    icon: str,
    question: str,
    answer: str,
    act: Callable[[], object],
    *,
    key: str,
    barred: str | None = None,
) -> None:
    """A button `label` that opens `question`; the button `answer` below it calls `act`. `barred`
    says why it cannot be pressed."""
    with st.popover(label, icon=f":material/{icon}:", key=f"{key}-menu", **closed(barred)):
        st.markdown(question)
        if st.button(answer, type="primary", key=key):
            guarded(act)()
