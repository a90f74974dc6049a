"""The layers of a profile as a table that can be sorted, and the profile as files."""

import csv
from collections.abc import Callable, Sequence
from functools import partial
from io import StringIO
from math import floor, log10
from typing import Any

import streamlit as st

from app.charts.groups import LayerGroup, compute
from app.components.shell.download import download
from app.formats import seconds, size_unit, time_unit
from backend.profiles.document import write_profile
from backend.profiles.graph_txt import write_graph
from backend.profiles.profile import Profile
from backend.runs.profiles import StoredProfile

DIGITS = 3
SHORT = 9  # rows
EACH = "one block"
ALWAYS = ("forward", "backward", "update", "parameter_bytes")
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
    "work_bytes": "work_bytes",
    "flops": "flops",
}
"""Columns of the CSV file and where their figures come from."""


def layer_table(profile: Profile, shown: Sequence[LayerGroup]) -> None:
    """One row per layer, block or fold, in network order, all in the same units."""
    table = rows(profile, shown)
    st.dataframe(
        table,
        hide_index=True,
        height=360 if len(shown) > SHORT else "auto",
        key="layers",
        column_config={
            "layer": st.column_config.TextColumn(width="medium", pinned=True),
            "kind": st.column_config.TextColumn(width="small"),
            EACH: st.column_config.TextColumn(width=150),
            **{name: column_of(values, shown) for name, values in table.items() if "," in name},
        },
        alt="Seconds and bytes of every layer",
    )


def decimals(values: Sequence[float]) -> int:
    """As many for the whole column as give its largest value three digits: points line up."""
    largest = max(map(abs, values), default=0.0)
    return max(0, DIGITS - 1 - floor(log10(largest))) if largest else 0


def rows(profile: Profile, shown: Sequence[LayerGroup]) -> dict[str, list[Any]]:
    """The table by columns; a unit stands in the heading, the numbers are plain and those of all
    layers of a row together. What was not measured of any layer has no column."""
    layers, cuts = profile.layers, profile.graph.cut_bytes
    cut, byte = size_unit(max((layer.output_bytes for layer in layers), default=0))
    folds = any(group.count > 1 for group in shown)
    table: dict[str, list[Any]] = {
        "layer": [group.name for group in shown],
        "kind": [group.kind for group in shown],
        EACH: [_each(group) for group in shown] if folds else [],
        **_column(shown, "forward", "forward", time_unit, _longest(shown)),
        **_column(shown, "backward", "backward", time_unit, _longest(shown)),
        **_column(shown, "of it inputs", "backward_input", time_unit, _longest(shown)),
        **_column(shown, "update", "update", time_unit, _longest(shown)),
        **_column(shown, "parameters", "parameter_bytes", size_unit),
        **_column(shown, "frozen", "frozen_bytes", size_unit),
        f"output, {byte}": [group.layers[-1].output_bytes * cut for group in shown],
        **_column(shown, "kept", "saved_bytes", size_unit),
        f"sent at cut, {byte}": [cuts[group.stop - 1] * cut for group in shown],
        f"received at cut, {byte}": _back(profile, shown, cut),
        **_column(shown, "operations", "flops", lambda _: (1e-6, "MFLOP")),
    }
    return {name: values for name, values in table.items() if values}


def _longest(shown: Sequence[LayerGroup]) -> float:
    return max((group.total(compute) for group in shown), default=0.0)


def column_of(values: Sequence[float | None], shown: Sequence[LayerGroup]) -> Any:
    """All values of a column with as many decimals as the figures of one block need."""
    of = zip(values, shown, strict=True)
    known = [value / group.count for value, group in of if value is not None]
    return st.column_config.NumberColumn(format=f"%.{decimals(known)}f")


def _each(group: LayerGroup) -> str:
    """Of a fold: what its shortest and its longest block take."""
    if group.count == 1:
        return ""
    return " to ".join(map(seconds, group.spread(compute)))


def _column(
    shown: Sequence[LayerGroup],
    name: str,
    field: str,
    unit_for: Callable[[float], tuple[float, str]],
    extent: float | None = None,
) -> dict[str, list[float | None]]:
    """A column with its unit, none where nothing is known of any layer; `extent` gives the
    unit, else the largest value. What every profile has may be 0 everywhere."""
    known = [getattr(layer, field) for group in shown for layer in group.layers]
    if not any(known) and field not in ALWAYS:
        return {}
    values = [_sum([getattr(layer, field) for layer in group.layers]) for group in shown]
    largest = max((value for value in values if value), default=0.0)
    factor, unit = unit_for(largest if extent is None else extent)
    return {f"{name}, {unit}": [None if value is None else value * factor for value in values]}


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _back(profile: Profile, shown: Sequence[LayerGroup], factor: float) -> list[float]:
    """The gradients over each cut; empty where they are as large as what is sent."""
    if profile.graph.is_two_way:
        return []
    return [profile.graph.gradient_bytes[group.stop - 1] * factor for group in shown]


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
