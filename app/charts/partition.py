"""A partition over the layers it cuts: stages as bands, cuts as lines with their bytes."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.layer_costs import layer_costs
from app.formats import count, seconds, size
from backend.planning.plan import Partition, Stage
from backend.profiles.profile import Profile

HEADROOM = 1.14
WORDY = 5  # up to this many stages a label has room for words


def partition(
    profile: Profile, cut: Partition, stage_seconds: Sequence[float] = (), height: int = 380
) -> go.Figure:
    """Layer costs with `cut` drawn over them; `stage_seconds` per microbatch when known."""
    drawing = layer_costs(profile, height)
    wordy = len(cut.stages) <= WORDY
    for number, stage in enumerate(cut.stages):
        spent = stage_seconds[number] if stage_seconds else None
        label = _label(number, stage, spent, wordy)
        _band(drawing, number, stage, label, _hover(profile, number, stage, spent))
    for stage in cut.stages[:-1]:
        _cut(drawing, stage.stop, profile.graph.cut_bytes[stage.stop - 1], wordy)
    _headroom(drawing)
    drawing.update_layout(
        margin={"t": 58, "b": 8, "l": 8, "r": 8},
        legend={"y": -0.34, "yanchor": "top"},
    )
    return drawing


def _headroom(drawing: go.Figure) -> None:
    """Room above the bars and the line, where the cuts' labels are."""
    bars = [trace for trace in drawing.data if trace.type == "bar"]
    tallest = max(map(sum, zip(*(bar.y for bar in bars), strict=True)), default=0.0)
    drawing.update_layout(yaxis={"range": [0, HEADROOM * tallest or 1]})
    for line in (trace for trace in drawing.data if trace.type == "scatter"):
        drawing.update_layout(yaxis2={"range": [0, HEADROOM * max(line.y)]})


def _label(number: int, stage: Stage, spent: float | None, wordy: bool) -> str:
    if not wordy:
        return f"<b>{number}</b>" + (f"<br>×{stage.replicas}" if stage.replicas > 1 else "")
    first = f"<b>Stage {number}</b>"
    rest = [count(stage.replicas, "replica")] if stage.replicas > 1 else []
    rest += [seconds(spent)] if spent is not None else []
    return f"{first}<br>{' · '.join(rest)}" if rest else first


def _hover(profile: Profile, number: int, stage: Stage, spent: float | None) -> str:
    layers = profile.layers[stage.first : stage.stop]
    lines = [
        f"<b>Stage {number}</b> · {count(stage.replicas, 'replica')}",
        f"{count(len(layers), 'layer')}: {layers[0].name} to {layers[-1].name}",
        f"parameters {size(sum(layer.parameter_bytes for layer in layers))}",
    ]
    if spent is not None:
        lines.append(f"{seconds(spent)} of compute per microbatch")
    if stage.stop < len(profile.layers):
        lines.append(f"sends {size(profile.graph.cut_bytes[stage.stop - 1])} per microbatch")
    return "<br>".join(lines)


def _band(drawing: go.Figure, number: int, stage: Stage, label: str, hover: str) -> None:
    colour = palette.stage(number)
    drawing.add_vrect(
        x0=stage.first - 0.5,
        x1=stage.stop - 0.5,
        fillcolor=palette.faint(colour, 0.13),
        line={"width": 0},
        layer="below",
    )
    middle = (stage.first + stage.stop - 1) / 2
    drawing.add_annotation(
        x=middle,
        y=1,
        yref="paper",
        yanchor="bottom",
        text=label,
        hovertext=hover,
        showarrow=False,
        font={"size": 12},
        align="center",
    )


def _cut(drawing: go.Figure, stop: int, sent: int, wordy: bool) -> None:
    drawing.add_vline(x=stop - 0.5, line={"color": palette.NEUTRAL, "width": 1.5})
    if not wordy:
        return
    drawing.add_annotation(
        x=stop - 0.5,
        y=1,
        yref="paper",
        yanchor="top",
        xanchor="left",
        xshift=3,
        text=f"✂ {size(sent)}",
        hovertext=f"{size(sent)} of activations travel here per microbatch, and as much back",
        showarrow=False,
        font={"size": 11, "color": palette.NEUTRAL},
    )
