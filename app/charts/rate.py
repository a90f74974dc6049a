"""The learning rate over a training, as a small Vega-Lite picture."""

from typing import Any

from app.charts.palette import FORWARD
from backend.runs.request.learning_rate import learning_rate_factor, num_scheduled
from backend.runs.request.spec import TrainSpec

X, Y = "update", "rate"
POINTS = 240
HEIGHT = 150


def rate_points(spec: TrainSpec, per_epoch: int) -> list[dict[str, float]]:
    """The rate of updates over the whole training, with so many of them per epoch."""
    total = num_scheduled(spec, per_epoch)
    factor = learning_rate_factor(spec.optimizer, per_epoch, total)
    count = min(POINTS, total)
    steps = sorted({round(place * (total - 1) / max(count - 1, 1)) for place in range(count)})
    return [{X: step, Y: spec.optimizer.learning_rate * factor(step)} for step in steps]


def rate_chart() -> dict[str, Any]:
    """How to draw them."""
    axis = {"grid": False, "format": ",.0f", "tickCount": 6, "labelFlush": True}
    hover = [
        {"field": X, "type": "quantitative", "format": ",.0f"},
        {"field": Y, "type": "quantitative", "format": ".4g"},
    ]
    return {
        "height": HEIGHT,
        "padding": {"left": 4, "right": 14, "top": 4, "bottom": 4},
        "mark": {"type": "line", "color": FORWARD, "strokeWidth": 1.6},
        "encoding": {
            "x": {"field": X, "type": "quantitative", "title": None, "axis": axis},
            "y": {
                "field": Y,
                "type": "quantitative",
                "title": None,
                "axis": {"tickCount": 3, "format": "~g"},
                "scale": {"domainMin": 0},
            },
            "tooltip": hover,
        },
    }
