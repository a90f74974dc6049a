"""The layers of a profile as a table that can be sorted, and the profile as files."""

import csv
from collections.abc import Sequence
from functools import partial
from io import StringIO
from math import floor, log10
from typing import Any

import streamlit as st

from app.components.shell.download import download
from app.formats import size_unit, time_unit
from backend.profiles.document import write_profile
from backend.profiles.graph_txt import write_graph
from backend.profiles.profile import Layer, Profile
from backend.runs.profiles import StoredProfile

DIGITS = 3
FIELDS = {
    "forward_seconds": "forward",
    "backward_seconds": "backward",
    "backward_input_seconds": "backward_input",
    "update_seconds": "update",
    "parameter_bytes": "parameter_bytes",
    "frozen_bytes": "frozen_bytes",
    "buffer_bytes": "buffer_bytes",
    "output_bytes": "output_bytes",
    "kept_bytes": "saved_bytes",
    "flops": "flops",
}
"""Columns of the CSV file and where their figures come from."""


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
            **{name: number_column(values) for name, values in table.items() if "," in name},
        },
        alt="Seconds and bytes of every layer",
    )


def number_column(values: Sequence[float | None]) -> Any:
    """All values of a column with the same number of decimals."""
    known = [value for value in values if value is not None]
    return st.column_config.NumberColumn(format=f"%.{decimals(known)}f")


def decimals(values: Sequence[float]) -> int:
    """As many for the whole column as give its largest value three digits: points line up."""
    largest = max(map(abs, values), default=0.0)
    return max(0, DIGITS - 1 - floor(log10(largest))) if largest else 0


def rows(profile: Profile) -> dict[str, list[Any]]:
    """The table by columns; a unit stands in the heading, the numbers are plain. What was not
    measured of any layer has no column."""
    layers = profile.layers
    times, second = time_unit(max((layer.compute for layer in layers), default=0.0))
    factor, byte = size_unit(max((layer.output_bytes for layer in layers), default=0))
    weights, weight = size_unit(max((layer.parameter_bytes for layer in layers), default=0))
    frozen, still = size_unit(max((layer.frozen_bytes for layer in layers), default=0))
    kept, held = size_unit(max((layer.saved_bytes or 0 for layer in layers), default=0))
    table: dict[str, list[Any]] = {
        "layer": [layer.name for layer in layers],
        "kind": [layer.kind for layer in layers],
        f"forward, {second}": [layer.forward * times for layer in layers],
        f"backward, {second}": [layer.backward * times for layer in layers],
        f"of it inputs, {second}": _known(layers, "backward_input", times),
        f"update, {second}": [layer.update * times for layer in layers],
        f"parameters, {weight}": [layer.parameter_bytes * weights for layer in layers],
        f"frozen, {still}": _known(layers, "frozen_bytes", frozen),
        f"output, {byte}": [layer.output_bytes * factor for layer in layers],
        f"kept, {held}": _known(layers, "saved_bytes", kept),
        f"cut sends, {byte}": [cut * factor for cut in profile.graph.cut_bytes],
        f"cut gets back, {byte}": _back(profile, factor),
        "operations, MFLOP": _known(layers, "flops", 1e-6),
    }
    return {name: values for name, values in table.items() if values}


def _known(layers: Sequence[Layer], field: str, factor: float) -> list[float | None]:
    """A column, empty where nothing is known of any layer."""
    values = [getattr(layer, field) for layer in layers]
    if not any(values):
        return []
    return [None if value is None else value * factor for value in values]


def _back(profile: Profile, factor: float) -> list[float]:
    """The gradients over each cut; empty where they are as large as what is sent."""
    if profile.graph.is_two_way:
        return []
    return [cut * factor for cut in profile.graph.gradient_bytes]


def layers_csv(profile: Profile) -> str:
    """Every figure of every layer in seconds and bytes; empty where it was not measured."""
    sink = StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(["layer", "kind", *FIELDS, "cut_bytes", "gradient_bytes"])
    graph = profile.graph
    for layer, *cut in zip(profile.layers, graph.cut_bytes, graph.gradient_bytes, strict=True):
        figures = [getattr(layer, field) for field in FIELDS.values()]
        writer.writerow([layer.name, layer.kind, *figures, *cut])
    return sink.getvalue()


def profile_downloads(stored: StoredProfile) -> None:
    """A menu of files; each is written when it is asked for."""
    stem = f"{stored.profile.name}-profile-{stored.id}"
    with st.popover("Download", icon=":material/download:"):
        for label, write, suffix, mime in (
            ("JSON: everything", write_profile, ".json", "application/json"),
            ("CSV: a row per layer", layers_csv, ".csv", "text/csv"),
            ("graph.txt: PipeDream's", write_graph, ".txt", "text/plain"),
        ):
            data = partial(write, stored.profile)
            download(label, data, stem + suffix, mime, in_menu=True)
