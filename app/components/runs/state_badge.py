"""The state of a run as a coloured word."""

from typing import Literal

import streamlit as st

from backend.runs.states import RunState

LOOK: dict[RunState, tuple[str, Literal["gray", "blue", "green", "red", "orange"]]] = {
    RunState.QUEUED: ("schedule", "gray"),
    RunState.STARTING: ("progress_activity", "blue"),
    RunState.RUNNING: ("play_circle", "blue"),
    RunState.SUCCEEDED: ("check_circle", "green"),
    RunState.FAILED: ("error", "red"),
    RunState.CANCELLED: ("cancel", "orange"),
}


def state_badge(state: RunState) -> None:
    """Icon, word and colour: none of them alone carries the meaning."""
    icon, colour = LOOK[state]
    st.badge(state.value, icon=f":material/{icon}:", color=colour)
