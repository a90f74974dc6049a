"""What all figures share: transparent, quiet axes, a legend in one line below the title."""

from typing import Any

import plotly.graph_objects as go

from app.charts.palette import GRID, NEUTRAL


def figure(height: int, *, legend: bool = True) -> go.Figure:
    """An empty figure of `height` pixels that takes its text colour from the page's theme."""
    return go.Figure(  # in one call: every update would check the whole layout again
        layout={
            "height": height,
            "margin": {"l": 8, "r": 8, "t": 32 if legend else 8, "b": 8},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "showlegend": legend,
            "legend": {
                "orientation": "h",
                "y": 1.0,
                "yanchor": "bottom",
                "x": 0,
                "xanchor": "left",
                "traceorder": "normal",
            },
            "bargap": 0.2,
            "dragmode": "pan",
            "hoverlabel": {"align": "left"},
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": NEUTRAL, "activecolor": NEUTRAL},
            "xaxis": {"showgrid": False, "zeroline": False, "automargin": True},
            "yaxis": {"gridcolor": GRID, "zeroline": False, "automargin": True},
        }
    )


CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "displayModeBar": "hover",
    "scrollZoom": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
    "toImageButtonOptions": {"format": "png", "scale": 2, "filename": "stageflow"},
}
"""Options for the page that shows a figure (`st.plotly_chart(config=)`)."""
