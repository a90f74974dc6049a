"""Peak memory of each stage's devices against what a device has."""

from collections.abc import Sequence

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.formats import count, percent, size, size_unit, stages_words
from backend.pipeline.memory import Holding
from backend.planning.plan import Partition
from backend.planning.room import DeviceRoom

OVER = palette.LIMIT  # more than there is


def memory(cut: Partition, rooms: Sequence[DeviceRoom]) -> go.Figure:
    """One bar per pipeline rank of what its device with the least room holds (`least_room`), by
    kind (`parts` names them); what that device has as a line."""
    rooms = rooms[: cut.pipeline_size]
    held, limits = [room.held for room in rooms], [room.device.memory for room in rooms]
    names = [_name(cut, number, room) for number, room in enumerate(rooms)]
    hover = [_hover(cut, number, room) for number, room in enumerate(rooms)]
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


def parts(held: Sequence[Holding]) -> dict[str, str]:
    """The colours of what any of them holds."""
    there = {word for holding in held for word in holding.named}
    return {word: colour for word, colour in palette.MEMORY.items() if word in there}


def _name(cut: Partition, pipeline_rank: int, room: DeviceRoom) -> str:
    """What stands beside a bar; more than there is stands out."""
    replicas, total = cut.replicas[pipeline_rank], size(room.held.total)
    if room.excess > 0:
        total = f'<b style="color:{OVER}">{total}</b>'
    return (
        stages_words(cut.held_by(pipeline_rank))
        + (f" ×{replicas}" if replicas > 1 else "")
        + f"  {total}"
    )


def _hover(cut: Partition, pipeline_rank: int, room: DeviceRoom) -> str:
    stage, held, limit = cut.stages[pipeline_rank], room.held, room.device.memory
    where = f"each of the devices {', '.join(map(str, stage.devices))}"
    if stage.shares:
        where = f"device {stage.devices[room.replica]}, which has the least room"
    lines = [
        f"<b>{stages_words(cut.held_by(pipeline_rank))}</b> · "
        f"{count(cut.replicas[pipeline_rank], 'replica')}",
        f"{size(held.total)} on {where}",
        *(f"{word} {size(part)}" for word, part in held.named.items()),
    ]
    if limit is not None:
        lines.append(f"{percent(held.total / limit, 0)} of {size(limit)}")
    return "<br>".join(lines)
