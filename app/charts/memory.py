"""Peak memory of each stage's devices against what a device has."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.formats import count, percent, size, size_unit
from backend.planning.plan import Partition

OVER = palette.RECOMPUTE  # more than there is


def memory(cut: Partition, needs: Sequence[float], limits: Sequence[float | None]) -> go.Figure:
    """One bar per pipeline rank (`needs` in bytes, of one replica), the limit as a line."""
    known = [limit for limit in limits if limit is not None]
    top = max([*needs, *known], default=0.0)
    factor, unit = size_unit(top)
    drawing = figure(height=64 + 30 * len(needs), legend=False)
    drawing.add_bar(
        orientation="h",
        y=[_name(cut, pipeline_rank) for pipeline_rank in range(len(needs))],
        x=[need * factor for need in needs],
        width=0.62,
        marker={
            "color": [
                OVER if limit is not None and need > limit else palette.NEUTRAL
                for need, limit in zip(needs, limits, strict=True)
            ]
        },
        text=[size(need) for need in needs],
        textposition="auto",
        insidetextanchor="start",
        textangle=0,
        hovertext=[
            _hover(cut, pipeline_rank, needs[pipeline_rank], limits[pipeline_rank])
            for pipeline_rank in range(len(needs))
        ],
        hoverinfo="text",
    )
    for pipeline_rank, limit in enumerate(limits):
        if limit is not None:
            drawing.add_shape(
                type="line",
                x0=limit * factor,
                x1=limit * factor,
                y0=pipeline_rank - 0.45,
                y1=pipeline_rank + 0.45,
                line={"color": OVER, "width": 2, "dash": "dot"},
            )
    drawing.update_xaxes(
        range=[0, 1.06 * top * factor or 1], ticksuffix=f" {unit}", fixedrange=True, nticks=4
    )
    drawing.update_yaxes(autorange="reversed", showgrid=False, fixedrange=True)
    return drawing


def _name(cut: Partition, pipeline_rank: int) -> str:
    replicas = cut.replicas[pipeline_rank]
    return f"stage {pipeline_rank}" + (f" ×{replicas}" if replicas > 1 else "")


def _hover(cut: Partition, pipeline_rank: int, need: float, limit: float | None) -> str:
    devices = ", ".join(map(str, cut.stages[pipeline_rank].devices))
    lines = [
        f"<b>stage {pipeline_rank}</b> · {count(cut.replicas[pipeline_rank], 'replica')}",
        f"{size(need)} on each of the devices {devices}",
    ]
    if limit is not None:
        lines.append(f"{percent(need / limit, 0)} of {size(limit)}")
    return "<br>".join(lines)
