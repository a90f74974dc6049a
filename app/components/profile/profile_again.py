"""One click measures a profile again, as it was asked for."""

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.session import state
from app.session.state import Page
from backend.runs.profiles import StoredProfile


def profile_again(stored: StoredProfile) -> None:
    """The button; nothing where the profile was measured elsewhere."""
    if stored.run_id is None:
        return
    if st.button(
        "Profile again",
        icon=":material/replay:",
        key=f"profile-again-{stored.id}",
        **closed(why_not(stored.project_id)),
    ):
        state.go(Page.RUN, id=services.backend().runs.retry(stored.run_id).id)
