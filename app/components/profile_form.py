"""Ask for a profile: at which microbatch size, how often."""

import streamlit as st

from app import services, state
from app.formats import plain
from app.state import Page
from backend.definitions.definition import Definition
from backend.runs.spec import ProfileSpec


def profile_form(definition: Definition) -> None:
    """Submits a profile run and opens its page."""
    with st.form(f"profile-form-{definition.id}", border=False):
        st.caption(
            f"Times every layer of **{plain(definition.label)}** on a node, forward and "
            "backward, and takes the medians. Plan and train at the same microbatch size."
        )
        microbatch = st.number_input("Samples per microbatch", min_value=1, value=16, step=1)
        repetitions = st.number_input("Repetitions", min_value=1, value=20, step=1)
        if not st.form_submit_button("Start profiling", type="primary"):
            return
    spec = ProfileSpec(definition.id, microbatch=int(microbatch), repetitions=int(repetitions))
    run = services.backend().runs.submit(spec, f"profile {definition.name}")
    state.go(Page.RUN, id=run.id)
