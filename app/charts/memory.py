"""Peak memory of each stage's devices against what a device has."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.formats import count, percent, size, size_unit
from backend.cluster.cluster import Cluster
from backend.pipeline.memory import Holding
from backend.planning.plan import Partition
from backend.prediction.prediction import Prediction

OVER = palette.LIMIT  # more than there is


def memory(cut: Partition, held: Sequence[Holding], limits: Sequence[float | None]) -> go.Figure:
    """One bar per pipeline rank of what each of its devices holds, by kind (`parts` names them);
    the limit as a line."""
    both = list(zip(held, limits, strict=True))
    names = [_name(cut, number, *each) for number, each in enumerate(both)]
    hover = [_hover(cut, number, *each) for number, each in enumerate(both)]
    top = max([holding.total for holding in held] + [limit for limit in limits if limit], default=0)
    factor, unit = size_unit(top)
    drawing = figure(height=64 + 30 * len(held), legend=False)
    for word in parts(held):
        drawing.add_bar(
            name=word,
            orientation="h",
            y=names,
            x=[holding.named.get(word, 0.0) * factor for holding in held],
            width=0.62,
            marker={"color": palette.MEMORY[word], "line": {"width": 0}},
            hovertext=hover,
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
    drawing.update_layout(barmode="stack")
    drawing.update_xaxes(
        range=[0, 1.06 * top * factor or 1], ticksuffix=f" {unit}", fixedrange=True, nticks=4
    )
    drawing.update_yaxes(autorange="reversed", showgrid=False, fixedrange=True)
    return drawing


def limits_of(cluster: Cluster, prediction: Prediction) -> list[float | None]:
    """Per pipeline rank the memory of its smallest device, None where that is not known."""
    found: list[float | None] = []
    for stage in prediction.plan.partition.stages[: prediction.plan.partition.pipeline_size]:
        memories = [cluster.at(device).memory for device in stage.devices]
        known = [memory for memory in memories if memory is not None]
        found.append(min(known) if known else None)
    return found


def parts(held: Sequence[Holding]) -> dict[str, str]:
    """The colours of what any of them holds."""
    there = {word for holding in held for word in holding.named}
    return {word: colour for word, colour in palette.MEMORY.items() if word in there}


def _name(cut: Partition, pipeline_rank: int, held: Holding, limit: float | None) -> str:
    """What stands beside a bar; more than there is stands out."""
    replicas, total = cut.replicas[pipeline_rank], size(held.total)
    if limit is not None and held.total > limit:
        total = f'<b style="color:{OVER}">{total}</b>'
    return f"stage {pipeline_rank}" + (f" ×{replicas}" if replicas > 1 else "") + f"  {total}"


def _hover(cut: Partition, pipeline_rank: int, held: Holding, limit: float | None) -> str:
    devices = ", ".join(map(str, cut.stages[pipeline_rank].devices))
    lines = [
        f"<b>stage {pipeline_rank}</b> · {count(cut.replicas[pipeline_rank], 'replica')}",
        f"{size(held.total)} on each of the devices {devices}",
        *(f"{word} {size(part)}" for word, part in held.named.items()),
    ]
    if limit is not None:
        lines.append(f"{percent(held.total / limit, 0)} of {size(limit)}")
    return "<br>".join(lines)
