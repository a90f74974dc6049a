"""The layers of a profile as a table that can be sorted and taken away."""

from collections.abc import Sequence
from math import floor, log10
from typing import Any

import streamlit as st

from app.formats import size_unit, time_unit
from backend.profiles.profile import Profile

DIGITS = 3


def layer_table(profile: Profile) -> None:
    """One row per layer, in network order, all in the same units."""
    table = rows(profile)
    st.dataframe(
        table,
        hide_index=True,
        height=360,
        key="layers",
        column_config={
            "layer": st.column_config.TextColumn(width="medium", pinned=True),
            "kind": st.column_config.TextColumn(width="small"),
            **{name: _numbers(values) for name, values in table.items() if "," in name},
        },
        alt="Seconds and bytes of every layer",
    )


def _numbers(values: Sequence[Any]) -> Any:
    return st.column_config.NumberColumn(format=f"%.{decimals(values)}f")


def decimals(values: Sequence[float]) -> int:
    """As many for the whole column as give its largest value three digits: points line up."""
    largest = max(map(abs, values), default=0.0)
    return max(0, DIGITS - 1 - floor(log10(largest))) if largest else 0


def rows(profile: Profile) -> dict[str, list[Any]]:
    """The table by columns; a unit stands in the heading, the numbers are plain."""
    layers = profile.layers
    times, second = time_unit(max((layer.compute for layer in layers), default=0.0))
    factor, byte = size_unit(max((layer.output_bytes for layer in layers), default=0))
    weights, weight = size_unit(max((layer.parameter_bytes for layer in layers), default=0))
    return {
        "layer": [layer.name for layer in layers],
        "kind": [layer.kind for layer in layers],
        f"forward, {second}": [layer.forward * times for layer in layers],
        f"backward, {second}": [layer.backward * times for layer in layers],
        f"update, {second}": [layer.update * times for layer in layers],
        f"parameters, {weight}": [layer.parameter_bytes * weights for layer in layers],
        f"output, {byte}": [layer.output_bytes * factor for layer in layers],
        f"cut sends, {byte}": [cut * factor for cut in profile.graph.cut_bytes],
    }
