"""What each layer costs, in network order: seconds as bars, parameters as a line."""

import plotly.graph_objects as go

from app.charts import layers, palette
from app.charts.frame import figure
from app.formats import size_unit, time_unit
from backend.profiles.profile import Profile


def layer_costs(profile: Profile, height: int = 340) -> go.Figure:
    """Forward and backward stacked per layer (left axis), parameters (right axis)."""
    drawing = figure(height)
    _bars(drawing, profile)
    _parameters(drawing, profile)
    drawing.update_layout(barmode="stack", hovermode="closest")
    drawing.update_xaxes(**layers.axis([layer.name for layer in profile.layers]))
    return drawing


def _bars(drawing: go.Figure, profile: Profile) -> None:
    factor, unit = time_unit(max((layer.compute for layer in profile.layers), default=0.0))
    texts = [
        layers.hover(index, layer, cut)
        for index, (layer, cut) in enumerate(
            zip(profile.layers, profile.graph.cut_bytes, strict=True)
        )
    ]
    for name, colour in (("forward", palette.FORWARD), ("backward", palette.BACKWARD)):
        drawing.add_bar(
            name=name,
            x=list(range(len(profile.layers))),
            y=[getattr(layer, name) * factor for layer in profile.layers],
            marker={"color": colour, "line": {"width": 0}},
            hovertext=texts,
            hoverinfo="text",
        )
    drawing.update_yaxes(title={"text": unit}, rangemode="tozero")


def _parameters(drawing: go.Figure, profile: Profile) -> None:
    largest = max((layer.parameter_bytes for layer in profile.layers), default=0)
    if not largest:
        return
    factor, unit = size_unit(largest)
    drawing.add_scatter(
        name=f"parameters ({unit}, right)",
        x=list(range(len(profile.layers))),
        y=[layer.parameter_bytes * factor for layer in profile.layers],
        yaxis="y2",
        mode="lines+markers",
        line={"color": palette.NEUTRAL, "width": 1, "dash": "dot"},
        marker={"size": 4},
        hoverinfo="skip",
    )
    drawing.update_layout(
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            "zeroline": False,
            "rangemode": "tozero",
            "title": {"text": unit},
            "automargin": True,
            "tickmode": "auto",
            "nticks": 5,
            "tickformat": ".3~g",
        }
    )
