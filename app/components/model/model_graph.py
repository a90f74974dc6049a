"""The picture of a model: modules that open and close, the costs of each layer beside it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import streamlit as st

from app.charts.groups import LayerGroup, compute
from app.charts.model.model_picture import Box, Picture, picture, tree_of
from app.charts.model.module_tree import Module, around, first_open
from app.formats import count, operations, percent, seconds, shorten, size
from app.session.state import Key
from backend.planning.memory import at_work
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile

HERE = Path(__file__).parent / "graph"
TITLE, REMARK = 25, 17
"""Characters that fit into a box."""
WAYS = ("forward", "backward")

_graph = st.components.v2.component(
    "stageflow_model_graph",
    css=(HERE / "graph.css").read_text(),
    js=(HERE / "graph.js").read_text(),
)


@st.fragment
def model_graph(profile: Profile, key: str) -> None:
    """Draw `profile`; which modules are open lasts as long as the visit. `key` names the model."""
    names = [layer.name for layer in profile.layers]
    root = tree_of(profile.graph)
    kept: dict[str, frozenset[str]] = st.session_state.setdefault(Key.OPENED.value, {})
    kept.setdefault(key, first_open(root))

    def show(opened: frozenset[str]) -> None:
        kept[key] = opened

    def toggled() -> None:
        show(kept[key] ^ {st.session_state[f"graph-{key}"].toggle})

    def sought() -> None:
        if (name := st.session_state[f"find-{key}"]) is not None:
            show(kept[key] | around(root, names.index(name)))

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        layer = st.selectbox(
            "Find a layer",
            names,
            index=None,
            placeholder="Its name",
            key=f"find-{key}",
            on_change=sought,
            width=340,
        )
        every = frozenset(module.key for module in root.modules())
        if len(every) > 1:
            st.button("Open all", key=f"open-{key}", on_click=show, args=(every,))
            st.button("Close all", key=f"close-{key}", on_click=show, args=(frozenset(),))
    chosen = f"layer {names.index(layer)}" if layer else ""
    data = drawn(profile, picture(profile, kept[key]), key, chosen)
    _graph(key=f"graph-{key}", data=data, on_toggle_change=toggled)


def drawn(profile: Profile, found: Picture, key: str, chosen: str = "") -> dict[str, Any]:
    """What the browser is told: boxes with their words, lines, the whole model's figures."""
    shut = [_covered(box) for box in found.boxes if not box.is_open]
    most = max((_seconds(profile.layers[b.start : b.stop]) for b in shut), default=0.0)
    layers = count(len(profile.layers), "layer")
    return {
        "model": key,
        "file": profile.name,
        "alt": f"The graph of {profile.name}: {layers}. Arrows move, plus and minus zoom.",
        "note": f"{layers} · drag or scroll to move, Ctrl+scroll to zoom",
        "kind": layers,
        "facts": facts(profile, range(len(profile.layers))),
        "chosen": chosen,
        "width": found.width,
        "height": found.height,
        "boxes": [_box(profile, box, most) for box in found.boxes],
        "lines": [[[_pixel(p) for p in line.points], line.is_tie] for line in found.lines],
    }


def _box(profile: Profile, box: Box, most: float) -> dict[str, Any]:
    numbers = _covered(box)
    covered = profile.layers[numbers.start : numbers.stop]
    module = box.member if isinstance(box.member, Module) else None
    path = module.path if module else covered[0].name
    group = LayerGroup(path, 0, module.blocks or 1 if module else 1, covered)
    kind = group.kind
    longest = most or 1.0
    return {
        "key": module.key if module else f"layer {box.member}",
        "path": path,
        "name": shorten(path.removeprefix(f"{box.within}."), TITLE),
        "kind": kind,
        "remark": shorten(kind, REMARK),
        "time": seconds(_seconds(covered)),
        "bars": [sum(getattr(la, way) for la in covered) / longest for way in WAYS],
        "facts": [*_blocks(group), *facts(profile, numbers)],
        "module": module is not None,
        "open": box.is_open,
        "x": round(box.x, 1),
        "y": round(box.y, 1),
        "w": box.width,
        "h": box.height,
    }


def _blocks(group: LayerGroup) -> list[tuple[str, str]]:
    """How many equal blocks, and what the shortest and the longest take."""
    if group.count == 1:
        return []
    each = " to ".join(map(seconds, group.spread(compute)))
    return [("Equal blocks", count(group.count)), ("Each of them", each)]


def facts(profile: Profile, numbers: range) -> list[tuple[str, str]]:
    """Labels and figures of some layers together; what was not measured is left out."""
    total, layers = profile.compute, profile.layers[numbers.start : numbers.stop]
    forward, backward = (sum(getattr(layer, way) for layer in layers) for way in WAYS)
    halves, update = (
        sum(getattr(la, way) for la in layers) for way in ("backward_input", "update")
    )
    frozen = sum(layer.frozen_bytes for layer in layers)
    kept, flops = _sum(la.saved_bytes for la in layers), _sum(la.flops for la in layers)
    rows = [
        ("Forward", seconds(forward)),
        ("Backward", seconds(backward)),
        ("Backward, inputs", seconds(halves) if halves else ""),
        ("Update", seconds(update) if update else ""),
        ("Share of the model's time", percent((forward + backward) / total) if total else ""),
        ("Parameters", size(sum(layer.parameter_bytes for layer in layers))),
        ("Frozen", size(frozen) if frozen else ""),
        ("Buffers", size(sum(layer.buffer_bytes for layer in layers))),
        ("Kept for backward", size(kept) if kept is not None else ""),
        ("Working memory", size(at_work(layers)) if at_work(layers) else ""),
        ("Operations", operations(flops) if flops else ""),
    ]
    if len(layers) == len(profile.layers) and profile.process_bytes:
        rows.append(("A process beside it", size(profile.process_bytes)))
    if len(layers) == 1:
        index = numbers.start
        rows.append(("Output", size(layers[0].output_bytes)))
        rows.append(("A cut behind it sends", size(profile.graph.cut_bytes[index])))
        rows += _shared(profile, index)
    return [(label, text) for label, text in rows if text]


def _shared(profile: Profile, index: int) -> list[tuple[str, str]]:
    """The weights that the layer shares, and with whom."""
    names = [layer.name for layer in profile.layers]
    found = []
    for tie in profile.graph.tied_weights:
        if index == tie.owner or index in tie.readers:
            others = [names[i] for i in (tie.owner, *tie.readers) if i != index]
            found.append((f"Shares {tie.weight} with", ", ".join(others)))
    return found


def _covered(box: Box) -> range:
    if isinstance(box.member, Module):
        return range(box.member.first, box.member.stop)
    return range(box.member, box.member + 1)


def _seconds(layers: Iterable[Layer]) -> float:
    return sum(layer.compute for layer in layers)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _pixel(point: tuple[float, float]) -> list[float]:
    return [round(point[0], 1), round(point[1], 1)]
