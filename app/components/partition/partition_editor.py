"""A partition over its layers that can be changed: drag a cut, step replicas, split, join."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from app.charts import layers, palette
from app.charts.groups import Detail, LayerGroup, compute, edges, groups
from app.formats import shorten
from backend.errors import StageflowError
from backend.planning.plan import Partition
from backend.profiles.profile import Profile

HERE = Path(__file__).parent / "editor"
ALT = "Seconds and parameters of each layer in network order, the stages as bands over them"
FAULT = "partition-editor-fault"
NAME = 18  # characters

_editor = st.components.v2.component(
    "stageflow_partition_editor",
    css=(HERE / "editor.css").read_text(),
    js=(HERE / "editor.js").read_text(),
)


def partition_editor(
    profile: Profile,
    cut: Partition,
    num_devices: int,
    change: Callable[[list[int], list[int]], None],
    detail: Detail,
    key: str = "partition-editor",
) -> None:
    """Draw `cut` over `profile`, whose layers are in the partition's order.

    `change(stops, replicas)` is called after each edit; what it raises is said below.
    """

    def edited() -> None:
        wanted = st.session_state[key].edit
        try:
            change(list(map(int, wanted["stops"])), list(map(int, wanted["replicas"])))
        except StageflowError as fault:
            st.session_state[FAULT] = f"{fault}. {fault.advice}"

    _editor(key=key, data=drawn(profile, cut, num_devices, detail), on_edit_change=edited)
    if said := st.session_state.pop(FAULT, ""):
        st.warning(said, icon=":material/warning:")


def drawn(
    profile: Profile, cut: Partition, num_devices: int, detail: Detail = Detail.LAYERS
) -> dict[str, Any]:
    """What the editor is told: seconds and bytes per layer, what is shown as one, and the
    partition. `at` is where each layer begins and the last one ends, in units of the axis, and
    `marks` are the layers behind which a cut may be moved."""
    found, bars = profile.layers, groups(profile.graph, detail)
    places, labels = layers.ticks(bars)
    return {
        "alt": ALT,
        "names": [shorten(layer.name, 2 * NAME) for layer in found],
        "kinds": [layer.kind for layer in found],
        "forward": [layer.forward for layer in found],
        "backward": [layer.backward for layer in found],
        "parameters": [layer.parameter_bytes for layer in found],
        "frozen": [layer.frozen_bytes for layer in found],
        "outputs": [layer.output_bytes for layer in found],
        "cuts": list(profile.graph.cut_bytes),
        "at": at(bars),
        "marks": marks(bars),
        "bars": [_bar(group) for group in bars],
        "places": places,
        "labels": labels,
        "hues": list(palette.STAGES),
        "stops": [stage.stop for stage in cut.stages],
        "replicas": [stage.replicas for stage in cut.stages],
        "chunks": cut.chunks,
        "holders": [cut.pipeline_rank_of(stage) for stage in range(len(cut.stages))],
        "devices": num_devices,
    }


def at(bars: Sequence[LayerGroup]) -> list[float]:
    """The layers of a group side by side, each as wide as the others."""
    starts = edges(bars)
    inside = (
        start + group.wide * number / len(group.layers)
        for start, group in zip(starts, bars, strict=False)
        for number in range(len(group.layers))
    )
    return [*(round(place, 4) for place in inside), float(starts[-1])]


def marks(bars: Sequence[LayerGroup]) -> list[int]:
    """The layers behind which a block ends; a single layer is one."""
    return [
        end for group in bars for end in range(group.first + group.size, group.stop + 1, group.size)
    ]


def _bar(group: LayerGroup) -> dict[str, Any]:
    least, most = group.spread(compute)
    return {
        "first": group.first,
        "stop": group.stop,
        "count": group.count,
        "name": group.name,
        "kind": group.kind,
        "least": least,
        "most": most,
    }
