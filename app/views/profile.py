"""Profile: what each layer of a model costs, measured on a device."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.charts.frame import CONFIG
from app.charts.groups import Detail, LayerGroup, groups
from app.charts.layer_costs import layer_costs, measures
from app.components.model.model_graph import model_graph
from app.components.plan.plan_form import with_named
from app.components.profile.detail_choice import detail_choice
from app.components.profile.import_profile import import_menu
from app.components.profile.layer_table import layer_table, profile_downloads
from app.components.profile.layer_window import layer_window
from app.components.profile.profile_again import profile_again
from app.components.profile.profile_comparison import profile_comparison
from app.components.shell.allowed import why_not
from app.components.shell.boundary import guarded
from app.components.shell.confirm import confirm
from app.components.shell.labels_form import labels_form, labels_line
from app.components.shell.layout import (
    Figure,
    card,
    empty_state,
    figures,
    missing,
    page_header,
    tab_title,
)
from app.components.shell.pick import pick
from app.formats import ago, change, count, plain, seconds, size
from app.session import state
from app.session.state import Page, Param
from backend.cores import MUCH
from backend.profiles.profile import Profile
from backend.runs.profiles import MAX_NAME, StoredProfile

ALT = "Seconds, bytes or operations of each layer, in network order"


@missing("Profile", Page.PROFILE, "The newest profile")
def page() -> None:
    """One stored profile, chosen by ?id=, else the newest."""
    stored = with_named(Param.ID, services.backend().profiles.list())
    if not stored:
        with page_header("Profile", "What each layer costs."):
            import_menu()
        empty_state(
            "No profile yet",
            "Choose a model and profile it: a node times its layers one by one.",
            Page.MODELS,
        )
        return
    head = st.container()
    found = _find(stored)
    with head:
        _header(found)
    if found.profile.is_partial:
        st.warning(
            f"This profile is partial: its job was stopped after {found.profile.repetitions} "
            "repetitions, before memory and operations were measured.",
            icon=":material/hourglass_bottom:",
        )
    _figures(found.profile)
    for note in found.profile.notes:
        st.info(plain(note), icon=":material/info:")
    if (found.profile.cores_taken or 0.0) >= MUCH:
        profile_again(found)
    detail = _layers(found)
    if others := [each for each in stored if each.id != found.id]:
        with card("Compare", "with another profile, layer by layer"):
            guarded(profile_comparison)(found, others, describe, detail)


def _layers(stored: StoredProfile) -> Detail:
    """The graph, the chart and the table; how far equal blocks are opened."""
    found = stored.profile
    with card("Graph", "what flows from layer to layer; bars are seconds"):
        model_graph(found, f"profile-{stored.id}")
    with card("Layers", "in network order; hover for everything"):
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            measure = st.segmented_control(
                "Measure",
                measures(found),
                default="Time",
                required=True,
                key="layer-measure",
            )
            detail = detail_choice(found.graph)
        window = layer_window(groups(found.graph, detail))
        chart = layer_costs(found, measure or "Time", detail, window=window)
        st.plotly_chart(chart, key="layer-costs", config=CONFIG, alt=ALT)
    shown = groups(found.graph, detail)
    with card("Table", _what(len(found.layers), shown)):
        layer_table(found, shown)
    return detail


def _what(layers: int, shown: Sequence[LayerGroup]) -> str:
    """ "390 layers", "390 layers in 7 rows; figures of a fold are of all its blocks together"."""
    text = count(layers, "layer")
    if len(shown) == layers:
        return text
    folds = any(group.count > 1 for group in shown)
    of = "; figures of equal blocks are of all together" if folds else ""
    return f"{text} in {count(len(shown), 'row')}{of}"


def _find(stored: Sequence[StoredProfile]) -> StoredProfile:
    with st.container(width=420):
        return pick("Profile", stored, Param.ID, lambda p: p.id, describe)


def describe(stored: StoredProfile) -> str:
    """A profile in a line: "12 · vgg_digits · microbatch 16 · cpu"."""
    found, own = stored.profile, f"{stored.name} · " if stored.name else ""
    return f"{stored.id} · {own}{found.name} · microbatch {found.microbatch} · {found.device}"


def _header(stored: StoredProfile) -> None:
    title = stored.name or stored.profile.name
    with page_header(title, _line(stored)):
        tab_title(title, f"profile {stored.id}")
        if stored.run_id is not None and st.button("Open run", icon=":material/monitoring:"):
            state.go(Page.RUN, id=stored.run_id)
        profile_downloads(stored)
        import_menu()
        labels_form("profile", stored, MAX_NAME, services.backend().profiles.label)
        _delete(stored)
        if st.button("Plan it", type="primary", icon=":material/account_tree:"):
            state.go(Page.PLAN, profile=stored.id)
    labels_line(stored)


def _delete(stored: StoredProfile) -> None:
    def delete() -> None:
        services.backend().profiles.delete(stored.id)
        state.put(Param.ID, None)
        state.done(f"Profile {stored.id} is deleted")

    confirm(
        "Delete",
        "delete",
        f"Delete profile {stored.id} for good? The run that measured it stays.",
        "Delete the profile",
        delete,
        key="delete-profile",
        barred=why_not(stored.project_id),
    )


def _line(stored: StoredProfile) -> str:
    found = stored.profile
    given = ", ".join(f"{name}={value}" for name, value in found.parameters.items())
    parts = [
        plain(found.name) if stored.name else "",
        f"microbatch **{found.microbatch}**",
        plain(found.device) if found.device != "unknown" else "device unknown",
        plain(given),
        "bfloat16" if found.precision == "bfloat16" else "",
        count(len(found.layers), "layer"),
        f"medians of {found.repetitions}" if found.repetitions else "not measured",
        f"created {ago(stored.created_at)}",
    ]
    return " · ".join(part for part in parts if part)


def _figures(found: Profile) -> None:
    forward = sum(layer.forward for layer in found.layers)
    backward = sum(layer.backward for layer in found.layers)
    held, frozen = sum(layer.activation_bytes for layer in found.layers), found.frozen_bytes
    whole = found.whole_forward + found.whole_backward
    is_measured = any(layer.saved_bytes is not None for layer in found.layers)
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
            Figure(
                "Parameters",
                size(found.parameter_bytes),
                f"trainable; {size(frozen)} frozen" if frozen else "trainable",
            ),
            Figure(
                "Activations",
                size(held),
                "kept for the backward" if is_measured else "outputs of all layers",
            ),
            Figure(
                "Peak memory",
                size(found.peak_bytes),
                "of one step, measured" if found.peak_bytes else "not measured",
            ),
        ),
        "profile",
    )


page()
