"""The layers of a profile as a table that can be sorted and taken away."""

import streamlit as st

from app.formats import size_unit, time_unit
from backend.profiles.profile import Profile


def layer_table(profile: Profile) -> None:
    """One row per layer, in network order, all in the same units."""
    st.dataframe(
        rows(profile),
        hide_index=True,
        height=360,
        key="layers",
        column_config={
            "layer": st.column_config.TextColumn(width="medium", pinned=True),
            "kind": st.column_config.TextColumn(width="small"),
        },
        alt="Seconds and bytes of every layer",
    )


def rows(profile: Profile) -> dict[str, list[object]]:
    """The table by columns; a unit stands in the heading, the numbers are plain."""
    layers = profile.layers
    times, second = time_unit(max((layer.compute for layer in layers), default=0.0))
    factor, byte = size_unit(max((layer.output_bytes for layer in layers), default=0))
    weights, weight = size_unit(max((layer.parameter_bytes for layer in layers), default=0))
    return {
        "layer": [layer.name for layer in layers],
        "kind": [layer.kind for layer in layers],
        f"forward, {second}": [round(layer.forward * times, 4) for layer in layers],
        f"backward, {second}": [round(layer.backward * times, 4) for layer in layers],
        f"update, {second}": [round(layer.update * times, 4) for layer in layers],
        f"parameters, {weight}": [round(layer.parameter_bytes * weights, 4) for layer in layers],
        f"output, {byte}": [round(layer.output_bytes * factor, 4) for layer in layers],
        f"cut sends, {byte}": [round(cut * factor, 4) for cut in profile.graph.cut_bytes],
    }
