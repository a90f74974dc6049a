"""Which stage sits on which device: the cluster as a strip of devices, server by server."""

import plotly.graph_objects as go

from app.charts import palette
from app.charts.frame import figure
from app.formats import stages_words
from app.naming import cluster_words
from backend.cluster.cluster import Cluster
from backend.planning.plan import Partition

FEWEST = 8  # cells that the strip always has room for, so that two are not giants


def placement(cluster: Cluster, cut: Partition, sites: int = 1) -> go.Figure:
    """One cell per device in the grey of its stage, empty where it has none; servers apart. The
    cluster's `sites` are alike."""
    inner = cluster.levels[0].count
    places = [device + 0.4 * (device // inner) for device in range(cluster.num_devices)]
    devices = range(cluster.num_devices)
    apart = cluster.num_devices // sites
    holder = {
        device + site * apart: pipeline_rank
        for site in range(sites)
        for pipeline_rank, stage in enumerate(cut.stages[: cut.pipeline_size])
        for device in stage.devices
    }
    held: dict[int | None, str] = {
        pipeline_rank: stages_words(cut.held_by(pipeline_rank))
        for pipeline_rank in range(cut.pipeline_size)
    }
    drawing = figure(height=64, legend=False)
    drawing.add_bar(
        x=places,
        y=[1] * cluster.num_devices,
        width=0.92,
        marker={
            "color": [
                palette.stage(holder[d]) if d in holder else palette.IDLE
                for d in range(cluster.num_devices)
            ],
            "line": {"width": 0},
        },
        text=[_text(held.get(holder.get(d)), cluster.num_devices) for d in devices],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": "#1B2430", "size": 11},
        hovertext=[_hover(cluster, d, held.get(holder.get(d))) for d in devices],
        hoverinfo="text",
    )
    servers = range(-(-cluster.num_devices // inner))
    drawing.update_xaxes(
        tickvals=[(places[s * inner] + places[(s + 1) * inner - 1]) / 2 for s in servers],
        ticktext=[f"server {s}" for s in servers]
        if len(cluster.levels) > 1
        else ["devices, by number of their stage"],
        fixedrange=True,
        range=[-0.6, max(places[-1], FEWEST) + 0.6],
    )
    drawing.update_yaxes(visible=False, fixedrange=True)
    return drawing


def _text(stages: str | None, num_devices: int) -> str:
    if stages is None:
        return "·"
    return stages if num_devices <= FEWEST else stages.partition(" ")[2]


def _hover(cluster: Cluster, device: int, stages: str | None) -> str:
    return f"<b>device {device}</b> · {stages or 'no stage'}<br>{cluster_words(cluster)}"
