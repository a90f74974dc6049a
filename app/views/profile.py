"""Profile: what each layer of a model costs, measured on a device."""

from collections.abc import Sequence

import streamlit as st

from app import services, state
from app.charts.frame import CONFIG
from app.charts.layer_costs import layer_costs
from app.components.card import card
from app.components.empty_state import empty_state
from app.components.figures import Figure, figures
from app.components.layer_table import layer_table
from app.components.page_header import page_header
from app.components.pick import pick
from app.formats import ago, change, count, plain, seconds, size
from app.state import Page, Param
from backend.profiles.document import write_profile
from backend.profiles.profile import Profile
from backend.runs.profiles import StoredProfile

ALT = "Forward and backward seconds and parameters of each layer, in network order"


def page() -> None:
    """One stored profile, chosen by ?id=, else the newest."""
    stored = services.backend().profiles.list()
    if not stored:
        page_header("Profile", "What each layer costs.")
        empty_state(
            "No profile yet",
            "Choose a model and profile it: a node times its layers one by one.",
            Page.MODELS,
            "Go to Models",
        )
        return
    head = st.container()
    found = _find(stored)
    with head:
        _header(found)
    _figures(found.profile)
    for note in found.profile.notes:
        st.info(plain(note), icon=":material/info:")
    with card("Layers", "in network order; hover for everything"):
        st.plotly_chart(layer_costs(found.profile), key="layer-costs", config=CONFIG, alt=ALT)
    with card("Table", count(len(found.profile.layers), "layer")):
        layer_table(found.profile)


def _find(stored: Sequence[StoredProfile]) -> StoredProfile:
    wanted = state.number(Param.ID)
    if wanted is not None and all(profile.id != wanted for profile in stored):
        services.backend().profiles.get(wanted)  # says that there is no such profile
    with st.container(width=420):
        return pick("Profile", stored, Param.ID, lambda p: p.id, describe)


def describe(stored: StoredProfile) -> str:
    """A profile in a line: "12 · vgg_digits · microbatch 16 · cpu"."""
    found = stored.profile
    return f"{stored.id} · {found.name} · microbatch {found.microbatch} · {found.device}"


def _header(stored: StoredProfile) -> None:
    found = stored.profile
    line = (
        f"microbatch **{found.microbatch}** · {plain(found.device)} · "
        f"{count(len(found.layers), 'layer')} · medians of {found.repetitions} · "
        f"measured {ago(stored.created_at)}"
    )
    with page_header(plain(found.name), line):
        if stored.run_id is not None and st.button("Open run", icon=":material/monitoring:"):
            state.go(Page.RUN, id=stored.run_id)
        st.download_button(
            "JSON",
            data=write_profile(found),
            file_name=f"{found.name}-profile-{stored.id}.json",
            mime="application/json",
            icon=":material/download:",
            on_click="ignore",
        )
        if st.button("Plan it", type="primary", icon=":material/account_tree:"):
            state.go(Page.PLAN, profile=stored.id)


def _figures(found: Profile) -> None:
    forward = sum(layer.forward for layer in found.layers)
    backward = sum(layer.backward for layer in found.layers)
    activations = sum(layer.output_bytes for layer in found.layers)
    whole = found.whole_forward + found.whole_backward
    figures(
        (
            Figure("Forward", seconds(forward), "sum of layers"),
            Figure(
                "Backward",
                seconds(backward),
                f"{backward / forward:.1f}× forward" if forward else "",
            ),
            Figure(
                "Whole model",
                seconds(whole or None),
                f"layers {change(forward + backward, whole)}" if whole else "not measured",
                help="One microbatch through the uncut model. Layers timed one by one add up "
                "to a little more or less.",
            ),
            Figure("Parameters", size(found.parameter_bytes), "trainable"),
            Figure("Activations", size(activations), "outputs of all layers"),
        ),
        "profile",
    )


page()
